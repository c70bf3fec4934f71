"""What a config is: its name, type, default and the values that it takes. Mirrors Kafka's ``ConfigDef``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from math import isfinite, isnan
from typing import NamedTuple

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class ConfigType(IntEnum):
    """What a value is (``DescribeConfigsResponse.ConfigType``)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class BadConfigError(ValueError):
    """A config that there is not, or a value that it does not take; the message names both."""


class OtherUnit(NamedTuple):
    """A broker's config that means the same as another one in milliseconds, as log.retention.hours."""

    name: str
    ms: int
    """How many milliseconds its unit has."""
    default: str | None = None
    """None: it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One config."""

    name: str
    type: ConfigType
    default: str
    broker_config: str | None = None
    """The broker's config that is the default of this one, or None."""
    has_default: bool = True
    """Whether it has a value before it is set; the default is empty if not."""
    others: Sequence[OtherUnit] = ()
    """For a broker's config that is null until it is set: the ones that hold meanwhile, the first that is set."""
    check: Callable[[str], str | None] = lambda _: None
    """The fault of a value of the right type, or None."""

    words: str = "Invalid value {value} for configuration {name}: {problem}"
    """How a value is refused that ``check`` has something against."""

    def refusal(self, value: str) -> str | None:
        """What is wrong with a value; None if it may be."""
        problem = _type_problem(self.type, value.strip())
        if problem is not None:
            return f"Invalid value {value} for configuration {self.name}: {problem}"
        problem = self.check(value.strip())
        return None if problem is None else self.words.format(value=value, name=self.name, problem=problem)

    def written(self, value: str) -> str:
        """A value that may be, as Kafka writes it when it describes it (``ConfigDef.convertToString``)."""
        return _written(self.type, value.strip())


class Definitions:
    """All configs of one kind of resource."""

    def __init__(self, kind: str, definitions: Iterable[Definition]) -> None:
        self._kind = kind
        self.by_name: Mapping[str, Definition] = {each.name: each for each in definitions}

    def check(self, configs: Mapping[str, str]) -> None:
        """Raise `BadConfigError` for a name that there is not, or a value that cannot be."""
        for name, value in configs.items():
            definition = self.by_name.get(name)
            if definition is None:
                raise BadConfigError(f"Unknown {self._kind} config name: {name}")
            problem = definition.refusal(value)
            if problem is not None:
                raise BadConfigError(problem)

    def is_list(self, name: str) -> bool:
        """Whether a config's value is a list, to which one can append."""
        definition = self.by_name.get(name)
        return definition is not None and definition.type is ConfigType.LIST


def at_least(least: int) -> Callable[[str], str | None]:
    """Whole numbers from ``least`` on."""
    return lambda value: None if int(value) >= least else f"Value must be at least {least}"


def between(least: float, most: float) -> Callable[[str], str | None]:
    """Numbers from ``least`` to ``most``."""
    return lambda value: None if least <= float(value) <= most else f"Value must be between {least} and {most}"


def one_of(*allowed: str) -> Callable[[str], str | None]:
    """One of some words."""
    return lambda value: None if value in allowed else f"String must be one of: {', '.join(allowed)}"


def items(value: str) -> Sequence[str]:
    """The items of a list as it is written, with commas between them."""
    return [each.strip() for each in value.split(",")] if value.strip() else []


_MOST = {ConfigType.SHORT: 2**15 - 1, ConfigType.INT: INT_MAX, ConfigType.LONG: LONG_MAX}


def _written(kind: ConfigType, value: str) -> str:
    match kind:
        case ConfigType.BOOLEAN:
            return value.lower()
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            return str(int(value))
        case ConfigType.DOUBLE:
            return _java_double(float(value))
        case ConfigType.LIST:
            return ",".join(items(value))
    return value


def _java_double(number: float) -> str:
    """A number as Java's ``Double.toString`` writes it: digits and exponent are Python's, their form is not."""
    if not isfinite(number):
        return "NaN" if isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or _LEAST_PLAIN <= abs(number) < _FIRST_WITH_EXPONENT:
        return format(number, "f") if "e" in repr(number) else repr(number)
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}E{len(digits) - 1 + int(exponent)}"


_LEAST_PLAIN, _FIRST_WITH_EXPONENT = 1e-3, 1e7


def _type_problem(kind: ConfigType, value: str) -> str | None:
    match kind:
        case ConfigType.BOOLEAN if value.lower() not in {"true", "false"}:
            return "Expected value to be either true or false"
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            limit = _MOST[kind]
            digits = value.removeprefix("-") if value.startswith("-") else value.removeprefix("+")
            # Not int() alone: it takes "1_000" and digits that are not ASCII's.
            if not (digits.isascii() and digits.isdecimal() and -limit - 1 <= int(value) <= limit):
                return f"Not a number of type {kind.name}"
        case ConfigType.DOUBLE:
            try:
                float(value)
            except ValueError:
                return "Not a number of type DOUBLE"
    return None
