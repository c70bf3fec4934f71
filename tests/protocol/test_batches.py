"""Record batch headers against kafka-python's writer and reader."""

from __future__ import annotations

import pytest
from kafka.record import MemoryRecords, MemoryRecordsBuilder
from kafka.record.util import calc_crc32c
from record_batches import batch

from loadwise.protocol.batches import begins_transactional, begins_with_batch, checksummed, placed, read_header
from loadwise.protocol.errors import MalformedBytesError


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


@pytest.mark.parametrize("transactional", [True, False])
def test_batches_of_transactions_are_told_apart(transactional: bool) -> None:
    data = batch([b"a"], producer=(77, 3, 40), transactional=transactional)
    header = read_header(data)
    assert header is not None
    assert header.is_transactional is begins_transactional(data) is transactional
    assert header.is_control is header.has_append_time is False


def smallest(magic: int) -> bytes:
    """The smallest batch of a version that kafka-python writes."""
    builder = MemoryRecordsBuilder(magic=magic, compression_type=0, batch_size=1000)
    builder.append(timestamp=1 if magic else None, key=None, value=None)
    builder.close()
    return bytes(builder.buffer())


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_whole_batch_of_any_version_is_seen_by_its_length(magic: int) -> None:
    data = smallest(magic)
    assert begins_with_batch(data)
    assert begins_with_batch(data + b"more")
    assert not any(begins_with_batch(data[:length]) for length in range(len(data)))


@pytest.mark.parametrize(("place", "value", "problem"), [(11, 13, "13 bytes is shorter"), (16, 3, "of version 3")])
def test_what_cannot_begin_a_batch_is_refused(place: int, value: int, problem: str) -> None:
    data = bytearray(smallest(0))
    data[place] = value
    with pytest.raises(MalformedBytesError, match=problem):
        begins_with_batch(bytes(data))
