"""Requests of any API with as many elements as wanted in one of their arrays, written from Kafka's schemas."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from loadwise.protocol.encoding import varint
from loadwise.protocol.messages import Api
from loadwise.protocol.schemas import Field, StructSchema

Path = tuple[str, ...]
_SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "float64": 8, "uuid": 16}


def arrays(api: Api, version: int) -> list[Path]:
    """Every array of an API's requests, by the names of the fields from outside inward."""
    return list(_arrays(api.request.schema, version, ()))


def _arrays(struct: StructSchema, version: int, outer: Path) -> Iterator[Path]:
    for field in struct.fields.values():
        if version in field.versions:
            path = (*outer, field.name)
            if field.is_array:
                yield path
            if field.struct is not None:
                yield from _arrays(field.struct, version, path)


def large_frame(api: Api, version: int, path: Path, number: int) -> bytes:
    """A frame, without its size, with so many elements in this array and one in each around it; all else is empty."""
    flexible = version in api.request.schema.flexible
    header = struct.pack(">hhih", api.key, version, 7, -1) + b"\x00" * flexible
    return header + _Writer(version, number, flexible=flexible).struct(api.request.schema, path)


class _Writer:
    def __init__(self, version: int, number: int, *, flexible: bool) -> None:
        self._version = version
        self._number = number
        self._flexible = flexible

    def struct(self, struct: StructSchema, path: Path) -> bytes:
        out = []
        tagged = []
        for field in struct.fields.values():
            if self._version not in field.versions:
                continue
            is_on_path = path[:1] == (field.name,)
            if self._version not in field.tagged:
                out.append(self._field(field, path[1:] if is_on_path else None))
            elif is_on_path:
                data = self._field(field, path[1:])
                tagged.append(varint(field.tag or 0) + varint(len(data)) + data)
        if self._flexible:
            out += [varint(len(tagged)), *tagged]
        return b"".join(out)

    def _field(self, field: Field, path: Path | None) -> bytes:
        if field.is_array:
            if path is None:
                return self._count(0)
            number = 1 if path else self._number
            item = self._field(field.element, None) if field.struct is None else self.struct(field.struct, path)
            return self._count(number) + item * number
        if field.struct is not None:
            mark = b"\x01" * (self._version in field.nullable)
            return mark + self.struct(field.struct, path or ())
        if field.kind == "string":
            return (varint(2) if self._flexible else b"\x00\x01") + b"a"
        if field.kind in {"bytes", "records"}:
            return self._count(0)
        return bytes(_SIZES[field.kind])

    def _count(self, number: int) -> bytes:
        return varint(number + 1) if self._flexible else struct.pack(">i", number)
