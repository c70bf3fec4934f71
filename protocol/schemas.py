"""Schemas of Kafka's messages: the fields of each, with their types and the versions that have them.

`loadwise.protocol.make_schemas` writes them to ``messages.txt`` from the JAR of a Kafka release. The first line of a
message has its name, API key, versions and flexible versions (KIP-482). Each field has a line, indented by its depth:
name, type, versions, then ``nullable``, ``tagged``, ``tag`` and ``default`` where it has them. A line with ``struct``
begins a struct that several fields share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

NEVER = range(0)
"""No version."""
_EVERY_LATER = 32_768
_MESSAGES = Path(__file__).with_name("messages.txt")
_OPERATIONS = "authorized_operations"


@dataclass(frozen=True, slots=True, eq=False)
class StructSchema:
    """A message, or a struct inside one."""

    name: str
    """Kafka's, as ``JoinGroupRequestProtocol``."""
    fields: Mapping[str, Field]
    """By name, in the order on the wire."""


@dataclass(frozen=True, slots=True, eq=False)
class MessageSchema(StructSchema):
    """A request or a response."""

    key: int
    """Kafka's API key."""
    versions: range
    flexible: range
    """Versions with compact lengths and tagged fields (KIP-482)."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field of a struct."""

    name: str
    """In snake case."""
    kind: str
    """Kafka's type, of an array its elements' type; ``bitfield`` for a set of operations (KIP-430)."""
    versions: range
    nullable: range
    tagged: range
    tag: int | None
    default: Any
    """The value of a field that is not given. Arrays share the empty tuple."""
    is_array: bool
    struct: StructSchema | None
    """Of a struct, or of an array's elements."""

    @property
    def element(self) -> Field:
        """An element of this array as a field, which is never null."""
        return replace(self, is_array=False, nullable=NEVER)


@cache
def schema(name: str) -> MessageSchema:
    """The schema of a message, as ``JoinGroupRequest``; read once. Raises `LookupError`."""
    found = _texts().get(name)
    if found is None:
        raise LookupError(f"there is no schema of {name}")
    return _message(found)


def key_and_versions(name: str) -> tuple[int, range]:
    """The API key and the versions of a message, without its fields. Raises `LookupError`."""
    found = _texts().get(name)
    if found is None:
        raise LookupError(f"there is no schema of {name}")
    _, key, versions, *_ = found[0].split()
    return int(key), _range(versions)


def api_name(key: int) -> str:
    """Kafka's name of the API with this key, as ``JoinGroup``. Raises `LookupError`."""
    return _names()[key]


@cache
def _names() -> Mapping[int, str]:
    heads = (lines[0].split() for lines in _texts().values())
    return {int(key): name.removesuffix("Request") for name, key, *_ in heads if name.endswith("Request")}


def names() -> Sequence[str]:
    """The names of all messages."""
    return list(_texts())


@cache
def _texts() -> Mapping[str, Sequence[str]]:
    """The lines of each message, which are parsed on first use."""
    texts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in _MESSAGES.read_text("utf-8").splitlines():
        if line.startswith("#") or not line:
            continue
        if not line.startswith(" "):
            lines = texts[line.split()[0]] = []
        lines.append(line)
    return texts


def _message(lines: Sequence[str]) -> MessageSchema:
    name, key, versions, _, flexible = lines[0].split()
    own, *shared = _blocks(lines[1:], lambda line: line.startswith("  struct "))
    reader = _Reader({block[0].split()[1]: block[1:] for block in shared})
    return MessageSchema(name, reader.fields(own), int(key), _range(versions), _range(flexible))


def _blocks(lines: Sequence[str], begins: Callable[[str], bool]) -> list[Sequence[str]]:
    """Cut lines before each one that begins a block; the first block is what comes before."""
    starts = [number for number, line in enumerate(lines) if begins(line)]
    return [lines[start:end] for start, end in pairwise([0, *starts, len(lines)])]


class _Reader:
    def __init__(self, shared: Mapping[str, Sequence[str]]) -> None:
        self._shared = shared
        """The lines of each struct that several fields have."""
        self._made: dict[str, StructSchema] = {}

    def fields(self, lines: Sequence[str]) -> Mapping[str, Field]:
        if not lines:
            return {}
        depth = _depth(lines[0])
        _, *blocks = _blocks(lines, lambda line: _depth(line) == depth)
        found = (self._field(head.split(), inside) for head, *inside in blocks)
        return {field.name: field for field in found}

    def _struct(self, kind: str, inside: Sequence[str]) -> StructSchema | None:
        if inside:
            return StructSchema(kind, self.fields(inside))
        if kind in self._shared and kind not in self._made:
            self._made[kind] = StructSchema(kind, self.fields(self._shared[kind]))
        return self._made.get(kind)

    def _field(self, words: Sequence[str], inside: Sequence[str]) -> Field:
        name, kind, versions = words[:3]
        facts = dict(zip(words[3::2], words[4::2], strict=True))
        is_array = kind.startswith("[]")
        kind = kind.removeprefix("[]")
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        if kind == "int32" and snake.endswith(_OPERATIONS):
            kind = "bitfield"
        struct = self._struct(kind, inside)
        tag = facts.get("tag")
        return Field(
            name=snake,
            kind=kind,
            versions=_range(versions),
            nullable=_range(facts.get("nullable")),
            tagged=_range(facts.get("tagged")),
            tag=None if tag is None else int(tag),
            default=_default(kind, facts.get("default"), is_array=is_array, is_struct=struct is not None),
            is_array=is_array,
            struct=struct,
        )


def _default(kind: str, given: str | None, *, is_array: bool, is_struct: bool) -> Any:
    if given == "null" or (is_struct and not is_array) or kind == "bitfield":
        return None
    if is_array:
        return ()
    if kind == "string":
        return given or ""
    if kind in {"bytes", "records"}:
        return b""
    if kind == "uuid":
        return None if given is None else UUID(given)
    if kind == "bool":
        return (given or "").lower() == "true"
    if kind == "float64":
        return float(given or 0)
    return int(given or "0", 0)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _range(versions: str | None) -> range:
    """The versions of Kafka's ``0-3``, ``2``, ``4+`` and ``none``."""
    if versions is None or versions == "none":
        return NEVER
    if versions.endswith("+"):
        return range(int(versions[:-1]), _EVERY_LATER)
    first, _, last = versions.partition("-")
    return range(int(first), int(last or first) + 1)
