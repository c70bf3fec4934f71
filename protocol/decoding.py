"""Decoders of messages, generated: one function for each message and version, from the schema.

They read what a peer sent, so every count and length is held against the bytes that are there, as Kafka's own classes
do it: a negative length is null, which only a nullable field may be; an array has no more elements than bytes are left;
a string has at most 32,767 bytes; a variable-length integer has at most five. Bad UTF-8 is replaced, as Java does.
Unknown tagged fields are skipped. Made at first use; making one takes about a millisecond.

A message of more elements than a decoder may read at once is refused before they are made: `AT_ONCE`. Elements of all
arrays count, and tagged fields. `decoder_in_turns` reads larger ones, with a pause after each element.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from functools import cache
from struct import Struct as Layout
from typing import Any, TypeAlias
from uuid import UUID

from loadwise.protocol.errors import TooManyElementsError
from loadwise.protocol.schemas import Field, MessageSchema, StructSchema
from loadwise.protocol.source import Source
from loadwise.protocol.structs import struct_class

Decoder: TypeAlias = Callable[..., tuple[Any, int]]
"""From bytes, a position, and how many elements there may be, to the message and the position after it."""
DecoderInTurns: TypeAlias = Callable[[bytes, int, int, int], Generator[None, None, tuple[Any, int]]]
"""From bytes, a position, and how many elements there may be in all, and beside the rows and in each of them."""

AT_ONCE = 1_000
"""The default for the most elements in the arrays of a message: a millisecond or two of work."""

FIXED = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
    "bitfield": ("I", 4),
}
"""Types of a fixed size: their format in a `struct.Struct`, and their size."""

_NO_UUID = bytes(16)
_MAX_STRING = 0x7FFF


@cache
def decoder(schema: MessageSchema, version: int) -> Decoder:
    """The decoder of a message in a version; made once.

    It raises `ValueError`, `IndexError` and `struct.error` for bytes that are no such message, and
    `TooManyElementsError` for one with too many elements.
    """
    decode: Decoder = _DecoderSource(version, flexible=version in schema.flexible).function(schema)
    return decode


@cache
def decoder_in_turns(schema: MessageSchema, version: int, rows: tuple[str, ...]) -> DecoderInTurns:
    """The same as `decoder`, with a pause after each element.

    ``rows``: the array that may be long, and an array inside its elements that may be, too.
    """
    flexible = version in schema.flexible
    decode: DecoderInTurns = _DecoderSource(version, flexible=flexible, in_turns=True, rows=rows).function(schema)
    return decode


def varint(data: bytes, position: int) -> tuple[int, int]:
    """An unsigned variable-length integer, and the position after it; as an ``int`` of Java's.

    Raises `IndexError` where the bytes end, and `ValueError` where it has more than five.
    """
    value = 0
    for shift in range(0, 35, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFF
            return value if value < 2**31 else value - 2**32, position
    raise ValueError("a variable-length integer is longer than 5 bytes")


def skip_tags(data: bytes, position: int, left: int = AT_ONCE) -> tuple[int, int]:
    """The position after unknown tagged fields, and how many more elements there may be."""
    number, position = varint(data, position)
    left -= number
    if left < 0:
        raise _too_many_at_once()
    for _ in range(number):
        _, position = varint(data, position)
        position = _end_of_tag(data, *varint(data, position))
    return position, left


def _end_of_tag(data: bytes, size: int, position: int) -> int:
    left = len(data) - position
    if not 0 <= size <= left:
        raise ValueError(f"{size} bytes announced, {left} left")
    return position + size


def _uuid(data: bytes) -> UUID | None:
    return None if data == _NO_UUID else UUID(bytes=data)


def _bits(value: int) -> set[int] | None:
    """A set of authorized operations; None where they were not asked for."""
    bits = {number for number in range(32) if value >> number & 1}
    return None if bits == {31} else bits


def _null(path: str) -> ValueError:
    return ValueError(f"has null in {path}, which may not be null")


def _short() -> ValueError:
    return ValueError("ends early")


def _too_many(number: int, left: int) -> ValueError:
    return ValueError(f"announces {number} elements, with {left} bytes left")


def _too_many_at_once() -> TooManyElementsError:
    return TooManyElementsError("has more elements than are read at once")


_NAMES: Mapping[str, Any] = {
    "varint": varint,
    "skip_tags": skip_tags,
    "end_of_tag": _end_of_tag,
    "uuid": _uuid,
    "bits": _bits,
    "null": _null,
    "short": _short,
    "too_many": _too_many,
    "too_many_at_once": _too_many_at_once,
    "Layout": Layout,
}


class _DecoderSource(Source):
    def __init__(self, version: int, *, flexible: bool, in_turns: bool = False, rows: tuple[str, ...] = ()) -> None:
        super().__init__(version, _NAMES, flexible=flexible)
        self._in_turns = in_turns
        self._rows = {".".join(rows[:depth]) for depth in range(1, len(rows) + 1)}
        self._run: list[tuple[str, int, str]] = []
        """Format, size and variable of fields that are still to be unpacked together."""

    def function(self, schema: MessageSchema) -> Any:
        if self._in_turns:
            self._lines += ["def decode(d, p, left, most):", "    size = len(d); inside = most"]
        else:
            self._lines += [f"def decode(d, p, left={AT_ONCE}):", "    size = len(d)"]
        made = self._struct(schema, "", "    ")
        self._emit("    ", *["yield"] * self._in_turns, f"return {made}, p")
        return self._compiled("decode", schema.name)

    # ---- source ----

    def _fixed(self, type_name: str, indent: str) -> str:
        """A field of a fixed size, which is unpacked with those around it."""
        layout, size = FIXED[type_name]
        variable = self._variable()
        self._run.append((layout, size, variable))
        if type_name == "uuid":
            self._emit(indent, f"{variable} = uuid({variable})")
        elif type_name == "bitfield":
            self._emit(indent, f"{variable} = bits({variable})")
        return variable

    def _flush(self, indent: str) -> None:
        if not self._run:
            return
        run, self._run = self._run, []
        name = self._named(Layout(">" + "".join(layout for layout, _, _ in run)).unpack_from)
        variables = "".join(f"{variable}, " for _, _, variable in run)
        self._lines.append(f"{indent}{variables}= {name}(d, p); p += {sum(size for _, size, _ in run)}")

    def _length(self, fixed: str, indent: str) -> str:
        """The length of what follows: -1 or less is null."""
        if not self._flexible:
            return self._fixed(fixed, indent)
        variable = self._variable()
        self._emit(
            indent,
            f"{variable} = d[p]; p += 1",
            f"if {variable} > 127: {variable}, p = varint(d, p - 1)",
            f"{variable} -= 1",
        )
        return variable

    # ---- fields ----

    def _struct(self, struct: StructSchema, path: str, indent: str) -> str:
        """A struct; answers with an expression that makes it of its fields' variables."""
        version = self._version
        every = struct.fields.values()
        fields = [field for field in every if version in field.versions]
        tagged = [field for field in fields if version in field.tagged]
        found = {
            field.name: self._field(field, f"{path}{field.name}", indent) for field in fields if field not in tagged
        }
        if tagged or (self._flexible and self._in_turns):
            found |= self._tagged(tagged, path, indent)
        elif self._flexible:
            self._emit(indent, "if d[p]: p, left = skip_tags(d, p, left)", "else: p += 1")
        self._flush(indent)
        values = (found.get(field.name) or self._named(field.default) for field in every)
        return f"{self._named(struct_class(struct))}({', '.join(values)})"

    def _field(self, field: Field, path: str, indent: str) -> str:
        nullable = self._version in field.nullable
        if field.is_array:
            return self._array(field, path, indent, nullable=nullable)
        if field.struct is not None:
            return self._nested(field.struct, path, indent, nullable=nullable)
        if field.kind == "string":
            return self._bytes(path, indent, nullable=nullable, is_text=True)
        if field.kind in {"bytes", "records"}:
            return self._bytes(path, indent, nullable=nullable, is_text=False)
        return self._fixed(field.kind, indent)

    def _bytes(self, path: str, indent: str, *, nullable: bool, is_text: bool) -> str:
        length = self._length("int16" if is_text else "int32", indent)
        variable = self._variable()
        taken = 'str(d[p:e], "utf-8", "replace")' if is_text else "d[p:e]"
        bound = f"if e > size{f' or {length} > {_MAX_STRING}' if is_text and self._flexible else ''}: raise short()"
        self._emit(
            indent,
            f"if {length} < 0:",
            f"    {variable} = None" if nullable else f"    raise null({path!r})",
            "else:",
            f"    e = p + {length}",
            f"    {bound}",
            f"    {variable} = {taken}; p = e",
        )
        return variable

    def _array(self, field: Field, path: str, indent: str, *, nullable: bool) -> str:
        number = self._length("int32", indent)
        variable = self._variable()
        self._emit(
            indent,
            f"if {number} < 0:",
            f"    {variable} = None" if nullable else f"    raise null({path!r})",
            f"elif {number} > size - p: raise too_many({number}, size - p)",
            "else:",
        )
        inside = indent + "    "
        is_rows = path in self._rows
        self._count(number, inside, is_inside=not is_rows)
        if field.kind in FIXED and field.kind != "uuid":
            layout, size = FIXED[field.kind]
            unpacked = f"Layout('>%d{layout}' % {number}).unpack_from(d, p)"
            self._emit(inside, f"{variable} = list({unpacked}); p += {size} * {number}")
            return variable
        self._emit(inside, f"{variable} = []", f"for _ in range({number}):")
        deeper = inside + "    "
        if self._in_turns:
            self._emit(deeper, "yield", *["inside = most"] * is_rows)
        if field.struct is None:
            item = self._field(field.element, path, deeper)
        else:
            item = self._struct(field.struct, f"{path}.", deeper)
        self._emit(deeper, f"{variable}.append({item})")
        return variable

    def _count(self, number: str, indent: str, *, is_inside: bool) -> None:
        """Refuse elements beyond the limits."""
        self._emit(indent, f"left -= {number}", "if left < 0: raise too_many_at_once()")
        if self._in_turns and is_inside:
            self._emit(indent, f"inside -= {number}", "if inside < 0: raise too_many_at_once()")

    def _nested(self, struct: StructSchema, path: str, indent: str, *, nullable: bool) -> str:
        if not nullable:
            variable = self._variable()
            made = self._struct(struct, f"{path}.", indent)
            self._emit(indent, f"{variable} = {made}")
            return variable
        mark = self._fixed("int8", indent)
        variable = self._variable()
        self._emit(indent, f"if {mark} < 0: {variable} = None", "else:")
        made = self._struct(struct, f"{path}.", indent + "    ")
        self._emit(indent + "    ", f"{variable} = {made}")
        return variable

    def _tagged(self, fields: Iterable[Field], path: str, indent: str) -> dict[str, str]:
        found = {}
        for field in fields:
            variable = found[field.name] = self._variable()
            self._emit(indent, f"{variable} = {self._named(field.default)}")
        number, tag, length = self._variable(), self._variable(), self._variable()
        self._emit(indent, f"{number}, p = varint(d, p)")
        self._count(number, indent, is_inside=True)
        self._emit(indent, f"for _ in range({number}):")
        inside = indent + "    "
        self._emit(inside, *["yield"] * self._in_turns)
        self._emit(inside, f"{tag}, p = varint(d, p); {length}, p = varint(d, p)")
        for field in fields:
            self._emit(inside, f"if {tag} == {field.tag}:")
            value = self._field(field, f"{path}{field.name}", inside + "    ")
            self._emit(inside + "    ", f"{found[field.name]} = {value}", "continue")
        self._emit(inside, f"p = end_of_tag(d, {length}, p)")
        return found
