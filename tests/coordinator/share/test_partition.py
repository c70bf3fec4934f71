"""One partition of a share group, against a plain dictionary that has each record by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from seeds import random_walk

from loadwise.coordinator.share.acknowledgements import Acknowledgement, AcknowledgeType
from loadwise.coordinator.share.in_flight import NOBODY, RecordState
from loadwise.coordinator.share.limits import ShareGroupLimits
from loadwise.coordinator.share.partition import Acquired, LogBatch, SharePartition, WantedRecords
from loadwise.protocol.error_codes import ErrorCode

MEMBERS = st.sampled_from(["a", "b", "c"])
LOCK_MS = 1000
SETTLED: Mapping[int, RecordState] = {
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
    AcknowledgeType.GAP: RecordState.ARCHIVED,
}


@dataclass
class Log:
    """Batches of some sizes, one behind the other."""

    sizes: list[int] = field(default_factory=list)
    start: int = 0

    def append(self, size: int) -> None:
        self.sizes.append(size)

    @property
    def end(self) -> int:
        return sum(self.sizes)

    def read(self, offset: int, most: int) -> list[LogBatch]:
        first, found = 0, []
        for size in self.sizes:
            if first + size > offset and len(found) < most:
                found.append(LogBatch(first, first + size - 1))
            first += size
        return found


@dataclass
class Record:
    state: RecordState = RecordState.AVAILABLE
    count: int = 0
    member: str = NOBODY
    until_ms: int = 0


class SharePartitionWalk(RuleBasedStateMachine):
    """Members acquire, acknowledge and lose records at random."""

    def __init__(self) -> None:
        super().__init__()
        self.log = Log()
        self.now_ms = 0
        self.records: dict[int, Record] = {}

    @initialize(limit=st.integers(2, 6), most=st.sampled_from([5, 20, 100]))
    def begin(self, limit: int, most: int) -> None:
        self.limits = ShareGroupLimits(
            delivery_count_limit=limit, partition_max_record_locks=most, record_lock_duration_ms=LOCK_MS
        )
        self.share = SharePartition(0, self.limits)

    @rule(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
    def produce(self, sizes: list[int]) -> None:
        for size in sizes:
            self.log.append(size)

    @rule(
        member=MEMBERS,
        most=st.integers(0, 25),
        batch_size=st.integers(1, 12),
        strict=st.booleans(),
        batches=st.integers(1, 5),
    )
    def acquire(self, member: str, most: int, batch_size: int, strict: bool, batches: int) -> None:
        if not self.share.has_room:
            return
        before, in_flight = self.share.next_offset, self.share.next_offset - self.share.start_offset
        found = self.log.read(self.share.next_fetch_offset, batches)
        rows = self.share.acquire(member, found, WantedRecords(most, batch_size, strict), self.now_ms)
        for first, last, count in rows:
            for offset in range(first, last + 1):
                record = self.records.setdefault(offset, Record())
                assert record.state is RecordState.AVAILABLE, "nobody else has it"
                assert count == record.count + 1 <= self.limits.delivery_count_limit
                self.records[offset] = Record(RecordState.ACQUIRED, count, member, self.now_ms + LOCK_MS)
        for offset in range(before, self.share.next_offset):
            self.records.setdefault(offset, Record())
        assert rows == sorted(rows)
        number = sum(row.last - row.first + 1 for row in rows)
        if strict:
            assert number <= most
        if in_flight >= self.limits.partition_max_record_locks:
            assert self.share.next_offset == before, "there was no room for new records"

    @rule(member=MEMBERS, data=st.data())
    def acknowledge(self, member: str, data: st.DataObject) -> None:
        end = self.share.next_offset + 2
        first = data.draw(st.integers(max(self.share.start_offset - 2, 0), end))
        last = data.draw(st.integers(first, min(first + 12, end)))
        kinds = st.sampled_from(list(AcknowledgeType))
        count = data.draw(st.sampled_from([1, last - first + 1]))
        types = data.draw(st.lists(kinds, min_size=count, max_size=count))
        refusal = self.share.acknowledge(member, [Acknowledgement(first, last, types)], self.now_ms)
        self.share.advance()
        offsets = range(max(first, self.share.start_offset), last + 1)
        known = [self.records.get(offset) for offset in range(first, last + 1)]
        may = all(each is not None and each.member == member for each in known)
        if may:
            assert refusal is None
        elif refusal is not None:
            assert refusal.error in {ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST}
            for offset in offsets:  # renewals before the mistake stay, as in Kafka
                for unit in self.share.units():
                    if unit.first <= offset <= unit.last and offset in self.records and unit.delivery.locked_until_ms:
                        self.records[offset].until_ms = unit.delivery.locked_until_ms
            return
        for offset, record in zip(range(first, last + 1), known, strict=True):
            if record is None or record.member != member:
                continue  # the log began behind it, or it was passed over
            kind = types[offset - first if len(types) > 1 else 0]
            if kind is AcknowledgeType.RENEW:
                record.until_ms = self.now_ms + LOCK_MS
            elif kind is AcknowledgeType.RELEASE:
                self._give_back(offset)
            else:
                record.state, record.member = SETTLED[kind], NOBODY

    @rule(member=MEMBERS)
    def lose_a_member(self, member: str) -> None:
        self.share.release(member)
        self.share.advance()
        for offset, record in self.records.items():
            if record.member == member:
                self._give_back(offset)

    @rule(ms=st.sampled_from([1, 300, 1000, 5000]))
    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self.share.expire(self.now_ms)
        self.share.advance()
        for offset, record in self.records.items():
            if record.member != NOBODY and record.until_ms <= self.now_ms:
                self._give_back(offset)

    @rule()
    def restart(self) -> None:
        """What was acquired is available again, and that delivery was none."""
        self.share = SharePartition(self.share.start_offset, self.limits, self.share.state)
        self.share.advance()
        for record in self.records.values():
            if record.state is RecordState.ACQUIRED:
                record.state, record.member, record.count = RecordState.AVAILABLE, NOBODY, record.count - 1

    def _give_back(self, offset: int) -> None:
        record = self.records[offset]
        is_last = record.count >= self.limits.delivery_count_limit
        record.state = RecordState.ARCHIVED if is_last else RecordState.AVAILABLE
        record.member = NOBODY

    @invariant()
    def it_is_as_the_dictionary(self) -> None:
        if not hasattr(self, "share"):
            return
        open_records = [offset for offset, record in self.records.items() if not record.state.is_final]
        assert self.share.start_offset == min(open_records, default=self.share.next_offset)
        offset = None
        for first, last, delivery in self.share.units():
            assert offset is None or first == offset, "there are no gaps, and nothing is there twice"
            offset = last + 1
            for each in range(max(first, self.share.start_offset), last + 1):
                record = self.records[each]
                assert (delivery.state, delivery.count, delivery.member_id) == (
                    record.state,
                    record.count,
                    record.member,
                )
        assert offset in (None, self.share.next_offset)
        locks = [record.until_ms for record in self.records.values() if record.member != NOBODY]
        assert self.share.next_deadline_ms == min(locks, default=None)

    def teardown(self) -> None:
        """Somebody who accepts everything gets to the end of the log."""
        if not hasattr(self, "share"):
            return
        self.lose_a_member("a"), self.lose_a_member("b"), self.lose_a_member("c")
        for _ in range(2 * self.log.end + 10):
            found = self.log.read(self.share.next_fetch_offset, 3)
            rows: list[Acquired] = self.share.acquire("a", found, WantedRecords(10), self.now_ms)
            for first, last, _ in rows:
                assert self.share.acknowledge("a", [Acknowledgement(first, last, [1])], self.now_ms) is None
            self.share.advance()
        assert self.share.start_offset == self.share.next_offset == self.log.end


TestSharePartition = random_walk(SharePartitionWalk, walks=30, steps=25)


def acquired(share: SharePartition, member: str, *batches: tuple[int, int], most: int = 500) -> list[Acquired]:
    return share.acquire(member, [LogBatch(*each) for each in batches], WantedRecords(most), 0)


def test_a_log_that_loses_its_first_records_takes_what_nobody_has_of_them() -> None:
    share = SharePartition(0, ShareGroupLimits())
    acquired(share, "a", (0, 9))
    acquired(share, "b", (10, 19))
    share.release("a")
    share.advance()
    share.delete_before(15)
    assert (share.start_offset, share.next_fetch_offset) == (15, 20)
    assert share.acknowledge("b", [Acknowledgement(10, 19, [AcknowledgeType.ACCEPT])], 0) is None
    share.advance()
    assert (share.start_offset, share.next_offset, list(share.units())) == (20, 20, [])


def test_a_log_that_begins_behind_everything_leaves_nothing_under_way() -> None:
    share = SharePartition(0, ShareGroupLimits())
    acquired(share, "a", (0, 9))
    share.delete_before(50)
    assert (share.start_offset, share.next_fetch_offset) == (50, 50)
    assert list(share.units()) == []
    assert acquired(share, "b", (50, 59)) == [Acquired(50, 59, 1)]


def test_records_of_aborted_transactions_are_not_delivered() -> None:
    share = SharePartition(0, ShareGroupLimits(committed_only=True))
    rows = acquired(share, "a", (0, 4), (5, 9), (10, 14))
    assert share.archive(rows, [LogBatch(5, 9)]) == [Acquired(0, 4, 1), Acquired(10, 14, 1)]
    assert share.acknowledge("a", [Acknowledgement(0, 4, [1]), Acknowledgement(10, 14, [1])], 0) is None
    share.advance()
    assert share.start_offset == 15


def test_a_bad_record_is_delivered_alone_in_the_end() -> None:
    """So that it does not take the records of its batch with it."""
    share = SharePartition(0, ShareGroupLimits(delivery_count_limit=5))
    sizes = []
    for _ in range(4):
        rows = acquired(share, "a", (0, 7))
        sizes.append([row.last - row.first + 1 for row in rows])
        share.release("a")
        share.advance()
    assert sizes[:3] == [[8], [8], [8]]
    assert sizes[3] == [4], "half of them"


def test_a_refused_acknowledgement_changes_nothing() -> None:
    share = SharePartition(0, ShareGroupLimits())
    acquired(share, "a", (0, 4))
    acquired(share, "b", (5, 9))
    refusal = share.acknowledge("a", [Acknowledgement(0, 4, [1]), Acknowledgement(5, 9, [1])], 0)
    assert refusal is not None
    assert refusal.error is ErrorCode.INVALID_RECORD_STATE
    assert {unit.delivery.state for unit in share.units()} == {RecordState.ACQUIRED}
    assert share.acknowledge("a", [Acknowledgement(0, 4, [1])], 0) is None
