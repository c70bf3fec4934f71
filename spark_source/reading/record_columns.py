"""Decodes record batches into columns: numpy decodes all records at once, and Arrow cuts out their bytes.

The place of a record depends on the length of the one before it, so a loop finds where each begins; then each field of
all records is read at once. Mirrors ``DefaultRecord``. A loop compiled by numba would be ten times faster, but loads
longer than a million records take here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, repeat
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from loadwise.protocol.errors import MalformedBytesError
from loadwise.protocol.record_times import zigzag
from loadwise.spark_source.errors import OTHERS_MAY_READ, BatchError
from loadwise.spark_source.reading.record_sets import RecordSet

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class _Field:
    """Where the bytes of one field begin and end in each record, and where the field is null."""

    begin: Numbers
    end: Numbers
    missing: Flags

    def __getitem__(self, rows: slice) -> _Field:
        return _Field(self.begin[rows], self.end[rows], self.missing[rows])

    def array(self, data: pa.Buffer, kind: pa.DataType) -> pa.Array:
        """Return the field as an Arrow array: Arrow cuts every other piece out of the data, which is fast."""
        count = len(self.begin)
        if self.missing.all():
            return pa.nulls(count, kind)
        edges = np.empty(2 * count, np.int32)
        edges[0::2] = self.begin
        edges[1::2] = self.end
        pieces = pa.Array.from_buffers(kind, 2 * count - 1, [None, pa.py_buffer(edges), data])
        wanted = np.arange(0, 2 * count, 2, dtype=np.int32)
        return pieces.take(pa.array(wanted, mask=self.missing if self.missing.any() else None))


class Records:
    """The records of a `RecordSet`, one a row, in the order of offsets."""

    def __init__(self, found: RecordSet) -> None:
        """Decode all but headers. Raises `BatchError` for bytes that are no records."""
        self._bytes = b"".join([*found.parts, b"\0"])  # one more byte, which may be read
        self._data = np.frombuffer(self._bytes, np.uint8)
        counts = [header.record_count for header in found.headers]
        try:
            start = _starts(self._bytes, counts, list(accumulate(map(len, found.parts))))
            length, at = _zigzags(self._data, start)
            self._end = at + length
            timestamp, at = _zigzags(self._data, at + 1)  # behind the attributes
            offset, at = _zigzags(self._data, at)
            self._key, at = self._field(at)
            self._value, self._rest = self._field(at)
        except (IndexError, MalformedBytesError):
            raise _malformed() from None
        if (length < 0).any() or (self._rest >= self._end).any():
            raise _malformed()
        append_time = np.array([header.has_append_time for header in found.headers], np.bool_)
        first = [header.max_timestamp if header.has_append_time else header.first_timestamp for header in found.headers]
        self.offset = offset + np.repeat(np.array([header.base_offset for header in found.headers], np.int64), counts)
        """The offset of each record."""
        self._append_time = np.repeat(append_time, counts)
        self._timestamp_ms = np.where(self._append_time, 0, timestamp) + np.repeat(np.array(first, np.int64), counts)
        self._sizes = self._end - start
        self._wanted = tuple(int(row) for row in np.searchsorted(self.offset, (found.start, found.end)))

    def slices(self, *, most_records: int, most_bytes: int) -> Iterator[slice]:
        """Cut the rows of the range into slices of bounded size; a single record may be larger."""
        first, last = self._wanted
        bytes_until = np.cumsum(self._sizes)
        while first < last:
            before = bytes_until[first] - self._sizes[first]
            fitting = int(np.searchsorted(bytes_until, before + most_bytes, "right"))
            stop = min(last, first + most_records, max(fitting, first + 1))
            yield slice(first, stop)
            first = stop

    def columns(self, wanted: Mapping[str, pa.DataType], rows: slice) -> dict[str, pa.Array | Numbers]:
        """Return columns of these rows, by their names; the timestamps are in ms."""
        return {name: self._column(name, kind, rows) for name, kind in wanted.items()}

    def _column(self, name: str, kind: pa.DataType, rows: slice) -> pa.Array | Numbers:
        data = pa.py_buffer(self._bytes)
        match name:
            case "key":
                return self._key[rows].array(data, kind)
            case "value":
                return self._value[rows].array(data, kind)
            case "offset":
                return pa.array(self.offset[rows], kind)
            case "timestamp":
                return self._timestamp_ms[rows]
            case "timestampType":
                return pa.array(self._append_time[rows].astype(np.int32), kind)
            case _:
                return self._headers(data, kind, rows)

    def _field(self, at: Numbers) -> tuple[_Field, Numbers]:
        """Return a field, which follows its length, and where it ends."""
        length, begin = _zigzags(self._data, at)
        missing = length < 0
        end = begin + np.where(missing, 0, length)
        if (end > self._end[: len(end)]).any():
            raise _malformed()
        return _Field(begin, end, missing), end

    def _headers(self, data: pa.Buffer, kind: pa.DataType, rows: slice) -> pa.Array:
        """Return a list of headers for each record, null without headers, as in Spark's Kafka integration.

        The first headers of all records are read at once, then all second ones, and so on.
        """
        try:
            count, at = _zigzags(self._data, self._rest[rows])
            if (count < 0).any() or (count > self._end[rows] - at).any():
                raise _malformed()
            first = np.concatenate(([0], np.cumsum(count)))
            begin, end = np.empty((2, 2, first[-1]), np.int64)
            missing = np.zeros(first[-1], np.bool_)
            for number in range(int(count.max(initial=0))):
                having = np.flatnonzero(count > number)
                place = first[having] + number
                ends = self._end[rows][having]
                for part in (0, 1):
                    length, begin[part][place] = _zigzags(self._data, at[having])
                    missing[place] = length < 0  # a value may be null, and stands second; a key may not
                    at[having] = end[part][place] = begin[part][place] + np.maximum(length, 0)
                    if (at[having] > ends).any():
                        raise _malformed()
        except (IndexError, MalformedBytesError):
            raise _malformed() from None
        struct = kind.value_type
        none = np.zeros(first[-1], np.bool_)
        keys = _text(_Field(begin[0], end[0], none).array(data, pa.binary()))
        values = _Field(begin[1], end[1], missing).array(data, struct.field("value").type)
        pairs = pa.Array.from_buffers(struct, len(keys), [None], children=[keys, values])
        there = pa.array(count > 0).buffers()[1]
        return pa.Array.from_buffers(kind, len(count), [there, pa.py_buffer(first.astype(np.int32))], children=[pairs])


def _text(keys: pa.Array) -> pa.Array:
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:  # Java replaces bytes that are not UTF-8 by U+FFFD
        return pa.array([key.decode("utf-8", "replace") for key in keys.to_pylist()], pa.string())


_LOW = tuple(1 + (byte >> 1) if byte < 0x80 else 2 + ((byte & 0x7F) >> 1) for byte in range(256))
"""The distance to the next record by the first byte of a length, with the bytes of the length."""
_HIGH = tuple(byte << 6 for byte in range(0x80))
"""The distance that the second and last byte of a length adds. Lengths above 8 kB have a third."""
_WORTH_A_LOOK = 64
"""The least number of records of one length in a row for which the search of such a run pays."""


def _starts(data: bytes, counts: list[int], ends: list[int]) -> Numbers:
    """Return where each record begins, with its length. ``counts`` and ``ends`` are those of the batches."""
    array = np.frombuffer(data, np.uint8)
    parts: list[Numbers] = []
    at = 0
    for count, end in zip(counts, ends, strict=True):
        if count < 0 or count > end - at:
            raise _malformed()
        left = count
        while left:
            run = _run(array, data, at, end, left) if left >= _WORTH_A_LOOK else None
            if run is None:
                walked, at = _walked(data, at, end, min(left, 4 * _WORTH_A_LOOK))
                parts.append(np.array(walked, np.int64))
                left -= len(walked)
            else:
                parts.append(run)
                left -= len(run)
                at = 2 * int(run[-1]) - int(run[-2])
        if at != end:
            raise _malformed()
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _run(array: Bytes, data: bytes, at: int, end: int, most: int) -> Numbers | None:
    """Return the places of the records from here on that have the length of the first one; None if they are few.

    If each of these places holds the same length, each record ends where the next one begins.
    """
    length, begin = zigzag(data, at)
    size = begin - at + length
    if length <= 0:
        raise _malformed()
    places = np.arange(at, min(at + size * most, end - begin + at + 1), size)
    same = len(places)
    for number in range(begin - at):
        different = array[places[:same] + number] != data[at + number]
        first = int(different.argmax()) if same else 0
        if same and different[first]:
            same = first
    return places[:same] if same >= _WORTH_A_LOOK else None


def _walked(data: bytes, at: int, end: int, count: int) -> tuple[list[int], int]:
    """Return the places of ``count`` records, found one after the other, and the place behind them."""
    low, high = _LOW, _HIGH
    starts: list[int] = []
    add = starts.append
    for _ in repeat(None, count):
        add(at)
        byte = data[at]
        if byte < 0x80:
            at += low[byte]
        elif data[at + 1] < 0x80:
            at += low[byte] + high[data[at + 1]]
        else:
            length, at = zigzag(data, at)
            if length < 0:
                raise _malformed()
            at += length
    if at > end:
        raise _malformed()
    return starts, at


def _zigzags(data: Bytes, at: Numbers) -> tuple[Numbers, Numbers]:
    """Return the variable-length numbers at these places, and the places behind them.

    Raises IndexError if the bytes end early, `MalformedBytesError` if a number does not end.
    """
    value = data[at].astype(np.int64)
    at = at + 1
    going = np.flatnonzero(value >= 0x80)
    if going.size:
        value &= 0x7F
        shift = 7
        while going.size:
            if shift > 63:
                raise MalformedBytesError("a variable-length integer is longer than 10 bytes")
            byte = data[at[going]].astype(np.int64)
            value[going] |= (byte & 0x7F) << shift
            at[going] += 1
            going = going[byte >= 0x80]
            shift += 7
    return ((value >> 1) & _POSITIVE) ^ -(value & 1), at


_POSITIVE = np.int64((1 << 63) - 1)
"""Unsigned arithmetic in a signed type: zigzag shifts zeros in from above."""


def _malformed() -> BatchError:
    return BatchError("the batch there is malformed: its records exceed it", OTHERS_MAY_READ.format(reader="messages"))
