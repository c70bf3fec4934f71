"""Offsets and timestamps of the records in a batch v2, which a broker needs to find a record by its time.

The header says only the first and the largest timestamp. cramjam unpacks all of Kafka's codecs, into a buffer with a
limit: a peer may send a megabyte that becomes gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from loadwise.protocol.batches import HEADER_BYTES, read_header
from loadwise.protocol.errors import MalformedBytesError, MissingCodecError

try:
    import cramjam
except ImportError:  # who asks for the time of a compressed record is told
    cramjam = None  # type: ignore[assignment]  # a module or nothing

MAX_UNPACKED_BYTES = 128 * 1024 * 1024
"""Most bytes that the records of one batch may unpack to."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_BLOCK_SIZE = Struct(">i")


class _Codec(IntEnum):
    """How the records of a batch are compressed (``CompressionType``)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


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


def _unpacked(data: bytes, compression: int) -> bytes | memoryview:
    if compression == _Codec.NONE:
        return data
    if cramjam is None:
        raise MissingCodecError("to find a record by its time in a compressed batch: pip install cramjam")
    unpacked = memoryview(bytearray(MAX_UNPACKED_BYTES))  # of which the system gives what is written to
    try:
        return unpacked[: _unpack(data, compression, unpacked)]
    except cramjam.DecompressionError as problem:
        raise MalformedBytesError(f"the records of a batch do not unpack: {problem}") from problem


def _unpack(data: bytes, compression: int, output: memoryview) -> int:
    """Unpack into ``output``, and answer how much of it is filled."""
    filled: int
    match compression:
        case _Codec.GZIP:
            filled = cramjam.gzip.decompress_into(data, output)
        case _Codec.SNAPPY:
            filled = 0
            for block in _snappy_blocks(data):
                filled += cramjam.snappy.decompress_raw_into(block, output[filled:])
        case _Codec.LZ4:
            filled = cramjam.lz4.decompress_into(data, output)
        case _Codec.ZSTD:
            filled = cramjam.zstd.decompress_into(data, output)
        case _:
            raise MalformedBytesError(f"records are compressed with codec {compression}, which there is not")
    return filled


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    """Java cuts its data into blocks, as its library xerial does; librdkafka does not."""
    if not data.startswith(_XERIAL_MAGIC):
        yield data
        return
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        end = position + _BLOCK_SIZE.size
        size = _BLOCK_SIZE.unpack(data[position:end].ljust(_BLOCK_SIZE.size, b"\xff"))[0]
        if not 0 <= size <= len(data) - end:
            raise MalformedBytesError("a block of snappy does not fit into its batch")
        yield data[end : end + size]
        position = end + size


def _zigzag(data: bytes | memoryview, position: int) -> tuple[int, int]:
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
