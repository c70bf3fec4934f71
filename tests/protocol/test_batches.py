"""Record batch headers against kafka-python's writer and reader."""

from __future__ import annotations

import pytest
from kafka.record import MemoryRecords
from kafka.record.util import calc_crc32c
from record_batches import batch

from loadwise.protocol.batches import checksummed, placed, read_header


def test_the_header_says_what_the_writer_wrote() -> None:
    data = batch([b"a", b"b", b"c"], producer=(77, 3, 40))
    header = read_header(data)
    assert header is not None
    assert (header.size_bytes, header.magic, header.record_count) == (len(data), 2, 3)
    assert (header.last_offset_delta, header.first_timestamp, header.max_timestamp) == (2, 1000, 1002)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 40)
    assert header.is_sound
    assert not header.is_control
    assert not header.is_transactional
    assert calc_crc32c(checksummed(data)) == header.crc


def test_compression_is_told() -> None:
    header = read_header(batch([b"x" * 1000], compression=1))
    assert header is not None
    assert header.compression == 1
    assert header.size_bytes < 1000


@pytest.mark.parametrize("length", [0, 1, 60])
def test_too_few_bytes_have_no_header(length: int) -> None:
    assert read_header(batch([b"a"])[:length]) is None


def test_a_placed_batch_reads_at_its_offset_and_keeps_its_crc() -> None:
    data = placed(batch([b"a", b"b"]), 1_000_000_007, 5)
    header = read_header(data)
    assert header is not None
    assert calc_crc32c(checksummed(data)) == header.crc
    (read,) = MemoryRecords(data)
    assert [(record.offset, record.value) for record in read] == [(1_000_000_007, b"a"), (1_000_000_008, b"b")]
