"""One partition as a share group reads it: which records are available, acquired, acknowledged or archived.

Mirrors Kafka 4.3's ``SharePartition`` as a state machine without I/O: time is an argument. Two offsets bound what is
in flight::

    start_offset   the first record that may still be delivered (Kafka's SPSO)
    next_offset    the first record that was never acquired (Kafka's SPEO)

Between them every record has a state. A log is read from `SharePartition.next_fetch_offset` on, in whole batches, and
what of them is available is acquired. Whatever changes the state that a restart has to know is in
`SharePartition.state`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from loadwise.coordinator.share.acknowledgements import (
    SETTLED,
    Acknowledgement,
    AcknowledgeRefusal,
    AcknowledgeType,
    ownership_problem,
    record_state_problem,
)
from loadwise.coordinator.share.in_flight import Delivery, InFlightBatch, RecordState, Unit
from loadwise.coordinator.share.limits import ShareGroupLimits
from loadwise.coordinator.share.records import StateBatch
from loadwise.protocol.error_codes import ErrorCode


class LogBatch(NamedTuple):
    """A record batch that was read, by the offsets of its first and last record."""

    first: int
    last: int


class Acquired(NamedTuple):
    """Consecutive records that a member acquired."""

    first: int
    last: int
    deliveries: int
    """How often they were delivered, including this time."""


class WantedRecords(NamedTuple):
    """How much a member wants to acquire."""

    max_records: int
    """A soft limit, because whole batches are acquired, unless ``is_strict``."""
    batch_size: int = 2**31 - 1
    """How many records are acknowledged together, if the batches of the log allow it."""
    is_strict: bool = False
    """Whether ``max_records`` is a hard limit (KIP-1206's ``record_limit``)."""


class SharePartition:
    """The records of one partition that a share group has in flight, and their bounds."""

    def __init__(self, start_offset: int, limits: ShareGroupLimits, batches: Sequence[StateBatch] = ()) -> None:
        self.limits = limits
        """The limits of its group, which change with its configs."""
        self.start_offset = start_offset
        self.next_offset = start_offset
        self._batches: list[InFlightBatch] = []
        for first, last, state, deliveries in batches:
            self._batches.append(InFlightBatch(first, last, Delivery(RecordState(state), deliveries)))
            self.next_offset = last + 1

    # ---- queries ----

    @property
    def next_fetch_offset(self) -> int:
        """Return the offset to read from: the first available record, or the first never acquired."""
        available = (unit.first for unit in self.units() if unit.delivery.state is RecordState.AVAILABLE)
        return next(available, self.next_offset)

    @property
    def has_room(self) -> bool:
        """Return whether any record may be acquired, again or for the first time."""
        is_again = self.next_fetch_offset < self.next_offset
        return is_again or self._in_flight < self.limits.partition_max_record_locks

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when the first lock expires; None if no record is acquired."""
        locks = (unit.delivery.locked_until_ms for unit in self.units())
        return min((lock for lock in locks if lock is not None), default=None)

    def units(self) -> Iterator[Unit]:
        """Return all records in flight, in order."""
        for batch in self._batches:
            yield from batch.units()

    @property
    def state(self) -> Sequence[StateBatch]:
        """Return the state that a restart needs, without the last delivery of acquired records.

        Kafka saves the start before it moves past final records, so call this before `advance`.
        """
        rows: list[StateBatch] = []
        for first, last, delivery in self.units():
            state, count = delivery.state, delivery.count
            if state is RecordState.ACQUIRED:
                state, count = RecordState.AVAILABLE, count - 1
            if last < self.start_offset:
                continue
            if rows and rows[-1][1:] == (first - 1, state, count):
                rows[-1] = rows[-1]._replace(last=last)
            else:
                rows.append(StateBatch(max(first, self.start_offset), last, state, count))
        return rows

    @property
    def _in_flight(self) -> int:
        return self.next_offset - self.start_offset

    # ---- acquiring ----

    def acquire(
        self, member_id: str, log_batches: Sequence[LogBatch], wanted: WantedRecords, now_ms: int
    ) -> list[Acquired]:
        """Acquire the available records of the batches for a member. O(records in flight)."""
        if not log_batches or wanted.max_records <= 0:
            return []
        first, last = log_batches[0].first, log_batches[-1].last
        left = min(wanted.max_records, self.limits.partition_max_record_locks - self._in_flight)
        if left <= 0:
            # There is no room for new records, but released ones may be acquired again.
            last = min(last, self.next_offset - 1)
            left = min(wanted.max_records, self.next_offset - self.next_fetch_offset)
        acquired: list[Acquired] = []
        until_ms = now_ms + self.limits.record_lock_duration_ms
        for batch in list(self._overlapping(first, last)):
            if left <= 0:
                break
            is_delicate = self._is_delicate(batch, first, last)
            if is_delicate and acquired:
                left = 0
                break
            whole = batch.whole
            is_covered = first <= batch.first and batch.last <= last
            is_too_large = wanted.is_strict and len(batch) > left
            if whole is not None and whole.state is not RecordState.AVAILABLE:
                continue
            if whole is not None and is_covered and not is_delicate and not is_too_large:
                whole.acquire(member_id, until_ms)
                rows = [Acquired(batch.first, batch.last, whole.count)]
            else:
                batch.split()
                units = batch.units(first, last)
                rows = self._acquire_each(member_id, units, len(batch), left if wanted.is_strict else None, until_ms)
            acquired += rows
            left -= _count(rows)
            if is_delicate and rows:
                left = 0
        if left > 0 and last >= self.next_offset:
            acquired += self._acquire_new(member_id, log_batches, wanted._replace(max_records=left), until_ms)
        return acquired

    def archive(self, acquired: Sequence[Acquired], batches: Sequence[LogBatch]) -> list[Acquired]:
        """Archive batches of aborted transactions that were just acquired; return the rest."""
        for gone in batches:
            for batch in self._overlapping(gone.first, gone.last):
                if batch.first < gone.first or gone.last < batch.last:
                    batch.split()
                for unit in batch.units(gone.first, gone.last):
                    if unit.delivery.state is RecordState.ACQUIRED:
                        unit.delivery.settle(RecordState.ARCHIVED)
        rows = list(acquired)
        for gone in batches:
            rows = [part for row in rows for part in _without(row, gone)]
        self.advance()
        return rows

    def _is_delicate(self, batch: InFlightBatch, first: int, last: int) -> bool:
        """Return whether records are near the delivery limit and are delivered in smaller numbers.

        This keeps one bad record from taking all others of its batch with it.
        """
        units = batch.units(first, last)
        if batch.whole is None:
            units = (unit for unit in units if unit.delivery.state is RecordState.AVAILABLE)
        return max((unit.delivery.count for unit in units), default=0) >= self._delicate_from

    @property
    def _delicate_from(self) -> int:
        return max(2, (self.limits.delivery_count_limit + 1) // 2)

    def _acquire_each(
        self, member_id: str, units: Iterator[Unit], size: int, most: int | None, until_ms: int
    ) -> list[Acquired]:
        limit = self.limits.delivery_count_limit
        rows: list[Acquired] = []
        taken = 0
        for offset, _, delivery in units:
            if delivery.state is not RecordState.AVAILABLE:
                continue
            is_last_time = limit > 2 and delivery.count == limit - 1
            if is_last_time and rows:
                break  # it is delivered alone next time
            if delivery.count >= self._delicate_from and most is None:
                most = max(1, size >> (delivery.count - self._delicate_from + 1))
            delivery.acquire(member_id, until_ms)
            taken += 1
            if rows and rows[-1][1:] == (offset - 1, delivery.count):
                rows[-1] = rows[-1]._replace(last=offset)
            else:
                rows.append(Acquired(offset, offset, delivery.count))
            if is_last_time or taken == most:
                break
        return rows

    def _acquire_new(
        self, member_id: str, log_batches: Sequence[LogBatch], wanted: WantedRecords, until_ms: int
    ) -> list[Acquired]:
        first, last = max(log_batches[0].first, self.next_offset), log_batches[-1].last
        end = first + wanted.max_records - 1
        if end < last:
            last = next((batch.last for batch in log_batches if batch.first <= end <= batch.last), end)
        if not self._batches:
            self.start_offset = first
        self.next_offset = last + 1
        if wanted.is_strict:
            batch = InFlightBatch(first, last, Delivery(RecordState.AVAILABLE, 0))
            self._batches.append(batch)
            if last > end:
                batch.split()
            for unit in batch.units(first, end):
                unit.delivery.acquire(member_id, until_ms)
            return [Acquired(first, min(last, end), 1)]
        starts = [first]
        for each in log_batches:
            if starts[-1] + wanted.batch_size <= each.first <= last:
                starts.append(each.first)
        rows = []
        for start, stop in zip(starts, [*starts[1:], last + 1], strict=True):
            delivery = Delivery(RecordState.ACQUIRED, 1, member_id, until_ms)
            self._batches.append(InFlightBatch(start, stop - 1, delivery))
            rows.append(Acquired(start, stop - 1, 1))
        return rows

    # ---- acknowledging ----

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], now_ms: int
    ) -> AcknowledgeRefusal | None:
        """Apply a member's acknowledgements, all or none; return why they fail. Then call `advance`.

        O(records in flight).
        """
        undo: list[tuple[Delivery, RecordState, int | None]] = []
        for each in acknowledgements:
            refusal = self._acknowledge(member_id, each, now_ms, undo)
            if refusal is not None:
                for delivery, state, locked_until_ms in undo:
                    delivery.state, delivery.member_id, delivery.locked_until_ms = state, member_id, locked_until_ms
                return refusal
        return None

    def release(self, member_id: str) -> bool:
        """Release all records of a member; return whether it had any. Then call `advance`."""
        return self._take_back(lambda delivery: delivery.member_id == member_id)

    def expire(self, now_ms: int) -> bool:
        """Release records whose locks have expired; return whether there were any. Then call `advance`."""
        return self._take_back(
            lambda delivery: delivery.locked_until_ms is not None and delivery.locked_until_ms <= now_ms
        )

    def delete_before(self, offset: int) -> None:
        """Move the log's start to ``offset``; available records before it are no longer delivered.

        Members keep acquired ones, but acknowledging them has no effect.
        """
        if offset <= self.start_offset:
            return
        for batch in self._overlapping(self.start_offset, offset - 1):
            whole = batch.whole
            if whole is not None and whole.state is RecordState.AVAILABLE and batch.last >= offset:
                batch.split()
            for unit in batch.units(last=offset - 1):
                if unit.delivery.state is RecordState.AVAILABLE:
                    unit.delivery.settle(RecordState.ARCHIVED)
        self.start_offset = offset
        self.next_offset = max(self.next_offset, offset)
        self.advance()

    def _acknowledge(
        self,
        member_id: str,
        told: Acknowledgement,
        now_ms: int,
        undo: list[tuple[Delivery, RecordState, int | None]],
    ) -> AcknowledgeRefusal | None:
        if told.last < self.start_offset:
            return None
        batches = list(self._overlapping(told.first, told.last))
        is_known = any(batch.first <= told.first for batch in self._batches)
        if not is_known and not told.first < self.start_offset <= told.last:
            return record_state_problem("Batch record not found. The request batch offsets are not found in the cache.")
        if not batches:
            return AcknowledgeRefusal(
                ErrorCode.INVALID_REQUEST, "The first offset in request is past acquired records."
            )
        if told.last > batches[-1].last:
            return AcknowledgeRefusal(ErrorCode.INVALID_REQUEST, "The last offset in request is past acquired records.")
        for batch in batches:
            if batch.last < self.start_offset:
                continue
            whole = batch.whole
            if whole is not None:
                refusal = ownership_problem(whole, member_id, "batch")
                if refusal is not None:
                    return refusal
            is_covered = told.first <= batch.first and batch.last <= told.last
            if not is_covered or len(told.types) > 1 or batch.first < self.start_offset:
                batch.split()
            for first, _, delivery in batch.units(max(told.first, self.start_offset), told.last):
                refusal = ownership_problem(delivery, member_id, "offset")
                if refusal is not None:
                    return refusal
                kind = told.types[first - told.first if len(told.types) > 1 else 0]
                if kind == AcknowledgeType.RENEW:
                    delivery.locked_until_ms = now_ms + self.limits.record_lock_duration_ms
                else:
                    undo.append((delivery, delivery.state, delivery.locked_until_ms))
                    self._settle(delivery, SETTLED[kind])
        return None

    def _settle(self, delivery: Delivery, state: RecordState) -> None:
        if state is RecordState.AVAILABLE and delivery.count >= self.limits.delivery_count_limit:
            state = RecordState.ARCHIVED
        delivery.settle(state)

    def _take_back(self, is_lost: Callable[[Delivery], bool]) -> bool:
        is_any = False
        for batch in self._batches:
            if batch.first < self.start_offset <= batch.last and batch.whole is not None and is_lost(batch.whole):
                batch.split()
            for _, last, delivery in batch.units():
                if delivery.state is not RecordState.ACQUIRED or not is_lost(delivery):
                    continue
                is_any = True
                is_gone = last < self.start_offset
                self._settle(delivery, RecordState.ARCHIVED if is_gone else RecordState.AVAILABLE)
        return is_any

    def advance(self) -> None:
        """Move the start past all records that are never delivered again."""
        start = self.next_offset
        for first, last, delivery in self.units():
            if last >= self.start_offset and not delivery.state.is_final:
                start = max(first, self.start_offset)
                break
        self.start_offset = start
        self._batches = [batch for batch in self._batches if batch.last >= start]

    def _overlapping(self, first: int, last: int) -> Iterator[InFlightBatch]:
        index = max(bisect_right(self._batches, first, key=lambda batch: batch.first) - 1, 0)
        for batch in self._batches[index:]:
            if batch.first > last:
                break
            if batch.last >= first:
                yield batch


def _count(rows: Sequence[Acquired]) -> int:
    return sum(last - first + 1 for first, last, _ in rows)


def _without(row: Acquired, gone: LogBatch) -> Iterator[Acquired]:
    if row.first < gone.first:
        yield row._replace(last=min(row.last, gone.first - 1))
    if row.last > gone.last:
        yield row._replace(first=max(row.first, gone.last + 1))
