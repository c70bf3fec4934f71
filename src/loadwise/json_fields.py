"""Checks of JSON that users write: each error names the place, the value and what is expected there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NoReturn

from loadwise.nearest import near_or_all

MISSING = object()
"""The value of a missing field. Any other default could also be a value that the user wrote."""


class JsonFields:
    """Returns values with the expected type; raises an ``error`` of this class for all others."""

    def __init__(self, error: type[Exception], *, largest: float) -> None:
        self._error, self._largest = error, largest

    def known(self, given: dict[str, Any], names: Collection[str], where: str = "") -> dict[str, Any]:
        """Refuse unknown fields, so that a misspelt one is not treated as missing."""
        for name in given:
            if name not in names:
                raise self._error(f"{where}{_cut(name)} is not a field{near_or_all(name, names)}")
        return given

    def an_object(self, value: object, where: str) -> dict[str, Any]:
        """Return an object."""
        return value if isinstance(value, dict) else self.refuse(value, where, "an object")

    def a_list(self, value: object, where: str) -> list[Any]:
        """Return a list."""
        return value if isinstance(value, list) else self.refuse(value, where, "a list")

    def text(self, value: object, where: str, *, filled: bool = False) -> str:
        """Return a string; with ``filled``, one that is not empty."""
        if not isinstance(value, str) or (filled and not value):
            self.refuse(value, where, "a string that is not empty" if filled else "a string")
        return value

    def texts(self, value: object, where: str) -> list[str]:
        """Return a list of strings."""
        return [self.text(item, f"{where}[{index}]") for index, item in enumerate(self.a_list(value, where))]

    def whole(self, value: object, where: str, *, least: int | None = None) -> int:
        """Return a whole number of 32 bits."""
        if not isinstance(value, int) or isinstance(value, bool) or not -(2**31) <= value < 2**31:
            self.refuse(value, where, "a whole number of 32 bits")
        if least is not None and value < least:
            self.refuse(value, where, f"{least} or more")
        return value

    def number(self, value: object, where: str, *, least: float | None = None) -> float:
        """Return a number that is not too large."""
        if not isinstance(value, int | float) or isinstance(value, bool):
            self.refuse(value, where, "a number")
        if not abs(value) <= self._largest:
            raise self._error(f"{where} is {_shown(value)}; the largest number allowed is {self._largest:g}")
        if least is not None and value < least:
            self.refuse(value, where, f"{least:g} or more")
        return float(value)

    def refuse(self, value: object, where: str, expected: str) -> NoReturn:
        """Raise the error."""
        raise self._error(f"{where} is {_shown(value)}; expected {expected}")


def _shown(value: object) -> str:
    if value is MISSING:
        return "missing"
    return "null" if value is None else _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
