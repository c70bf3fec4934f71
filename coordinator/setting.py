"""One setting under its name in Kafka's server.properties, and the configs that groups can have in its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loadwise.coordinator.configs.definitions import INT_MAX, ConfigType, Definition, at_least, between

_WHOLE = re.compile(r"[+-]?[0-9]+")
"""What Java's ``parseInt`` accepts."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The place of a setting in `loadwise.coordinator.settings.BrokerSettings`, and its format."""

    part: str | type | None
    """The field of `BrokerSettings` that contains it, or the class of a feature's limits; None: `BrokerSettings`."""
    field: str
    type: ConfigType
    read: Callable[[str], Any]
    """Parses the text. Raises `ValueError` with the valid values."""
    group_field: str | None = None
    """The field of `GroupLimits` with the same default, as a topic's setting follows its broker's."""


def whole(part: str | type | None, field: str, least: int, most: int = INT_MAX) -> Setting:
    """Return the setting of a whole number."""

    def read(text: str) -> int:
        # Not int() alone, because it accepts "1_000" and digits outside ASCII.
        if not (_WHOLE.fullmatch(text) and least <= int(text) <= most):
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return Setting(part, field, ConfigType.INT, read)


def group_number(name: str, default: int, least: int, most: int = INT_MAX) -> Definition:
    """Return the config of a group that is a whole number; ``default`` is Kafka's."""
    check = at_least(least) if most == INT_MAX else between(least, most)
    return Definition(name=name, type=ConfigType.INT, default=str(default), broker_config=f"group.{name}", check=check)


def bounds_of_times(kind: str) -> Mapping[str, int]:
    """Return Kafka's largest times of a kind of groups, by the names of a group's configs."""
    return {
        f"{kind}.assignment.interval.ms": 15_000,
        f"{kind}.heartbeat.interval.ms": 15_000,
        f"{kind}.session.timeout.ms": 60_000,
    }


def numbers_of_group(settings: Mapping[str, Setting], configs: Mapping[str, str]) -> dict[str, int]:
    """Return the fields of these settings that a group's own configs replace; those have no ``group.`` in front."""
    own = ((name.removeprefix("group."), setting.field) for name, setting in settings.items())
    return {field: int(configs[name]) for name, field in own if name in configs}
