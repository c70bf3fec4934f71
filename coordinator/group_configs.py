"""The configs that groups can have in place of the broker's, and their bounds. Mirrors Kafka's ``GroupConfig``.

Kafka's lower bounds, such as 45 seconds for a session timeout, count only if a broker was started with such a setting:
tests need short times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from loadwise.coordinator.configs.definitions import BadConfigError, Definitions
from loadwise.coordinator.features import features
from loadwise.coordinator.setting import bounds_of_times, group_number

_KERNELS = (
    group_number("consumer.assignment.interval.ms", 1000, 0),
    group_number("consumer.heartbeat.interval.ms", 5000, 1),
    group_number("consumer.session.timeout.ms", 45_000, 1),
)


@cache
def group_configs() -> Definitions:
    """Return the configs of all kinds of groups."""
    return Definitions("group", [*_KERNELS, *(each for feature in features() for each in feature.group_configs)])


@cache
def _most() -> Mapping[str, tuple[str, int]]:
    """Return for a group's config the broker's setting for the largest value, and Kafka's default of that."""
    defaults = dict(bounds_of_times("consumer"))
    for feature in features():
        defaults.update(feature.group_bounds)
    return {name: (f"group.{name.replace('.', '.max.', 1)}", most) for name, most in defaults.items()}


def bounds() -> Iterator[str]:
    """Return the brokers' settings for the largest and the smallest values."""
    for setting, _ in _most().values():
        yield from (setting, _least(setting))


def _least(setting: str) -> str:
    return setting.replace(".max.", ".min.", 1)


def check_bounds(configs: Mapping[str, str], as_started: Mapping[str, str]) -> None:
    """Raise `BadConfigError` for a value that is too large or too small.

    ``configs`` are those of a group, which are numbers where they have to be. ``as_started`` are the settings that the
    brokers were started with, by Kafka's names.
    """
    for name, value in configs.items():
        if name not in _most():
            continue
        setting, default = _most()[name]
        most = int(as_started.get(setting, default))
        if int(value) > most:
            raise BadConfigError(f"{name} must be less than or equal to {setting}, which is {most}")
        lower = _least(setting)
        if lower in as_started and int(value) < int(as_started[lower]):
            raise BadConfigError(f"{name} must be greater than or equal to {lower}, which is {as_started[lower]}")
