"""Parse option values: numbers, durations, flags and JSON.

Every `OptionError` names the option, the required form, and the given value.
Durations are Spark's time strings (``JavaUtils.timeStringAsMs``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.errors import OptionError

_UNITS_MS = {"us": 1e-3, "": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

MOST = (1 << 63) - 1
"""Kafka's offsets and times in ms have 64 bits, and so do Spark's numbers."""


def number(options: Mapping[str, str], name: str, *, least: int = 1) -> int | None:
    """Parse a whole number; None if the option is missing."""
    if name not in options:
        return None
    text = options[name].strip()
    if not re.fullmatch(r"\d{1,19}", text, re.ASCII) or not least <= int(text) <= MOST:
        # The upper bound is shown only to users who exceeded it.
        most = f" and at most {MOST}" if text.isdecimal() and len(text) >= len(str(MOST)) else ""
        raise OptionError(name, f"must be a whole number of at least {least}{most}, not {options[name]!r}")
    return int(text)


def flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Parse ``true`` or ``false`` in any case."""
    text = options.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise OptionError(name, f"must be 'true' or 'false', not {options[name]!r}")
    return text == "true"


def duration_ms(options: Mapping[str, str], name: str, *, default: int) -> int:
    """Parse a time string such as ``15m`` or ``500ms``; a plain number is milliseconds."""
    if name not in options:
        return default
    form = re.fullmatch(r"(\d+)\s*([a-z]*)", options[name].strip().lower(), re.ASCII)
    if form is None or form[2] not in _UNITS_MS:
        units = ", ".join(unit for unit in _UNITS_MS if unit)
        raise OptionError(name, f"must be a time like 15m (units: {units}), not {options[name]!r}")
    return int(int(form[1]) * _UNITS_MS[form[2]])


def by_partition(option: str, text: str, form: str, *, least: int) -> dict[TopicPartition, int]:
    """Parse JSON with a number of at least ``least`` for each partition: ``{"topic": {"0": 23}}``."""
    numbers: dict[TopicPartition, int] = {}
    for topic, partitions in json_object(option, text, form).items():
        if not isinstance(partitions, dict):
            raise OptionError(option, f"{form}; {topic!r} has {partitions!r}")
        for partition, given in partitions.items():
            # JSON generated from a table may have 23.0 for 23.
            found = int(given) if isinstance(given, float) and given.is_integer() else given
            if not re.fullmatch(r"\d+", partition, re.ASCII) or not is_int(found) or not least <= found <= MOST:
                raise OptionError(option, f"{form}; {topic!r} has {{{partition!r}: {found!r}}}")
            numbers[TopicPartition(topic, int(partition))] = found
    return numbers


def json_object(option: str, text: str, form: str) -> dict[str, Any]:
    """Parse a JSON object; ``form`` is the form that the error names."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise OptionError(option, f"{form}, not {text!r}")
    return value


def is_int(value: object) -> bool:
    """Whether a JSON value is a whole number. In Python, True is an int, too."""
    return isinstance(value, int) and not isinstance(value, bool)
