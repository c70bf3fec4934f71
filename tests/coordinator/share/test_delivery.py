"""What a member of a share group gets of a log with transactions in it."""

from __future__ import annotations

from record_batches import batch
from wires import Wire

from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.share.delivery import Delivered, deliver
from loadwise.coordinator.share.limits import ShareGroupLimits
from loadwise.coordinator.share.partition import Acquired, SharePartition, WantedRecords
from loadwise.protocol.error_codes import ErrorCode

_PRODUCER = 7


def log_with_transactions() -> PartitionLog:
    """Records 0 to 2; 3 and 4 of a transaction that aborts at 5; 6; 7 of one that is open; 8."""
    log = Wire().cluster.topics.log("t", 0)
    assert log is not None
    append(log, b"d", b"e", sequence=0)
    log.end_transaction(_PRODUCER, 0, committed=False, coordinator_epoch=0, timestamp_ms=1000)
    append(log, b"g")
    append(log, b"h", sequence=2)
    append(log, b"i")
    return log


def append(log: PartitionLog, *values: bytes, sequence: int | None = None) -> None:
    is_transactional = sequence is not None
    producer = None if sequence is None else (_PRODUCER, 0, sequence)
    data = batch(values, producer=producer, transactional=is_transactional)
    assert log.append(data, in_transaction=is_transactional).error is ErrorCode.NONE


def delivered(log: PartitionLog, *, committed_only: bool) -> tuple[Delivered, SharePartition]:
    share = SharePartition(0, ShareGroupLimits(committed_only=committed_only))
    return deliver(share, log, "a", WantedRecords(500), 0, max_bytes=100_000, at_least_one=True), share


def test_without_isolation_everything_is_delivered() -> None:
    got, _ = delivered(log_with_transactions(), committed_only=False)
    assert got.acquired == [Acquired(0, 8, 1)]


def test_committed_records_are_those_before_an_open_transaction_and_not_of_an_aborted_one() -> None:
    got, share = delivered(log_with_transactions(), committed_only=True)
    assert got.acquired == [Acquired(0, 2, 1), Acquired(5, 6, 1)], "the marker at 5 is for the client to pass over"
    assert share.next_offset == 7


def test_only_batches_with_records_of_its_own_are_sent() -> None:
    log = log_with_transactions()
    share = SharePartition(0, ShareGroupLimits())
    first = deliver(share, log, "a", WantedRecords(3), 0, max_bytes=100_000, at_least_one=True)
    assert first.acquired == [Acquired(0, 2, 1)]
    assert first.records == log.read(0, 1, at_least_one=True)


def test_aborted_transactions_do_not_keep_a_member_from_what_is_behind_them() -> None:
    log = Wire().cluster.topics.log("t", 0)
    assert log is not None
    for sequence in range(4):
        append(log, b"x", sequence=sequence)
    log.end_transaction(_PRODUCER, 0, committed=False, coordinator_epoch=0, timestamp_ms=1000)
    append(log, b"y")
    share = SharePartition(3, ShareGroupLimits(committed_only=True))
    got = deliver(share, log, "a", WantedRecords(2), 0, max_bytes=100_000, at_least_one=True)
    assert got.acquired == [Acquired(7, 8, 1)], "the marker at 7 is for the client to pass over"
    assert share.start_offset == 7
