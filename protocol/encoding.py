"""Encoders of messages, generated: one function for each message and version, from the schema.

A message becomes a list of pieces that are joined once; fields of a fixed size that follow each other are packed at
once, and bytes (records, subscriptions) go in as they are. Null is written where a value is None, whatever the schema
allows. A tagged field that has its default is left out. A string above 32,767 bytes raises `ValueError`, as Kafka
refuses to write it. Made at first use.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import cache
from struct import Struct as Layout
from typing import Any, TypeAlias

from loadwise.protocol.decoding import FIXED
from loadwise.protocol.schemas import Field, MessageSchema, StructSchema
from loadwise.protocol.source import Source

Encoder: TypeAlias = Callable[[Any], list[bytes]]
"""From a message, or any object with its fields, to the pieces of its body."""

_MAX_STRING = 0x7FFF
_NO_UUID = bytes(16)
_NOT_ASKED = 1 << 31
_JOINED = 1000
"""So many pieces of a body that is encoded in turns are joined at once."""


@cache
def encoder_in_turns(schema: MessageSchema, version: int) -> Callable[[Any], Generator[None, None, list[bytes]]]:
    """The same as `encoder`, with a pause after each element of an array; it empties the arrays of structs.

    Many small pieces are joined to a few large ones, since a piece takes more memory than its bytes.
    """
    source = _EncoderSource(version, flexible=version in schema.flexible, in_turns=True)
    encode: Callable[[Any], Generator[None, None, list[bytes]]] = source.function(schema)
    return encode


@cache
def encoder(schema: MessageSchema, version: int) -> Encoder:
    """The encoder of a message in a version; made once."""
    encode: Encoder = _EncoderSource(version, flexible=version in schema.flexible).function(schema)
    return encode


def varint(value: int) -> bytes:
    """An unsigned variable-length integer."""
    if value < 128:
        return _ONE_BYTE[value]
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)


_ONE_BYTE = tuple(bytes([value]) for value in range(128))


def _text(value: str) -> bytes:
    data = value.encode()
    if len(data) > _MAX_STRING:
        raise ValueError(f"a string of {len(data):,} bytes is too long to be written; {_MAX_STRING:,} is most")
    return data


def _uuid(value: Any) -> bytes:
    data: bytes = _NO_UUID if value is None else value.bytes
    return data


def _bits(value: Any) -> int:
    return _NOT_ASKED if value is None else sum(1 << number for number in value)


_NAMES: Mapping[str, Any] = {"varint": varint, "text": _text, "uuid": _uuid, "bits": _bits, "Layout": Layout}


class _EncoderSource(Source):
    def __init__(self, version: int, *, flexible: bool, in_turns: bool = False) -> None:
        super().__init__(version, _NAMES, flexible=flexible)
        self._in_turns = in_turns
        self._run: list[tuple[str, str]] = []
        """Format and expression of values that are still to be packed together."""

    def function(self, schema: MessageSchema) -> Any:
        self._lines += ["def encode(m):", f"    {'done = []; ' * self._in_turns}out = []; add = out.append"]
        self._struct(schema, "m", "    ")
        if self._in_turns:
            self._emit("    ", "yield", "done.append(b''.join(out))", "return done")
        else:
            self._emit("    ", "return out")
        return self._compiled("encode", schema.name)

    # ---- source ----

    def _flush(self, indent: str) -> None:
        if not self._run:
            return
        run, self._run = self._run, []
        pack = self._named(Layout(">" + "".join(layout for layout, _ in run)).pack)
        self._lines.append(f"{indent}add({pack}({', '.join(value for _, value in run)}))")

    def _length(self, fixed: str, length: str, indent: str) -> None:
        """The length of what follows; -1 for null."""
        if self._flexible:
            self._emit(indent, f"add(varint({length} + 1))")
        else:
            self._run.append((FIXED[fixed][0], length))

    # ---- fields ----

    def _struct(self, struct: StructSchema, value: str, indent: str, *, is_in_tag: bool = False) -> None:
        version = self._version
        fields = [field for field in struct.fields.values() if version in field.versions]
        tagged = [field for field in fields if version in field.tagged]
        for field in fields:
            if field not in tagged:
                self._field(field, f"{value}.{field.name}", indent)
        if tagged and not is_in_tag:
            self._tagged(tagged, value, indent)
        elif self._flexible:
            self._run.append(("B", "0"))

    def _field(self, field: Field, value: str, indent: str, *, is_in_tag: bool = False) -> None:
        if field.is_array:
            self._array(field, value, indent, is_in_tag=is_in_tag)
        elif field.struct is not None:
            self._nested(field, field.struct, value, indent, is_in_tag=is_in_tag)
        elif field.kind in {"string", "bytes", "records"}:
            self._bytes(value, indent, is_text=field.kind == "string")
        else:
            makes = {"uuid": "uuid({})", "bitfield": "bits({})"}.get(field.kind, "{}")
            self._run.append((FIXED[field.kind][0], makes.format(value)))

    def _bytes(self, value: str, indent: str, *, is_text: bool) -> None:
        data = self._variable()
        # Not _emit: the fields before are still to be packed, and take the length in.
        self._lines.append(f"{indent}{data} = {value}")
        if is_text:
            self._lines.append(f"{indent}if {data} is not None: {data} = text({data})")
        length = f"(-1 if {data} is None else len({data}))"
        self._length("int16" if is_text else "int32", length, indent)
        self._emit(indent, f"if {data}: add({data})")

    def _array(self, field: Field, value: str, indent: str, *, is_in_tag: bool) -> None:
        items = self._variable()
        self._lines.append(f"{indent}{items} = {value}")
        self._length("int32", f"(-1 if {items} is None else len({items}))", indent)
        self._emit(indent, f"if {items}:")
        self._items(field, items, indent + "    ", is_in_tag=is_in_tag)

    def _items(self, field: Field, items: str, indent: str, *, is_in_tag: bool) -> None:
        """The elements of an array, without how many there are."""
        item = self._variable()
        if field.kind in FIXED and field.kind not in {"uuid", "bitfield"}:
            self._emit(indent, f"add(Layout(f'>{{len({items})}}{FIXED[field.kind][0]}').pack(*{items}))")
            return
        if self._in_turns and field.struct is not None:
            # Structs are freed one by one, since to free all of them together takes long.
            self._emit(indent, f"{items}.reverse()", f"while {items}:", f"    {item} = {items}.pop()")
        else:
            self._emit(indent, f"for {item} in {items}:")
        if field.struct is None:
            self._field(field.element, item, indent + "    ")
        else:
            self._struct(field.struct, item, indent + "    ", is_in_tag=is_in_tag)
        self._flush(indent + "    ")
        if self._in_turns:
            self._emit(indent + "    ", "yield")
            if not is_in_tag:  # the pieces of a tag are counted together
                join = "done.append(b''.join(out)); out.clear()"
                self._emit(indent + "    ", f"if len(out) > {_JOINED}: {join}")

    def _nested(self, field: Field, struct: StructSchema, value: str, indent: str, *, is_in_tag: bool) -> None:
        if self._version not in field.nullable:
            self._struct(struct, value, indent, is_in_tag=is_in_tag)
            return
        given = self._variable()
        self._emit(indent, f"{given} = {value}", f"if {given} is None: add(b'\\xff')", "else:")
        inside = indent + "    "
        self._emit(inside, "add(b'\\x01')")
        self._struct(struct, given, inside, is_in_tag=is_in_tag)
        self._flush(inside)

    def _tagged(self, fields: list[Field], value: str, indent: str) -> None:
        """Tagged fields: how many there are, and each with its number, its size and its bytes."""
        outer, tags, number = self._variable(), self._variable(), self._variable()
        self._emit(indent, f"{outer} = out; {tags} = []; {number} = 0")
        for field in fields:
            is_given = "" if field.default == () else f" != {self._named(field.default)}"
            self._emit(indent, f"if {value}.{field.name}{is_given}:")
            inside = indent + "    "
            self._emit(inside, "out = []; add = out.append")
            self._field(field, f"{value}.{field.name}", inside, is_in_tag=True)
            self._emit(inside, f"{number} += 1; {tags} += [varint({field.tag}), varint(sum(map(len, out))), *out]")
        self._emit(indent, f"out = {outer}; add = out.append", f"add(varint({number})); out += {tags}")
