"""All that a broker of Apache Kafka 4.3 can be configured with, whether it has a meaning here or not.

``broker_configs.tsv`` is written by ``tests/golden/make_broker_configs.py`` from Kafka's own definitions
(``AbstractKafkaConfig``): a line each with the name, the type, the default (``null``: none) and the values that Kafka
allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from loadwise.coordinator.configs.definitions import ConfigType, Definition, at_least, between, items

LISTENER = re.compile(r"listener\.name\.[^.]+\.")
"""The start of a setting that is for one listener."""
_RANGE = re.compile(r"\[(-?[0-9.]+),\.\.\.(?:,(-?[0-9.]+))?\](?: or (-?[0-9]+))?")
_WORDS = re.compile(r"(\(case insensitive\) )?\[([^\]]*)\]")
_NO_DEFAULT = "null"


@cache
def broker_configs() -> Mapping[str, Definition]:
    """By name. Read when they are first asked for: most coordinators are started without any."""
    table = Path(__file__).with_name("broker_configs.tsv").read_text(encoding="utf-8")
    return {name: _definition(name, *row) for name, *row in (line.split("\t") for line in table.splitlines())}


def _definition(name: str, kind: str, default: str, allowed: str) -> Definition:
    has_default = default != _NO_DEFAULT
    return Definition(
        name=name,
        type=ConfigType[kind],
        default=default if has_default else "",
        has_default=has_default,
        check=_BY_HAND.get(name) or _check(ConfigType[kind], allowed),
    )


def not_none(value: str) -> str | None:
    """The fault of a retention time: 0 would keep no records. Any time below 0 means for ever."""
    return "it takes times from 1 on, and -1 for no end" if int(value) == 0 else None


_BY_HAND: Mapping[str, Callable[[str], str | None]] = {
    "log.retention.hours": not_none,
    "log.retention.minutes": not_none,
    "log.retention.ms": not_none,
    "log.roll.jitter.ms": at_least(0),
    "log.roll.ms": at_least(1),
}
"""The fault of values that Kafka refuses outside their definitions (``AbstractKafkaConfig.validateValues``)."""


def _check(kind: ConfigType, allowed: str) -> Callable[[str], str | None]:
    found = _RANGE.match(allowed)
    if found is not None:
        least, most, besides = found.groups()
        within = at_least(int(least)) if most is None else between(float(least), float(most))
        return lambda value: None if value == besides else within(value)
    words = _WORDS.match(allowed)
    if words is None:
        return lambda _: None
    known = items(words[2])
    compared = {each.lower() for each in known} if words[1] else set(known)

    def check(value: str) -> str | None:
        given = items(value) if kind is ConfigType.LIST else [value]
        has_wrong = any((each.lower() if words[1] else each) not in compared for each in given)
        return f"it takes {', '.join(known)}" if has_wrong else None

    return check
