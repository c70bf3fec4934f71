"""Compresses the records of a batch again, for a topic with another compression.type than its producers'."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from loadwise.protocol.batches import HEADER_BYTES, BatchHeader, checksummed
from loadwise.protocol.errors import MissingCodecError
from loadwise.protocol.unpacking import unpacked

try:
    import cramjam
except ImportError:  # only a compressed record raises an error
    cramjam = None  # type: ignore[assignment]  # a module or nothing

CODECS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""The values of compression.type, and their numbers in a batch's attributes."""

_XERIAL_HEADER = b"\x82SNAPPY\x00" + Struct(">ii").pack(1, 1)
_BLOCK_BYTES = 32 * 1024
_MASK = 0x07
_APPEND_TIME = 0x08
_LENGTH = Struct(">i")
_ATTRIBUTES = Struct(">h")
_CRC = Struct(">I")
_MAX_TIMESTAMP = Struct(">q")
_NOT_IN_LENGTH = 12


def recompressed(batch: bytes, header: BatchHeader, codec: int, level: int | None) -> bytes:
    """The same records in another codec; the CRC is left to `with_crc`.

    Raises `MissingCodecError` without cramjam, and `MalformedBytesError` for records that do not unpack.
    """
    records = _packed(bytes(unpacked(batch[HEADER_BYTES : header.size_bytes], header.compression)), codec, level)
    (attributes,) = _ATTRIBUTES.unpack_from(batch, 21)
    attributes = _ATTRIBUTES.pack(attributes & ~_MASK | codec)
    length = _LENGTH.pack(HEADER_BYTES - _NOT_IN_LENGTH + len(records))
    return b"".join((batch[:8], length, batch[12:21], attributes, batch[23:HEADER_BYTES], records))


def with_append_time(batch: bytes, header: BatchHeader, now_ms: int) -> bytes:
    """The same batch with the broker's time for all of its records; the CRC is left to `with_crc`."""
    attributes = _ATTRIBUTES.pack(header.attributes | _APPEND_TIME)
    return b"".join((batch[:21], attributes, batch[23:35], _MAX_TIMESTAMP.pack(now_ms), batch[43:]))


def without_append_time(batch: bytes, header: BatchHeader) -> bytes:
    """The same batch with its producer's times; the CRC is left to `with_crc`."""
    attributes = _ATTRIBUTES.pack(header.attributes & ~_APPEND_TIME)
    return b"".join((batch[:21], attributes, batch[23:]))


def with_max_timestamp(batch: bytes, timestamp_ms: int) -> bytes:
    """The same batch with another largest timestamp in its header; the CRC is left to `with_crc`."""
    return b"".join((batch[:35], _MAX_TIMESTAMP.pack(timestamp_ms), batch[43:]))


def with_crc(batch: bytes, crc32c: Callable[[memoryview], int]) -> bytes:
    """The same batch with the CRC that its bytes have."""
    return b"".join((batch[:17], _CRC.pack(crc32c(checksummed(batch))), batch[21:]))


def _packed(records: bytes, codec: int, level: int | None) -> bytes:
    if codec == CODECS["uncompressed"]:
        return records
    if cramjam is None:
        raise MissingCodecError("compressed records need cramjam, of the extra coordinator: pip install cramjam")
    given = {} if level is None else {"level": level}
    if codec == CODECS["gzip"]:
        return bytes(cramjam.gzip.compress(records, **given))
    if codec == CODECS["lz4"]:
        # Java reads only blocks that do not depend on each other.
        packer = cramjam.lz4.Compressor(**given, content_checksum=False, block_linked=False)
        packer.compress(records)
        return bytes(packer.finish())
    if codec == CODECS["zstd"]:
        return bytes(cramjam.zstd.compress(records, **given))
    packed = [_XERIAL_HEADER]
    for start in range(0, len(records), _BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(records[start : start + _BLOCK_BYTES]))
        packed += [_LENGTH.pack(len(block)), block]
    return b"".join(packed)
