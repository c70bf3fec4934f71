"""Reads the 61-byte header of a record batch v2 (magic 2) and gives the batch its place in a log.

Mirrors ``DefaultRecordBatch``. The records behind the header stay what they came as, compressed or not: the CRC covers
everything from the attributes on, so base offset and leader epoch can be written without touching it.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from loadwise.protocol.errors import MalformedBytesError

HEADER_BYTES = 61
"""Size of the header of a record batch v2."""

MAGIC = 2
"""The version of record batches that is read here, in their header."""

MAGIC_OFFSET = 16
"""Where the version stands, in the headers of batches as in those of the messages that were before them."""

HEADER = Struct(">qiibIhiqqqhii")
"""The header, whose size `HEADER_BYTES` is."""
_PLACE = Struct(">q")
_EPOCH = Struct(">i")
_INT32 = Struct(">i")
_BASE_AND_LENGTH = Struct(">qi")
_LAST_OFFSET_DELTA_OFFSET = 23
LENGTH_OFFSET = 12
"""What the length of a batch leaves out: base offset and length."""
_COMPRESSION_MASK = 0x07
_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_CRC_START = 21
_ATTRIBUTES_END = 23
_LEAST_LENGTH = 14
"""Of a message of version 0 (``LegacyRecord.RECORD_OVERHEAD_V0``)."""
_KNOWN_COMPRESSIONS = 5


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The fields of a record batch's header that a broker looks at."""

    base_offset: int
    """Offset of the first record that was written to the batch."""
    size_bytes: int
    """Size of the whole batch, header included."""
    magic: int
    crc: int
    """CRC-32C of everything after this field."""
    attributes: int
    last_offset_delta: int
    """Offset of the last record after the first's."""
    first_timestamp: int
    """Milliseconds since 1970."""
    max_timestamp: int
    """Milliseconds since 1970; -1 if no record has one."""
    producer_id: int
    """-1 for a producer that is not idempotent."""
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; above that unknown."""
        return self.attributes & _COMPRESSION_MASK

    @property
    def has_append_time(self) -> bool:
        """Whether all records have the time at which the broker took them (``LogAppendTime``): `max_timestamp`."""
        return bool(self.attributes & _APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a transaction's marker, which only a broker may write."""
        return bool(self.attributes & _CONTROL)

    @property
    def is_sound(self) -> bool:
        """Whether the numbers fit each other: at least one record, offsets without gaps, a known compression."""
        return (
            self.record_count > 0
            and self.last_offset_delta == self.record_count - 1
            and self.compression < _KNOWN_COMPRESSIONS
        )


def read_header(data: bytes | memoryview) -> BatchHeader | None:
    """The header of the batch that ``data`` starts with; None if there are too few bytes for one."""
    if len(data) < HEADER_BYTES:
        return None
    (
        base_offset,
        length,
        _leader_epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        first_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    ) = HEADER.unpack_from(data)
    return BatchHeader(
        base_offset=base_offset,
        size_bytes=length + LENGTH_OFFSET,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=last_offset_delta,
        first_timestamp=first_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=record_count,
    )


def end_of_batches(data: bytes, start: int) -> int:
    """Return the offset behind the last whole batch of ``data``, by the headers alone; ``start`` without one."""
    at, end = 0, start
    while at + HEADER_BYTES <= len(data) and data[at + MAGIC_OFFSET] == MAGIC:
        base, length = _BASE_AND_LENGTH.unpack_from(data, at)
        following = at + LENGTH_OFFSET + length
        if following < at + HEADER_BYTES or following > len(data):
            break
        end = max(end, base + 1 + _INT32.unpack_from(data, at + _LAST_OFFSET_DELTA_OFFSET)[0])
        at = following
    return end


def begins_with_batch(data: bytes | memoryview) -> bool:
    """Whether a whole batch comes first, of any version.

    Raises `MalformedBytesError` for a length or a version that no batch has (``ByteBufferLogInputStream``).
    """
    if len(data) < LENGTH_OFFSET:
        return False
    length = int.from_bytes(data[8:LENGTH_OFFSET], "big", signed=True)
    if length < _LEAST_LENGTH:
        raise MalformedBytesError(f"a record batch of {length} bytes is shorter than any")
    if len(data) <= MAGIC_OFFSET:
        return False
    if data[MAGIC_OFFSET] > MAGIC:
        raise MalformedBytesError(f"there are no record batches of version {data[MAGIC_OFFSET]}")
    return len(data) >= length + LENGTH_OFFSET


def size_of_first(data: bytes | memoryview) -> int:
    """The size of the batch that comes first, if one does (`begins_with_batch`), in bytes."""
    return LENGTH_OFFSET + int.from_bytes(data[8:LENGTH_OFFSET], "big", signed=True)


def begins_transactional(data: bytes | memoryview) -> bool:
    """Whether the first batch belongs to a transaction. Raises `MalformedBytesError` as `begins_with_batch`."""
    return begins_with_batch(data) and data[MAGIC_OFFSET] == MAGIC and bool(data[_ATTRIBUTES_END - 1] & _TRANSACTIONAL)


def checksummed(data: bytes | memoryview) -> memoryview:
    """The part of a batch that its CRC covers."""
    return memoryview(data)[_CRC_START:]


def placed(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The same batch at another offset of a log."""
    return b"".join((_PLACE.pack(base_offset), data[8:12], _EPOCH.pack(leader_epoch), data[16:]))
