"""Offsets and timestamps of the records in a batch v2, which a broker needs to find a record by its time.

The header has only the first and the largest timestamp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from loadwise.protocol.batches import HEADER_BYTES, BatchHeader, read_header
from loadwise.protocol.errors import MalformedBytesError, MissingCodecError
from loadwise.protocol.unpacking import MAX_UNPACKED_BYTES, unpacked

_FEW_RECORDS = 1_000
"""`largest_timestamp` looks at no more: half a millisecond."""
_FEW_BYTES = 1024 * 1024
"""Nor does it unpack more."""
_NO_TIMESTAMP = -1


class RecordTime(NamedTuple):
    """Where a record is, when it is from, and whether it has a key."""

    offset: int
    timestamp_ms: int
    has_key: bool = True


@dataclass(slots=True)
class ReadingBudget:
    """How much may still be looked at, for one who looks into batches while others wait.

    A megabyte of packed records may be millions of them, and looking at one takes a microsecond.
    """

    bytes_left: int = MAX_UNPACKED_BYTES
    """Of unpacked records; those that are not packed do not count."""
    records_left: int = 1_000_000


def record_times(batch: bytes, budget: ReadingBudget | None = None) -> Iterator[RecordTime]:
    """The records of a batch, in their order.

    Raises `MissingCodecError` if its codec is not installed, and `MalformedBytesError` if the bytes behind the header
    are not the records that it announces, or are more than ``budget`` has left; without one a batch has its own.
    """
    budget = budget or ReadingBudget()
    header = read_header(batch)
    if header is None:
        raise MalformedBytesError("a record batch is shorter than its header")
    base_offset = int.from_bytes(batch[:8], "big", signed=True)
    data = unpacked(batch[HEADER_BYTES : header.size_bytes], header.compression, budget.bytes_left)
    if header.compression:
        budget.bytes_left -= len(data)
    position = 0
    try:
        for _ in range(header.record_count):
            if budget.records_left <= 0:
                raise MalformedBytesError("there are more records than one request may look at")
            budget.records_left -= 1
            length, start = zigzag(data, position)
            position = start + length
            if length < 0 or position > len(data):
                raise MalformedBytesError(f"a record of {length} bytes does not fit into its batch")
            timestamp_delta, start = zigzag(data, start + 1)  # behind the attributes
            offset_delta, start = zigzag(data, start)
            key_length, _ = zigzag(data, start)
            timestamp_ms = header.max_timestamp if header.has_append_time else header.first_timestamp + timestamp_delta
            yield RecordTime(base_offset + offset_delta, timestamp_ms, has_key=key_length >= 0)
    except IndexError as problem:
        raise MalformedBytesError("a record batch has fewer records than it announces") from problem


def largest_timestamp(batch: bytes, header: BatchHeader) -> int | None:
    """The largest timestamp of the records of a batch; None if they cannot be read, or take too long. O(records).

    `record_times` takes six times as long.
    """
    if header.record_count > _FEW_RECORDS:
        return None
    largest = _NO_TIMESTAMP
    position = 0
    try:
        data = unpacked(batch[HEADER_BYTES : header.size_bytes], header.compression, _FEW_BYTES)
        for _ in range(header.record_count):
            length, start = data[position], position + 1
            if length > 127:
                length, start = zigzag(data, position)
            else:
                length = (length >> 1) ^ -(length & 1)
            delta = data[start + 1]  # behind the attributes
            delta = zigzag(data, start + 1)[0] if delta > 127 else (delta >> 1) ^ -(delta & 1)
            largest = max(largest, header.first_timestamp + delta)
            position = start + length
            if length < 0:
                return None
    except (IndexError, MalformedBytesError, MissingCodecError):
        return None
    return largest


def zigzag(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """A number of variable length and the position behind it.

    Raises IndexError where the bytes end early, `MalformedBytesError` where the number does not end.
    """
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise MalformedBytesError("a variable-length integer is longer than 10 bytes")
