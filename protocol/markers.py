"""The markers that end a transaction in a partition: control batches, which only a broker writes.

Mirrors Kafka's ``EndTransactionMarker``, ``ControlRecordType`` and ``MemoryRecords.writeEndTransactionalMarker``.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from loadwise.protocol.batches import HEADER_BYTES, MAGIC, checksummed

_ABORT = 0
_COMMIT = 1
_KEY = Struct(">hh")
_VALUE = Struct(">hi")
_VERSION = 0
_TRANSACTIONAL_CONTROL = 0x30
_NO_SEQUENCE = -1
_SIZE_BEHIND = 49
"""Bytes of a batch's header behind its base offset and size."""
_HEADER = Struct(">qiibIhiqqqhii")
_KEY_AT = HEADER_BYTES + 5
_VALUE_AT = _KEY_AT + _KEY.size + 1


class EndMarker(NamedTuple):
    """What a marker tells beside its batch's header."""

    committed: bool
    coordinator_epoch: int


def read_end_marker(batch: bytes) -> EndMarker:
    """A marker that `end_marker` wrote, wherever it stands in its log by now."""
    _, kind = _KEY.unpack_from(batch, _KEY_AT)
    _, coordinator_epoch = _VALUE.unpack_from(batch, _VALUE_AT)
    return EndMarker(kind == _COMMIT, coordinator_epoch)


def end_marker(
    *,
    producer_id: int,
    producer_epoch: int,
    committed: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
    crc32c: Callable[[memoryview], int],
) -> bytes:
    """A control batch with one marker, at offset 0; ``timestamp_ms`` counts from 1970."""
    key = _KEY.pack(_VERSION, _COMMIT if committed else _ABORT)
    value = _VALUE.pack(_VERSION, coordinator_epoch)
    # Attributes, timestamp delta and offset delta are 0; lengths are zigzag numbers of one byte each.
    body = b"".join((b"\x00\x00\x00", _short(len(key)), key, _short(len(value)), value, b"\x00"))
    record = _short(len(body)) + body

    def with_crc(crc: int) -> bytes:
        header = _HEADER.pack(
            0,
            _SIZE_BEHIND + len(record),
            -1,
            MAGIC,
            crc,
            _TRANSACTIONAL_CONTROL,
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


def _short(length: int) -> bytes:
    return bytes((length * 2,))


assert _HEADER.size == HEADER_BYTES
