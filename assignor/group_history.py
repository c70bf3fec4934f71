"""A leader's newest readings and decisions as a file of JSON lines, so that a report from production becomes a test.

The first line has the watch before the first event, each further line an event or a decision. Objects are written as
their class's name and their fields. Reading a file makes objects of loadwise's own classes without calling anything of
them, so a file from anybody does no harm.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from loadwise.assignor.errors import BadHistoryError
from loadwise.assignor.live.history import History, replay

_FORMAT = 1
_CLASSES = (
    "loadwise.assignor.live.",
    "loadwise.assignor.algorithms.",
    "loadwise.assignor.member",
    "loadwise.assignor.model",
    "loadwise.protocol.",
)
"""Where the classes of a file come from."""
_KIND = "!"
"""The key with the kind of an object."""
_COLLECTIONS: Mapping[str, Callable[..., Any]] = {
    each.__name__: each for each in (tuple, set, frozenset, dict, deque, Counter)
}


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class GroupHistory(History):
    """The newest events of a group's watch and what was decided, as ``consumer.rebalances.history()`` returns them."""

    recorded: tuple[str, ...] = ()
    """The decisions in words as they were made."""

    @classmethod
    def of(cls, history: History) -> GroupHistory:
        """Return a history that can be saved."""
        recorded = tuple(map(str, history.decisions))
        return cls(start=history.start, events=history.events, decisions=history.decisions, recorded=recorded)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the history as JSON lines; ``loadwise replay`` reads them."""
        lines = [{"loadwise": _FORMAT, "start": _Writer().written(self.start)}]
        lines += [{"event": _Writer().written(event)} for event in self.events]
        lines += [{"decision": text} for text in self.recorded]
        Path(path).write_text(
            "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8"
        )

    @classmethod
    def load(cls, path: str | PathLike[str]) -> GroupHistory:
        """Read what `save` wrote, and make its decisions again. Raises `BadHistoryError`, and OSError."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise BadHistoryError(f"{path} is not a history of a group: it is not UTF-8") from error
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, name: str = "the text") -> GroupHistory:
        """Read the text of a file; ``name`` is that of the file, for errors. Raises `BadHistoryError`."""
        first, *rest = _lines(text, name) or [None]
        if not isinstance(first, dict) or "loadwise" not in first:
            raise BadHistoryError(
                f'{name} is not a history of a group: its first line has no "loadwise"; write one with'
                " consumer.rebalances.history().save(path)"
            )
        if first["loadwise"] != _FORMAT:
            raise BadHistoryError(f"{name} has the format {first['loadwise']!r}; this version reads {_FORMAT}")
        try:
            history = History(
                start=_Reader().read(first["start"]),
                events=tuple(_Reader().read(line["event"]) for line in rest if "event" in line),
            )
            recorded = tuple(line["decision"] for line in rest if "decision" in line)
            decisions = tuple(replay(history))
        except BadHistoryError as error:
            raise BadHistoryError(f"{name}: {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, ImportError) as error:
            raise BadHistoryError(f"{name} is damaged, or another version of loadwise wrote it") from error
        return cls(start=history.start, events=history.events, decisions=decisions, recorded=recorded)

    def differences(self) -> Iterator[tuple[str, str]]:
        """Yield each decision that differs now: as it was recorded, and as it is made now; empty for none."""
        for then, now in zip_longest(self.recorded, map(str, self.decisions), fillvalue=""):
            if then != now:
                yield then, now


def _lines(text: str, name: str) -> list[Any]:
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            lines.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise BadHistoryError(f"{name} is not a history of a group: line {number} is not JSON") from error
    return lines


class _Writer:
    """Turns objects into values of JSON; an object that occurs twice is written once."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def written(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if np.isfinite(value) else {_KIND: "float", "of": str(value)}
        if kind is list:
            return [self.written(each) for each in value]
        if isinstance(value, np.ndarray):
            flat = [self.written(each) for each in value.ravel().tolist()]
            return {_KIND: "array", "dtype": value.dtype.str, "shape": value.shape, "of": flat}
        if isinstance(value, np.generic):
            return {_KIND: "scalar", "dtype": value.dtype.str, "of": self.written(value.item())}
        if issubclass(kind, dict):
            return {
                _KIND: kind.__name__,
                "of": [[self.written(key), self.written(each)] for key, each in value.items()],
            }
        if kind in (set, frozenset):
            return {_KIND: kind.__name__, "of": [self.written(each) for each in sorted(value)]}
        if kind is deque:
            return {_KIND: "deque", "most": value.maxlen, "of": [self.written(each) for each in value]}
        if issubclass(kind, tuple) and not kind.__module__.startswith(_CLASSES):  # a client's partitions, too
            return {_KIND: "tuple", "of": [self.written(each) for each in value]}
        name = {_KIND: f"{kind.__module__}:{kind.__qualname__}"}
        if isinstance(value, tuple):
            return name | {"of": [self.written(each) for each in value]}
        if id(value) in self._numbers:
            return {_KIND: "again", "of": self._numbers[id(value)]}
        self._numbers[id(value)] = len(self._numbers)
        fields = getattr(value, "__dict__", {}) | {
            slot: getattr(value, slot)
            for base in kind.__mro__
            for slot in getattr(base, "__slots__", ())
            if hasattr(value, slot)
        }
        return name | {"of": {field: self.written(each) for field, each in fields.items()}}


class _Reader:
    def __init__(self) -> None:
        self._made: list[Any] = []

    def read(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.read(each) for each in value]
        if not isinstance(value, dict):
            return value
        kind, of = value[_KIND], value["of"]
        if kind == "float":
            return float(of)
        if kind == "array":
            return np.array(self.read(of), np.dtype(value["dtype"])).reshape(value["shape"])
        if kind == "scalar":
            return np.dtype(value["dtype"]).type(self.read(of))
        if kind == "again":
            return self._made[of]
        if kind == "deque":
            return deque(self.read(of), value["most"])
        if kind in _COLLECTIONS:
            pairs = kind in ("dict", "Counter")
            return _COLLECTIONS[kind]({self.read(key): self.read(each) for key, each in of} if pairs else self.read(of))
        return self._object(kind, of)

    def _object(self, kind: str, of: Any) -> Any:
        module, _, name = kind.partition(":")
        made = getattr(import_module(module), name, None) if module.startswith(_CLASSES) else None
        if not isinstance(made, type) or made.__module__ != module:
            raise BadHistoryError(f"{kind} is not a class of a history; only loadwise's own assignors can be replayed")
        if issubclass(made, tuple):
            return tuple.__new__(made, self.read(of))
        empty = object.__new__(made)
        self._made.append(empty)
        for field, each in of.items():
            object.__setattr__(empty, field, self.read(each))
        return empty
