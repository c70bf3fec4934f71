"""A partition's log: what it takes, what it gives back, and idempotent producers."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords
from kafka.record.util import calc_crc32c
from record_batches import batch

from loadwise.coordinator.cluster.log import PartitionLog, TimestampedOffset
from loadwise.coordinator.configs.topic_configs import LogConfig
from loadwise.protocol.error_codes import ErrorCode


def new_log(max_batch_bytes: int = 1_000_000) -> PartitionLog:
    return PartitionLog(calc_crc32c, LogConfig(max_message_bytes=max_batch_bytes))


def values(data: bytes) -> list[tuple[int, bytes]]:
    return [(record.offset, record.value) for unpacked in MemoryRecords(data) for record in unpacked]


def timestamps(data: bytes) -> Iterator[TimestampedOffset]:
    for unpacked in MemoryRecords(data):
        for record in unpacked:
            yield TimestampedOffset(record.offset, record.timestamp)


@given(sizes=st.lists(st.integers(1, 5), max_size=8), offset=st.integers(0, 40), max_bytes=st.integers(0, 600))
def test_a_read_gives_whole_batches_from_the_offset_on(sizes: list[int], offset: int, max_bytes: int) -> None:
    log = new_log()
    expected: list[tuple[int, bytes]] = []
    for size in sizes:
        records = [b"%d" % (len(expected) + index) for index in range(size)]
        assert log.append(batch(records)).base_offset == len(expected)
        expected += [(len(expected) + index, value) for index, value in enumerate(records)]
    assert log.end_offset == len(expected)
    assert log.size_bytes == len(log.read(0, 10**9, at_least_one=True))
    whole = values(log.read(offset, 10**9, at_least_one=True))
    assert [each for each in whole if each[0] >= offset] == expected[offset:]
    assert not whole or whole[0][0] <= offset, "the batch that holds the offset comes first"
    some = log.read(offset, max_bytes, at_least_one=False)
    assert len(some) <= max_bytes
    assert values(some) == whole[: len(values(some))]
    if offset < log.end_offset:
        one = log.read(offset, max_bytes, at_least_one=True)
        assert values(one), "a reader with too small a limit still gets on"
        assert len(one) <= max_bytes or len(list(MemoryRecords(one))) == 1
    assert log.available_bytes(offset, 10**9) == len(log.read(offset, 10**9, at_least_one=True))


def damaged(data: bytes, offset: int, form: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, offset, value)
    return bytes(changed)


GOOD = batch([b"a", b"b"])


def resealed(data: bytes, offset: int, form: str, value: int) -> bytes:
    """Damaged, with a CRC that says it is not."""
    changed = damaged(data, offset, form, value)
    return damaged(changed, 17, ">I", calc_crc32c(memoryview(changed)[21:]))


# The codes are those that Kafka 4.3.1 gives, but for transactions and an unknown compression (-1 there).
@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (GOOD[:60], ErrorCode.INVALID_RECORD),
        (GOOD[:-1], ErrorCode.INVALID_RECORD),
        (GOOD + GOOD, ErrorCode.INVALID_RECORD),
        (damaged(GOOD, 8, ">i", -1), ErrorCode.CORRUPT_MESSAGE),
        (damaged(GOOD, 16, "b", 1), ErrorCode.INVALID_RECORD),
        (damaged(GOOD, 16, "b", 9), ErrorCode.CORRUPT_MESSAGE),
        (GOOD[:-1] + b"?", ErrorCode.CORRUPT_MESSAGE),
        (damaged(GOOD, 23, ">i", 5), ErrorCode.CORRUPT_MESSAGE),
        (resealed(GOOD, 23, ">i", 5), ErrorCode.INVALID_RECORD),
        (resealed(GOOD, 57, ">i", -1), ErrorCode.INVALID_RECORD),
        (resealed(GOOD, 21, ">h", 0x20), ErrorCode.INVALID_RECORD),
        (resealed(GOOD, 21, ">h", 0x10), ErrorCode.INVALID_RECORD),
        (resealed(GOOD, 21, ">h", 0x07), ErrorCode.INVALID_RECORD),
        (batch([b"x" * 600]), ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
def test_what_is_no_batch_is_refused_and_leaves_no_trace(data: bytes, error: ErrorCode) -> None:
    log = new_log(max_batch_bytes=500)
    assert log.append(data).error is error
    assert (log.end_offset, log.size_bytes) == (0, 0)
    assert log.append(GOOD).base_offset == 0


def test_timestamps_are_found() -> None:
    log = new_log()
    log.append(batch([b"a", b"b", b"c"], timestamp=1000, compression=1))
    log.append(batch([b"d", b"e"], timestamp=900))
    log.append(batch([b"f"], timestamp=2000))
    assert log.first_at_or_after(0, timestamps) == TimestampedOffset(0, 1000)
    assert log.first_at_or_after(1002, timestamps) == TimestampedOffset(2, 1002)
    assert log.first_at_or_after(1003, timestamps) == TimestampedOffset(5, 2000)
    assert log.first_at_or_after(2001, timestamps) == TimestampedOffset(-1, -1)
    assert log.latest_timestamp(timestamps) == TimestampedOffset(5, 2000)
    assert new_log().latest_timestamp(timestamps) == TimestampedOffset(-1, -1)


# ---- idempotent producers ----


def produced(log: PartitionLog, sequence: int, count: int = 1, *, epoch: int = 0, producer: int = 7) -> tuple[int, int]:
    appended = log.append(batch([b"x"] * count, producer=(producer, epoch, sequence)))
    return appended.error, appended.base_offset


def test_a_batch_that_is_sent_again_is_kept_once_and_answered_the_same() -> None:
    log = new_log()
    assert produced(log, 0, 2) == (0, 0)
    assert produced(log, 2, 3) == (0, 2)
    assert produced(log, 0, 2) == (0, 0)
    assert produced(log, 2, 3) == (0, 2)
    assert log.end_offset == 5


def test_a_gap_or_a_forgotten_batch_is_refused() -> None:
    log = new_log()
    for sequence in range(7):
        assert produced(log, sequence) == (0, sequence)
    assert produced(log, 9)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produced(log, 2) == (0, 2), "five batches are remembered"
    assert produced(log, 1)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.end_offset == 7


def test_a_new_epoch_starts_at_zero_and_ends_the_old_one() -> None:
    log = new_log()
    produced(log, 0, 5)
    assert produced(log, 5, epoch=1)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produced(log, 0, epoch=1) == (0, 5)
    assert produced(log, 5, epoch=0)[0] == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_producer_that_is_new_here_may_start_anywhere() -> None:
    # As in Kafka, which cannot know whether the producer's earlier records were deleted.
    assert produced(new_log(), 42) == (0, 0)


def test_producers_do_not_mix_and_sequences_wrap_around() -> None:
    log = new_log()
    assert produced(log, 2**31 - 2, 2) == (0, 0)
    assert produced(log, 0, producer=8) == (0, 2)
    assert produced(log, 0) == (0, 3)


def test_an_idempotent_batch_without_a_sequence_is_refused() -> None:
    assert produced(new_log(), -2)[0] == ErrorCode.INVALID_RECORD
