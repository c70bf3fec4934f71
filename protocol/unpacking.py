"""Unpacks the records of a batch, in any of Kafka's codecs: cramjam does it, into a buffer with a limit.

A peer may send a megabyte that becomes gigabytes. Mirrors ``CompressionType`` and ``SnappyFactory``'s blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from enum import IntEnum
from mmap import mmap
from struct import Struct

from loadwise.protocol.errors import MalformedBytesError, MissingCodecError

try:
    import cramjam
except ImportError:  # only a compressed record raises an error
    cramjam = None  # type: ignore[assignment]  # a module or nothing

MAX_UNPACKED_BYTES = 128 * 1024 * 1024
"""Most bytes that the records of one batch may unpack to."""

_USUAL_RATIO = 8
"""What packed records become at most, mostly: a buffer of that size costs little, one of the limit a millisecond."""

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


def unpacked(data: bytes | memoryview, compression: int, most_bytes: int | None = None) -> bytes | memoryview:
    """What stands behind the header of a batch, unpacked; ``data`` itself where it is not compressed.

    Raises `MissingCodecError` without cramjam, `MalformedBytesError` for a codec that there is not, and for bytes that
    do not unpack or unpack to more than ``most_bytes`` (`MAX_UNPACKED_BYTES`).
    """
    if most_bytes is None:
        most_bytes = MAX_UNPACKED_BYTES
    if compression == _Codec.NONE:
        return data
    if cramjam is None:
        raise MissingCodecError(
            "compressed records need cramjam, of the extras coordinator and spark: pip install cramjam"
        )
    if compression not in _Codec.__members__.values():
        raise MalformedBytesError(f"records are compressed with codec {compression}, which there is not")
    if len(data) * _USUAL_RATIO < most_bytes:
        with suppress(cramjam.DecompressionError):
            output = memoryview(bytearray(len(data) * _USUAL_RATIO))
            return output[: _unpack(data, compression, output)]
    output = memoryview(mmap(-1, max(most_bytes, 1)))[:most_bytes]  # the system allocates only written pages
    try:
        return output[: _unpack(data, compression, output)]
    except cramjam.DecompressionError as problem:
        raise MalformedBytesError(f"the records of a batch do not unpack: {problem}") from problem


def _unpack(data: bytes | memoryview, compression: int, output: memoryview) -> int:
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
        case _:
            filled = cramjam.zstd.decompress_into(data, output)
    return filled


def _snappy_blocks(data: bytes | memoryview) -> Iterator[bytes | memoryview]:
    """Java cuts its data into blocks, as its library xerial does; librdkafka does not."""
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        yield data
        return
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        end = position + _BLOCK_SIZE.size
        size = _BLOCK_SIZE.unpack(bytes(data[position:end]).ljust(_BLOCK_SIZE.size, b"\xff"))[0]
        if not 0 <= size <= len(data) - end:
            raise MalformedBytesError("a block of snappy does not fit into its batch")
        yield data[end : end + size]
        position = end + size
