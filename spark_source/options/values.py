"""Values of options: from the text that Spark hands over to numbers, durations, flags and JSON.

Every refusal is an `OptionError` that names the option, the form that it must have, and what was given.
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
"""Offsets, and times in ms, have 64 bits in Kafka, and numbers in Spark have as many."""


def number(options: Mapping[str, str], name: str, *, least: int = 1) -> int | None:
    """A whole number, None where the option is not given."""
    if name not in options:
        return None
    text = options[name].strip()
    if not re.fullmatch(r"\d{1,19}", text, re.ASCII) or not least <= int(text) <= MOST:
        # The upper bound helps those alone who have gone beyond it.
        most = f" and at most {MOST}" if text.isdecimal() and len(text) >= len(str(MOST)) else ""
        raise OptionError(name, f"must be a whole number of at least {least}{most}, not {options[name]!r}")
    return int(text)


def flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """``true`` or ``false`` in any case."""
    text = options.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise OptionError(name, f"must be 'true' or 'false', not {options[name]!r}")
    return text == "true"


def duration_ms(options: Mapping[str, str], name: str, *, default: int) -> int:
    """A time string, as ``15m`` or ``500ms``; a number alone is milliseconds."""
    if name not in options:
        return default
    form = re.fullmatch(r"(\d+)\s*([a-z]*)", options[name].strip().lower(), re.ASCII)
    if form is None or form[2] not in _UNITS_MS:
        units = ", ".join(unit for unit in _UNITS_MS if unit)
        raise OptionError(name, f"must be a time like 15m (units: {units}), not {options[name]!r}")
    return int(int(form[1]) * _UNITS_MS[form[2]])


def by_partition(option: str, text: str, form: str, *, least: int) -> dict[TopicPartition, int]:
    """JSON with a number of at least ``least`` a partition: ``{"topic": {"0": 23}}``."""
    numbers: dict[TopicPartition, int] = {}
    for topic, partitions in json_object(option, text, form).items():
        if not isinstance(partitions, dict):
            raise OptionError(option, f"{form}; {topic!r} has {partitions!r}")
        for partition, given in partitions.items():
            # Whoever makes the JSON out of a table may write 23 as 23.0.
            found = int(given) if isinstance(given, float) and given.is_integer() else given
            if not re.fullmatch(r"\d+", partition, re.ASCII) or not is_int(found) or not least <= found <= MOST:
                raise OptionError(option, f"{form}; {topic!r} has {{{partition!r}: {found!r}}}")
            numbers[TopicPartition(topic, int(partition))] = found
    return numbers


def json_object(option: str, text: str, form: str) -> dict[str, Any]:
    """A JSON object; ``form`` is what the refusal asks for."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise OptionError(option, f"{form}, not {text!r}")
    return value


def is_int(value: object) -> bool:
    """Whether a value of JSON is a whole number. In Python, True is an int too."""
    return isinstance(value, int) and not isinstance(value, bool)
