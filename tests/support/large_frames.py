"""Requests of any API with as many elements as wanted in one of their arrays, written from Kafka's schemas."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from loadwise.protocol.encoding import varint
from loadwise.protocol.messages import Api

Path = tuple[str, ...]
_SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "float64": 8, "uuid": 16}


def arrays(api: Api, version: int) -> list[Path]:
    """Every array of an API's requests, by the names of the fields from outside inward."""
    return list(_arrays(api.request._struct.fields.values(), version, ()))


def _arrays(fields: Iterable[Any], version: int, outer: Path) -> Iterator[Path]:
    for field in fields:
        if field.for_version_q(version):
            path = (*outer, field.name)
            if field.is_array():
                yield path
            if field.is_struct_array():
                yield from _arrays(field.array_of.fields.values(), version, path)
            elif field.is_struct():
                yield from _arrays(field.fields.values(), version, path)


def large_frame(api: Api, version: int, path: Path, number: int) -> bytes:
    """A frame, without its size, with so many elements in this array and one in each around it; all else is empty."""
    flexible = api.request.flexible_version_q(version)
    header = struct.pack(">hhih", api.key, version, 7, -1) + b"\x00" * flexible
    return header + _Writer(version, number, flexible=flexible).struct(api.request._struct.fields.values(), path)


class _Writer:
    def __init__(self, version: int, number: int, *, flexible: bool) -> None:
        self._version = version
        self._number = number
        self._flexible = flexible

    def struct(self, fields: Iterable[Any], path: Path) -> bytes:
        out = []
        tagged = []
        for field in fields:
            if not field.for_version_q(self._version):
                continue
            is_on_path = path[:1] == (field.name,)
            if not field.tagged_field_q(self._version):
                out.append(self._field(field, path[1:] if is_on_path else None))
            elif is_on_path:
                data = self._field(field, path[1:])
                tagged.append(varint(field.tag) + varint(len(data)) + data)
        if self._flexible:
            out += [varint(len(tagged)), *tagged]
        return b"".join(out)

    def _field(self, field: Any, path: Path | None) -> bytes:
        if field.is_array():
            if path is None:
                return self._count(0)
            number = 1 if path else self._number
            struct_fields = field.array_of.fields.values() if field.is_struct_array() else None
            item = self._field(field.array_of, None) if struct_fields is None else self.struct(struct_fields, path)
            return self._count(number) + item * number
        if field.is_struct():
            mark = b"\x01" * field.nullable_for_version_q(self._version)
            return mark + self.struct(field.fields.values(), path or ())
        if field.type_str == "string":
            return (varint(2) if self._flexible else b"\x00\x01") + b"a"
        if field.type_str in {"bytes", "records"}:
            return self._count(0)
        return bytes(_SIZES[field.type_str])

    def _count(self, number: int) -> bytes:
        return varint(number + 1) if self._flexible else struct.pack(">i", number)
