"""Record batches of one record, as a broker writes them: Kafka's ``DefaultRecordBatch`` and ``DefaultRecord``."""

from __future__ import annotations

from collections.abc import Callable

from loadwise.protocol.batches import HEADER, HEADER_BYTES, LENGTH_OFFSET, MAGIC, checksummed
from loadwise.protocol.encoding import varint

KEY_AT = HEADER_BYTES + 5
"""Where the key of a short record stands: each number before it takes one byte."""
_UNKNOWN_EPOCH = -1
_NO_SEQUENCE = -1


def one_record(
    key: bytes,
    value: bytes | None,
    *,
    timestamp_ms: int,
    crc32c: Callable[[memoryview], int],
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> bytes:
    """An uncompressed batch at offset 0; ``timestamp_ms`` counts from 1970."""
    # Attributes of the record, timestamp delta, offset delta; at the end the number of headers.
    body = b"".join((b"\x00\x00\x00", _sized(key), _sized(value), b"\x00"))
    record = _signed(len(body)) + body

    def with_crc(crc: int) -> bytes:
        header = HEADER.pack(
            0,
            HEADER_BYTES - LENGTH_OFFSET + len(record),
            _UNKNOWN_EPOCH,
            MAGIC,
            crc,
            attributes,
            0,
            timestamp_ms,
            timestamp_ms,
            producer_id,
            producer_epoch,
            _NO_SEQUENCE,
            1,
        )
        return header + record

    return with_crc(crc32c(checksummed(with_crc(0))))


def _sized(data: bytes | None) -> bytes:
    return _signed(-1) if data is None else _signed(len(data)) + data


def _signed(value: int) -> bytes:
    """A variable-length integer that may be negative (zigzag)."""
    return varint(value << 1 if value >= 0 else ~(value << 1))
