"""The source of one function that is generated from a schema."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import count
from typing import Any


class Source(ABC):
    """Lines of source, and the values that they name. Fields of a fixed size that follow each other are one line."""

    def __init__(self, version: int, names: Mapping[str, Any], *, flexible: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._names = dict(names)
        self._lines: list[str] = []
        self._numbers = count()

    def _emit(self, indent: str, *lines: str) -> None:
        self._flush(indent)
        self._lines += [indent + line for line in lines]

    @abstractmethod
    def _flush(self, indent: str) -> None:
        """Write the line of the fields of a fixed size that are still to come."""

    def _named(self, value: Any) -> str:
        name = f"n{next(self._numbers)}"
        self._names[name] = value
        return name

    def _variable(self) -> str:
        return f"v{next(self._numbers)}"

    def _compiled(self, function: str, what: str) -> Any:
        """Return a function of the source; ``what`` it is for stands in tracebacks."""
        exec(compile("\n".join(self._lines), f"<{what} v{self._version}>", "exec"), self._names)  # noqa: S102
        return self._names[function]
