"""The configs that groups can have in place of the broker's, and their bounds. Mirrors Kafka's ``GroupConfig``.

Kafka's lower bounds, such as 45 seconds for a session timeout, count only if a broker was started with such a setting:
tests need short times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from loadwise.coordinator.configs.definitions import BadConfigError, Definitions
from loadwise.coordinator.configs.group_numbers import GroupNumber
from loadwise.coordinator.features import features
from loadwise.coordinator.groups.consumer.limits import NUMBERS


@cache
def _numbers() -> Mapping[str, GroupNumber]:
    """Return the numbers of all kinds of groups by name."""
    of_features = (each for feature in features() for each in feature.group_numbers)
    return {each.name: each for each in (*NUMBERS, *of_features)}


@cache
def group_configs() -> Definitions:
    """Return the configs of all kinds of groups."""
    numbers = (each.definition for each in _numbers().values())
    others = (each for feature in features() for each in feature.group_configs)
    return Definitions("group", sorted([*numbers, *others], key=lambda each: each.name))


def bounds() -> Iterator[str]:
    """Return the brokers' settings for the largest and the smallest values."""
    for number in _numbers().values():
        if number.bound is not None:
            yield from (number.largest, number.smallest)


def check_values(configs: Mapping[str, str], of_brokers: Mapping[str, str]) -> None:
    """Raise `BadConfigError` for a value that is too large or too small, or a session shorter than its heartbeats.

    ``configs`` are those of a group, which are numbers where they have to be. ``of_brokers`` are the brokers' settings
    by Kafka's names, and of the bounds those that they were started with.
    """
    own = {number: int(configs[name]) for name, number in _numbers().items() if name in configs}
    for number, value in own.items():
        if number.bound is None:
            continue
        most, least = int(of_brokers.get(number.largest, number.bound)), of_brokers.get(number.smallest)
        if value > most:
            raise BadConfigError(f"{number.name} must be less than or equal to {number.largest}, which is {most}")
        if least is not None and value < int(least):
            raise BadConfigError(f"{number.name} must be greater than or equal to {number.smallest}, which is {least}")
    for number in own:
        kind = number.name.partition(".")[0]
        session, heartbeat = (f"{kind}.{each}" for each in ("session.timeout.ms", "heartbeat.interval.ms"))
        if int(_value(session, configs, of_brokers)) <= int(_value(heartbeat, configs, of_brokers)):
            raise BadConfigError(f"{session} must be greater than {heartbeat}")


def _value(name: str, configs: Mapping[str, str], of_brokers: Mapping[str, str]) -> str:
    return configs[name] if name in configs else of_brokers[_numbers()[name].of_brokers]
