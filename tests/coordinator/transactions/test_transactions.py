"""Transactional ids at random, under a clock that we set: what must hold after every step."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from kafka.record.util import calc_crc32c
from record_batches import batch
from seeds import random_walk

from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.configs.topic_configs import LogConfig
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.transactions.coordinator import Transactions
from loadwise.coordinator.transactions.limits import TransactionLimits
from loadwise.coordinator.transactions.outcomes import NO_PRODUCER, Markers, ProducerAt
from loadwise.coordinator.transactions.transaction import LAST_EPOCH, Transaction, TransactionState
from loadwise.protocol.error_codes import ErrorCode

NAMES = ("a", "b")
PARTITIONS = [Partition("t", number) for number in range(2)]


class Walk(RuleBasedStateMachine):
    """Two transactional ids, two partitions, and a model: what each transaction wrote and how it ended."""

    @initialize(start=st.sampled_from([0, LAST_EPOCH - 3]))
    def begin(self, start: int) -> None:
        self.now_ms = 0
        self.transactions = Transactions(count(100).__next__, TransactionLimits(max_timeout_ms=1000))
        self.logs = {each: PartitionLog(calc_crc32c, LogConfig()) for each in PARTITIONS}
        self.current: dict[str, ProducerAt] = {}
        self.sequences: dict[tuple[str, Partition], int] = {}
        self.written: dict[str, list[tuple[Partition, int]]] = {name: [] for name in NAMES}
        self.committed: set[tuple[Partition, int]] = set()
        self.aborted: set[tuple[Partition, int]] = set()
        self.given: list[ProducerAt] = []
        for name in NAMES:  # close to the end of the epochs, or at their beginning
            self.transactions.put(
                Transaction(
                    transactional_id=name, producer_id=1 + NAMES.index(name), epoch=start, timeout_ms=500, updated_ms=0
                )
            )

    def end(self, markers: Markers) -> None:
        for partition in markers.partitions:
            appended = self.logs[partition].end_transaction(
                *markers.producer, committed=markers.committed, coordinator_epoch=0, timestamp_ms=self.now_ms
            )
            assert appended.error is ErrorCode.NONE
        self.transactions.complete(markers.transactional_id, self.now_ms)
        offsets = self.written[markers.transactional_id]
        (self.committed if markers.committed else self.aborted).update(offsets)
        offsets.clear()

    @rule(name=st.sampled_from(NAMES), tells=st.booleans())
    def init(self, name: str, tells: bool) -> None:
        before = self.transactions.all[name].state
        expected = self.current.get(name) if tells else None
        outcome = self.transactions.init_producer_id(name, 500, expected, self.now_ms)
        if outcome.markers is not None:
            assert before is TransactionState.ONGOING
            assert outcome.error is ErrorCode.CONCURRENT_TRANSACTIONS
            self.end(outcome.markers)
            outcome = self.transactions.init_producer_id(name, 500, None, self.now_ms)
        if outcome.error is ErrorCode.PRODUCER_FENCED:
            assert tells, "only who says who it was can have been somebody else"
            return
        assert outcome.error is ErrorCode.NONE
        self.take(name, outcome.producer)

    def take(self, name: str, producer: ProducerAt) -> None:
        self.current[name] = producer
        self.given.append(producer)
        for partition in PARTITIONS:
            self.sequences[name, partition] = 0

    @rule(name=st.sampled_from(NAMES), partition=st.sampled_from(PARTITIONS), records=st.integers(1, 3))
    def write(self, name: str, partition: Partition, records: int) -> None:
        who = self.current.get(name)
        if who is None:
            return
        error = self.transactions.add_partitions(name, who, {partition}, self.now_ms)
        is_current = self.transactions.all[name].producer == who
        assert (error is ErrorCode.NONE) == is_current, "only the latest producer writes"
        if not is_current:
            assert error in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            return
        sequence = self.sequences[name, partition]
        data = batch([b"x"] * records, producer=(*who, sequence), transactional=True)
        appended = self.logs[partition].append(data, in_transaction=True, begins_at_zero=True)
        assert appended.error is ErrorCode.NONE, appended.message
        self.sequences[name, partition] += records
        self.written[name] += [(partition, appended.base_offset + index) for index in range(records)]

    @rule(name=st.sampled_from(NAMES), committed=st.booleans(), bumps=st.booleans())
    def finish(self, name: str, committed: bool, bumps: bool) -> None:
        who = self.current.get(name)
        if who is None:
            return
        now = self.transactions.all[name]
        outcome = self.transactions.end(name, who, committed=committed, bumps_epoch=bumps, now_ms=self.now_ms)
        if now.producer != who:
            assert outcome.markers is None, "a producer that was shut out ends nothing"
            return
        if now.state is TransactionState.ONGOING:
            assert outcome.error is ErrorCode.NONE
        if outcome.markers is None:
            return
        self.end(outcome.markers)
        assert self.transactions.all[name].producer == outcome.producer
        if bumps:
            assert outcome.producer != who
            again = self.transactions.end(name, who, committed=committed, bumps_epoch=True, now_ms=self.now_ms)
            assert (again.error, again.producer, again.markers) == (ErrorCode.NONE, outcome.producer, None)
            self.take(name, outcome.producer)

    @rule(ms=st.integers(0, 600))
    def wait(self, ms: int) -> None:
        self.now_ms += ms
        for markers in self.transactions.expire(self.now_ms):
            self.end(markers)

    @invariant()
    def readers_of_committed_records_see_what_was_committed(self) -> None:
        for partition, log in getattr(self, "logs", {}).items():
            open_offsets = [offset for name in NAMES for place, offset in self.written[name] if place == partition]
            assert log.stable_offset == min(open_offsets, default=log.end_offset)
            hidden = {
                offset
                for first, last, producer_id in (
                    (each.first_offset, each.last_offset, each.producer_id)
                    for each in log.transactions.aborted_between(0, log.end_offset)
                )
                for offset in range(first, last)
                if (partition, offset) in self.aborted and producer_id >= 0
            }
            ended = {offset for place, offset in self.aborted if place == partition}
            assert hidden == ended, "every aborted record lies in an aborted transaction"

    @invariant()
    def nobody_goes_by_what_another_had(self) -> None:
        given = getattr(self, "given", [])
        assert NO_PRODUCER not in given
        assert all(0 <= each.epoch <= LAST_EPOCH for each in given)

    @invariant()
    def an_open_transaction_ends_by_time(self) -> None:
        if not hasattr(self, "transactions"):
            return
        for now in self.transactions.all.values():
            assert not now.state.is_ending
            if now.state is TransactionState.ONGOING:
                assert self.transactions.next_deadline_ms is not None
                assert self.transactions.next_deadline_ms <= now.started_ms + now.timeout_ms


test_transactions_at_random = random_walk(Walk, walks=30, steps=40)


def test_an_id_that_nobody_uses_is_forgotten() -> None:
    transactions = Transactions(count().__next__, TransactionLimits(id_expiration_ms=100))
    transactions.init_producer_id("a", 50, None, 0)
    assert transactions.expire(99) == []
    assert list(transactions.all) == ["a"]
    assert transactions.expire(100) == []
    assert not transactions.all
    assert transactions.next_deadline_ms is None


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_shut_out() -> None:
    transactions = Transactions(count(7).__next__)
    who = transactions.init_producer_id("a", 50, None, 1000).producer
    assert transactions.add_partitions("a", who, {PARTITIONS[0]}, 1010) is ErrorCode.NONE
    assert transactions.add_partitions("a", who, {PARTITIONS[1]}, 1040) is ErrorCode.NONE
    assert transactions.next_deadline_ms == 1060, "it counts from the beginning"
    (markers,) = transactions.expire(1060)
    assert (markers.committed, markers.partitions) == (False, set(PARTITIONS))
    assert markers.producer.epoch > who.epoch
    transactions.complete("a", 1060)
    assert transactions.all["a"].state is TransactionState.COMPLETE_ABORT
    assert transactions.add_partitions("a", who, {PARTITIONS[0]}, 1061) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("committed", [True, False])
def test_the_bytes_of_a_marker_are_those_of_kafka_python(committed: bool) -> None:
    log = PartitionLog(calc_crc32c, LogConfig())
    log.end_transaction(5, 2, committed=committed, coordinator_epoch=3, timestamp_ms=77)
    from kafka.record import MemoryRecords

    (read,) = MemoryRecords(log.read(0, 1000, at_least_one=True))
    assert read.validate_crc()
    assert (read.is_transactional, read.is_control_batch) == (True, True)
    assert (read.producer_id, read.producer_epoch, read.base_sequence) == (5, 2, -1)
    (record,) = read
    assert (record.key, record.timestamp) == (bytes([0, 0, 0, committed]), 77)
    assert record.value == bytes([0, 0, 0, 0, 0, 3])


def test_committed_records_end_no_earlier_than_the_records_begin() -> None:
    """The beginning of an open transaction may be deleted; a reader that was sent there would be out of range."""
    log = PartitionLog(calc_crc32c, LogConfig())
    for sequence in range(3):
        appended = log.append(batch([b"x"], producer=(5, 0, sequence), transactional=True), in_transaction=True)
        assert appended.error is ErrorCode.NONE
    assert log.stable_offset == 0
    log.delete_before(2)
    assert log.start_offset == log.stable_offset == 2
    log.end_transaction(5, 0, committed=True, coordinator_epoch=0, timestamp_ms=1)
    assert log.stable_offset == log.end_offset == 4
