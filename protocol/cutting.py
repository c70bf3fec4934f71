"""Cuts a large request into small ones of the same API, and joins their responses: as if the client had sent several.

A request is cut along its rows: an array of which each element is answered by itself, as groups or topics, and perhaps
an array inside it, as partitions. A slice is a whole request again, in bytes: what comes before the rows, some of the
rows, and what comes behind them. Nothing is made of the other rows meanwhile, so a slice takes as much memory as a
small request. The responses are joined in the same way, as encoded rows.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from loadwise.protocol.decoding import skipper
from loadwise.protocol.decoding import varint as read_varint
from loadwise.protocol.encoding import EncodedRows, encoder, rows_encoder, varint
from loadwise.protocol.schemas import Field, MessageSchema

_COUNT = struct.Struct(">i")
SLICE_ELEMENTS = 250
"""The most elements of a slice: the slowest APIs take 20 µs for each."""
_SLICE_BYTES = 1024 * 1024
"""The most bytes of a slice."""

Path = tuple[int, ...]
"""Of a slice whose rows are inside an element that is cut itself: which one that is, and so on inward."""


class Slice(NamedTuple):
    """Elements of an array that follow each other; or one element that is cut itself."""

    start: int
    end: int
    number: int
    inner: Cut | None = None


class Cut(NamedTuple):
    """Where the elements of an array stand in a message, in slices."""

    count_at: int
    end: int
    slices: Sequence[Slice]

    @property
    def is_large(self) -> bool:
        """Whether it is more than one slice."""
        return len(self.slices) > 1 or any(each.inner is not None for each in self.slices)


class Cutter:
    """Cuts the bytes of one kind of struct along an array of it, and along arrays inside that."""

    def __init__(self, fields: Mapping[str, Field], version: int, rows: Sequence[str], *, flexible: bool) -> None:
        every = list(fields.values())
        array = fields[rows[0]]
        position = every.index(array)
        self._flexible = flexible
        self._before = skipper(every[:position], version, flexible=flexible, ends_struct=False)
        self._after = skipper(every[position + 1 :], version, flexible=flexible, ends_struct=True)
        self._inner: Cutter | None = None
        if rows[1:]:
            self._inner = Cutter(_inside(array), version, rows[1:], flexible=flexible)
        elif array.struct is not None:
            inside = array.struct.fields.values()
            self._element = skipper(inside, version, flexible=flexible, ends_struct=True)
        else:
            self._element = skipper([array.element], version, flexible=flexible, ends_struct=False)

    def cut(self, data: bytes, position: int, most: int) -> Generator[int, None, tuple[Cut, int, int]]:
        """Find the slices of a struct that begins here: the cut, the position behind it, and how many elements it has.

        It checks all bytes as a decoder does, and raises the same. It yields how many elements it has read, again and
        again. No row, nor all that is beside the rows, may have more than ``most`` elements inside.
        """
        count_at, left = self._before(data, position, most)
        number, position = self._count(data, count_at)
        total = 1 + most - left
        slices = []
        start, rows, elements = position, 0, 0
        for _ in range(number):
            begin = position
            inner = None
            if self._inner is None:
                position, left = self._element(data, position, most)
                more = 1 + most - left
                yield more
            else:
                inner, position, more = yield from self._inner.cut(data, position, most)
                yield 1
            total += more
            if rows and (elements + more > SLICE_ELEMENTS or position - start > _SLICE_BYTES):
                slices.append(Slice(start, begin, rows))
                start, rows, elements = begin, 0, 0
            if inner is not None and inner.is_large:
                slices.append(Slice(begin, position, 1, inner))
                start = position
            else:
                rows, elements = rows + 1, elements + more
        if rows:
            slices.append(Slice(start, position, rows))
        end = position
        position, left = self._after(data, position, most)
        return Cut(count_at, end, slices), position, total + most - left

    def requests(self, data: bytes, cut: Cut) -> Iterator[tuple[bytes, Path]]:
        """The slices of a message as messages of their own, each with the element that it is inside of."""
        if cut.is_large:
            yield from self._slices(data, cut, data[: cut.count_at], data[cut.end :])
        else:
            yield data, ()

    def _slices(self, data: bytes, cut: Cut, before: bytes, behind: bytes) -> Iterator[tuple[bytes, Path]]:
        for index, (start, end, number, inner) in enumerate(cut.slices):
            count = varint(number + 1) if self._flexible else _COUNT.pack(number)
            if inner is None or self._inner is None:
                yield b"".join((before, count, data[start:end], behind)), ()
                continue
            outer = before + count + data[start : inner.count_at]
            for message, path in self._inner._slices(data, inner, outer, data[inner.end : end] + behind):
                yield message, (index, *path)

    def _count(self, data: bytes, position: int) -> tuple[int, int]:
        """How many elements an array has, and where the first one begins; none if it is null."""
        if self._flexible:
            number, position = read_varint(data, position)
            number -= 1
        else:
            (number,) = _COUNT.unpack_from(data, position)
            position += _COUNT.size
        left = len(data) - position
        if number > left:
            raise ValueError(f"announces {number} elements, with {left} bytes left")
        return number, position


@cache
def cutter(schema: MessageSchema, version: int, rows: tuple[str, ...]) -> Cutter:
    """Cuts requests of one kind, in a version, along these rows; made once."""
    return Cutter(schema.fields, version, rows, flexible=version in schema.flexible)


def _inside(array: Field) -> Mapping[str, Field]:
    assert array.struct is not None, f"{array.name} is no array of structs"
    return array.struct.fields


class Joiner:
    """Joins the responses to the slices of a request, in their order."""

    def __init__(self, schema: MessageSchema, version: int, rows: Sequence[str]) -> None:
        self._encode = encoder(schema, version, rows[0])
        self._name = rows[0]
        fields = schema.fields
        self._others = [each.name for each in fields.values() if each.is_array and each.name != rows[0]]
        self._rows = _Rows(fields, version, rows, flexible=version in schema.flexible)
        self._response: Any = None

    @property
    def size_bytes(self) -> int:
        """How many bytes the rows take so far."""
        return self._rows.size_bytes

    def add(self, response: Any, path: Path) -> None:
        """Take the response to the next slice. Of arrays beside the rows, as brokers, each element stays once."""
        self._rows.add(getattr(response, self._name), path)
        if self._response is None:
            self._response = response
        for name in self._others:
            known, more = getattr(self._response, name), getattr(response, name)
            if more and more is not known:
                setattr(self._response, name, [*known, *(each for each in more if each not in known)])

    def finish(self) -> tuple[Any, list[bytes]]:
        """The response, with its body in pieces."""
        setattr(self._response, self._name, self._rows.take())
        return self._response, self._encode(self._response)


class _Rows:
    """Encoded elements of one array; of one inside of which more is to come, those that it has so far."""

    def __init__(self, fields: Mapping[str, Field], version: int, rows: Sequence[str], *, flexible: bool) -> None:
        array = fields[rows[0]]
        self._done = EncodedRows()
        self._encode = rows_encoder(array, version, flexible=flexible)
        self._inner: _Rows | None = None
        self._open: tuple[int, Any] | None = None
        """The element that more is to come of, and which one it is."""
        if rows[1:]:
            self._inner_name = rows[1]
            self._inner = _Rows(_inside(array), version, rows[1:], flexible=flexible)
            self._encode_joined = rows_encoder(array, version, flexible=flexible, rows=rows[1])

    @property
    def size_bytes(self) -> int:
        return self._done.size_bytes + (0 if self._inner is None else self._inner.size_bytes)

    def add(self, rows: Sequence[Any], path: Path) -> None:
        if self._open is not None and path[:1] != self._open[:1]:
            self._close()
        if not path or self._inner is None:
            self._done.add(len(rows), self._encode(rows))
            return
        for row in rows:  # one
            self._inner.add(getattr(row, self._inner_name), path[1:])
            if self._open is None or getattr(row, "error_code", None):
                self._open = (path[0], row)

    def take(self) -> EncodedRows:
        """All that has come, which ends here."""
        if self._open is not None:
            self._close()
        done, self._done = self._done, EncodedRows()
        return done

    def _close(self) -> None:
        assert self._open is not None
        assert self._inner is not None
        _, row = self._open
        setattr(row, self._inner_name, self._inner.take())
        self._done.add_large(1, self._encode_joined([row]))
        self._open = None
