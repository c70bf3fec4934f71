"""The markers that end a transaction in a partition: control batches, which only a broker writes.

Mirrors Kafka's ``EndTransactionMarker``, ``ControlRecordType`` and ``MemoryRecords.writeEndTransactionalMarker``.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from loadwise.protocol.one_record import KEY_AT, one_record

_ABORT = 0
_COMMIT = 1
_KEY = Struct(">hh")
_VALUE = Struct(">hi")
_VERSION = 0
_TRANSACTIONAL_CONTROL = 0x30
_VALUE_AT = KEY_AT + _KEY.size + 1


class EndMarker(NamedTuple):
    """What a marker tells beside its batch's header."""

    committed: bool
    coordinator_epoch: int


def read_end_marker(batch: bytes) -> EndMarker:
    """A marker that `end_marker` wrote, wherever it stands in its log by now."""
    _, kind = _KEY.unpack_from(batch, KEY_AT)
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
    return one_record(
        key,
        value,
        timestamp_ms=timestamp_ms,
        crc32c=crc32c,
        attributes=_TRANSACTIONAL_CONTROL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
