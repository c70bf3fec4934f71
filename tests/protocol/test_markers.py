"""The markers that end transactions, and single records, read by kafka-python."""

from __future__ import annotations

import struct

import pytest
from kafka.record import MemoryRecords
from kafka.record.util import calc_crc32c

from loadwise.protocol.batches import checksummed, placed, read_header
from loadwise.protocol.markers import end_marker, read_end_marker
from loadwise.protocol.one_record import one_record


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_is_a_control_batch_of_kafkas(committed: bool) -> None:
    data = end_marker(
        producer_id=77,
        producer_epoch=3,
        committed=committed,
        coordinator_epoch=9,
        timestamp_ms=1_764_000_000_000,
        crc32c=calc_crc32c,
    )
    (read,) = MemoryRecords(data)
    assert read.validate_crc()
    assert (read.is_control_batch, read.is_transactional, read.producer_id, read.producer_epoch) == (True, True, 77, 3)
    (record,) = read
    # ControlRecordType: version 0, 0 for abort and 1 for commit; EndTransactionMarker: version 0, the epoch.
    assert (record.key, record.value) == (struct.pack(">hh", 0, committed), struct.pack(">hi", 0, 9))
    assert (record.offset, record.timestamp, record.headers) == (0, 1_764_000_000_000, [])
    header = read_header(data)
    assert header is not None
    assert (header.is_sound, header.is_control, header.is_transactional, header.base_sequence) == (True, True, True, -1)
    assert (header.size_bytes, header.crc) == (len(data), calc_crc32c(checksummed(data)))
    assert read_end_marker(placed(data, 500, 2)) == (committed, 9)


@pytest.mark.parametrize(("key", "value"), [(b"k", b"v"), (b"k" * 20, None), (b"", b"v" * 1000)])
def test_a_record_of_a_topic_of_kafkas_own_is_a_plain_batch(key: bytes, value: bytes | None) -> None:
    (read,) = MemoryRecords(one_record(key, value, timestamp_ms=1_764_000_000_000, crc32c=calc_crc32c))
    assert read.validate_crc()
    assert (read.is_control_batch, read.is_transactional, read.compression_type) == (False, False, 0)
    assert (read.producer_id, read.producer_epoch, read.base_sequence) == (-1, -1, -1)
    (record,) = read
    assert (record.key, record.value, record.timestamp, record.offset) == (key, value, 1_764_000_000_000, 0)
