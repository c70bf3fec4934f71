"""One setting under its name in Kafka's server.properties."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loadwise.coordinator.configs.definitions import INT_MAX, ConfigType
from loadwise.coordinator.configs.group_numbers import GroupNumber

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


def setting_of(number: GroupNumber, part: str | type) -> Setting:
    """Return the broker's setting of a number that groups can have of their own."""
    return whole(part, number.field, number.least if number.least_of_brokers is None else number.least_of_brokers)
