"""Offsets and timestamps of the records in a batch v2, which a broker needs to find a record by its time.

The header says only the first and the largest timestamp. gzip is Python's own, the others are kafka-python's where
their libraries are installed. What a batch unpacks to has a limit: a peer may send a megabyte that becomes gigabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kafka import codec as codecs

from loadwise.protocol.batches import HEADER_BYTES, read_header
from loadwise.protocol.errors import MalformedBytesError, MissingCodecError

MAX_UNPACKED_BYTES = 128 * 1024 * 1024
"""Most bytes that the records of one batch may unpack to."""

_NONE, _GZIP, _SNAPPY, _LZ4, _ZSTD = range(5)
_GZIP_HEADER = 16 + zlib.MAX_WBITS


class RecordTime(NamedTuple):
    """Where a record is and when it is from."""

    offset: int
    timestamp_ms: int


def record_times(batch: bytes) -> Iterator[RecordTime]:
    """The records of a batch, in their order.

    Raises `MissingCodecError` if its codec is not installed, and `MalformedBytesError` if the bytes behind the header
    are not the records that it announces.
    """
    header = read_header(batch)
    if header is None:
        raise MalformedBytesError("a record batch is shorter than its header")
    base_offset = int.from_bytes(batch[:8], "big", signed=True)
    data = _unpacked(batch[HEADER_BYTES : header.size_bytes], header.compression)
    position = 0
    try:
        for _ in range(header.record_count):
            length, start = _zigzag(data, position)
            position = start + length
            if length < 0 or position > len(data):
                raise MalformedBytesError(f"a record of {length} bytes does not fit into its batch")
            timestamp_delta, start = _zigzag(data, start + 1)  # behind the attributes
            offset_delta, _ = _zigzag(data, start)
            yield RecordTime(base_offset + offset_delta, header.first_timestamp + timestamp_delta)
    except IndexError as problem:
        raise MalformedBytesError("a record batch has fewer records than it announces") from problem


def _unpacked(data: bytes, compression: int) -> bytes:
    if compression == _NONE:
        return data
    try:
        unpacked = _gunzipped(data) if compression == _GZIP else _decoder(compression)(data)
    except MissingCodecError:
        raise
    except Exception as problem:  # each library has errors of its own
        raise MalformedBytesError(f"the records of a batch do not unpack: {problem}") from problem
    if len(unpacked) > MAX_UNPACKED_BYTES:
        raise MalformedBytesError(f"the records of a batch unpack to more than {MAX_UNPACKED_BYTES:,} bytes")
    return unpacked


def _gunzipped(data: bytes) -> bytes:
    unpacking = zlib.decompressobj(_GZIP_HEADER)
    unpacked = unpacking.decompress(data, MAX_UNPACKED_BYTES + 1)
    if not unpacking.eof and len(unpacked) <= MAX_UNPACKED_BYTES:
        raise MalformedBytesError("the gzip stream ends early")
    return unpacked


def _decoder(compression: int) -> Callable[[bytes], bytes]:
    known: dict[int, tuple[str, Any, Any]] = {
        _SNAPPY: ("python-snappy", codecs.has_snappy, codecs.snappy_decode),
        _LZ4: ("lz4", codecs.has_lz4, codecs.lz4_decode),
        _ZSTD: ("zstandard", codecs.has_zstd, codecs.zstd_decode),
    }
    if compression not in known:
        raise MissingCodecError(f"records are compressed with codec {compression}, which there is not")
    library, is_there, decode = known[compression]
    if not is_there():
        raise MissingCodecError(f"to find a record by its time in this batch: pip install {library}")
    found: Callable[[bytes], bytes] = decode
    return found


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
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
