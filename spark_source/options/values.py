"""The forms of option values: each function reads the text of an option, or makes a function that does.

Every `OptionError` names the option, the required form and the given value.
Durations are Spark's time strings (``JavaUtils.timeStringAsMs``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.errors import OptionError

T = TypeVar("T")
Form: TypeAlias = Callable[[str, str], T]
"""Reads a value from the option's name and its text. Raises `OptionError`."""

_UNITS_MS = {"us": 1e-3, "": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

MOST = (1 << 63) - 1
"""Kafka's offsets and times in ms have 64 bits, and so do Spark's numbers."""


def text(_: str, given: str) -> str:
    """Read any text, without spaces around it."""
    return given.strip()


def verbatim(_: str, given: str) -> str:
    """Read any text as it is."""
    return given


def whole_number(least: int = 1, most: int = MOST) -> Form[int]:
    """Make a form for whole numbers."""

    def read(name: str, given: str) -> int:
        number = given.strip()
        if not re.fullmatch(r"\d{1,19}", number, re.ASCII) or not least <= int(number) <= most:
            # The upper bound is shown only to users who exceeded it.
            bound = f" and at most {most}" if number.isdecimal() and len(number) >= len(str(most)) else ""
            raise OptionError(name, f"must be a whole number of at least {least}{bound}, not {given!r}")
        return int(number)

    return read


def real_number(least: float, most: float) -> Form[float]:
    """Make a form for numbers."""

    def read(name: str, given: str) -> float:
        try:
            number = float(given)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise OptionError(name, f"must be a number from {least:g} to {most:g}, not {given!r}")
        return number

    return read


def one_of(*known: str) -> Form[str]:
    """Make a form for one of some words, in any case."""

    def read(name: str, given: str) -> str:
        word = given.strip().lower()
        if word not in known:
            *others, last = map(repr, known)
            raise OptionError(name, f"must be {', '.join(others)} or {last}, not {given!r}")
        return word

    return read


def flag(name: str, given: str) -> bool:
    """Read ``true`` or ``false`` in any case."""
    return one_of("true", "false")(name, given) == "true"


def duration_ms(name: str, given: str) -> int:
    """Read a time string such as ``15m`` or ``500ms``; a plain number is milliseconds."""
    form = re.fullmatch(r"(\d+)\s*([a-z]*)", given.strip().lower(), re.ASCII)
    if form is None or form[2] not in _UNITS_MS:
        units = ", ".join(unit for unit in _UNITS_MS if unit)
        raise OptionError(name, f"must be a time like 15m (units: {units}), not {given!r}")
    return int(int(form[1]) * _UNITS_MS[form[2]])


def by_partition(form: str, least: int) -> Form[dict[TopicPartition, int]]:
    """Make a form for JSON with a number of at least ``least`` for each partition: ``{"topic": {"0": 23}}``."""

    def read(name: str, given: str) -> dict[TopicPartition, int]:
        numbers: dict[TopicPartition, int] = {}
        for topic, partitions in json_object(name, given, form).items():
            if not isinstance(partitions, dict):
                raise OptionError(name, f"{form}; {topic!r} has {partitions!r}")
            for partition, number in partitions.items():
                # JSON generated from a table may have 23.0 for 23.
                found = int(number) if isinstance(number, float) and number.is_integer() else number
                if not re.fullmatch(r"\d+", partition, re.ASCII) or not is_int(found) or not least <= found <= MOST:
                    raise OptionError(name, f"{form}; {topic!r} has {{{partition!r}: {found!r}}}")
                numbers[TopicPartition(topic, int(partition))] = found
        return numbers

    return read


def by_topic(least: float, most: float) -> Form[dict[str, float]]:
    """Make a form for JSON with a number for each topic: ``{"topic": 2.5}``."""
    form = 'must be JSON like {"topic": 2.5}'

    def read(name: str, given: str) -> dict[str, float]:
        numbers = json_object(name, given, form)
        for topic, number in numbers.items():
            if isinstance(number, bool) or not isinstance(number, int | float) or not least <= number <= most:
                raise OptionError(name, f"{form}, each from {least} to {most}; {topic!r} has {number!r}")
        return {topic: float(number) for topic, number in numbers.items()}

    return read


def json_object(name: str, given: str, form: str) -> dict[str, Any]:
    """Read a JSON object; ``form`` is the form that the error names."""
    try:
        value = json.loads(given)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise OptionError(name, f"{form}, not {given!r}")
    return value


def is_int(value: object) -> bool:
    """Whether a JSON value is a whole number. In Python, True is an int, too."""
    return isinstance(value, int) and not isinstance(value, bool)
