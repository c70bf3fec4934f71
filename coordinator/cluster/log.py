"""One partition in memory: record batches as their producer sent them, each given its place.

Mirrors Kafka's ``UnifiedLog`` and ``LogValidator`` as far as a broker without replicas and segments needs them. Nothing
is done per record, but to find the record of a timestamp.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from loadwise.coordinator.cluster.leader_epochs import LeaderEpochs
from loadwise.coordinator.cluster.open_transactions import OpenTransactions
from loadwise.coordinator.cluster.producers import NO_PRODUCER_ID, ProducerStates
from loadwise.coordinator.cluster.records import AbortedTransaction, LogRecord
from loadwise.coordinator.cluster.validator import validated
from loadwise.coordinator.configs.topic_configs import LogConfig, TimestampType
from loadwise.coordinator.keeper import KeptBatch, LogContents, LogName
from loadwise.protocol.batches import HEADER_BYTES, MAGIC, BatchHeader, checksummed, placed, read_header
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.markers import end_marker, read_end_marker

NO_TIMESTAMP = -1
NO_OFFSET = -1
NO_NAME = LogName(UUID(int=0), 0)
"""Of a log that belongs to no broker."""


class TimestampedOffset(NamedTuple):
    """A record found by its timestamp; both -1 if no record is found."""

    offset: int = NO_OFFSET
    timestamp: int = NO_TIMESTAMP


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of a batch."""

    error: ErrorCode
    base_offset: int = NO_OFFSET
    message: str | None = None
    """What is wrong with the batch, for the client to show."""
    size_bytes: int = 0
    """How many bytes the log grew by; 0 for a refused or repeated batch."""
    bad_records: Sequence[int] = ()
    """Which records of the batch are why it was refused, counted from 0."""
    timestamp_ms: int = NO_TIMESTAMP
    """The time that the broker gave all of its records, or the largest of a repeated batch; else `NO_TIMESTAMP`."""
    stable_bytes: int = 0
    """How many bytes more a reader of committed records can see: all of them, unless a transaction is open."""


class PartitionLog:
    """The log of one partition, from offset 0 on."""

    def __init__(self, crc32c: Callable[[memoryview], int], config: LogConfig, name: LogName = NO_NAME) -> None:
        self._crc32c = crc32c
        self.name = name
        """Under which its batches are kept."""
        self.config = config
        """What its topic's configs want of it; changed with them."""
        self._start_offset = 0
        self._held_offset: int | None = None
        self._batches: list[bytes] = []
        self._last_offsets: list[int] = []
        self._max_timestamps: list[int] = []
        self.producers = ProducerStates()
        """Who wrote here, for the idempotent producers."""
        self.transactions = OpenTransactions()
        """Which transactions are open here, and which were aborted."""
        self.epochs = LeaderEpochs()
        """Which leader epoch wrote what."""
        self.size_bytes = 0
        """Size of all batches together."""

    @property
    def leader_epoch(self) -> int:
        """The epoch of the present leader, which every batch that is appended gets."""
        return self.epochs.latest

    @property
    def start_offset(self) -> int:
        """Offset of the first record that is kept."""
        return self._start_offset

    @property
    def end_offset(self) -> int:
        """Offset that the next record gets."""
        return self._last_offsets[-1] + 1 if self._last_offsets else self._start_offset

    @property
    def high_watermark(self) -> int:
        """Offset up to which clients may read: the end, as long as nothing is held back."""
        return self.end_offset if self._held_offset is None else max(self._start_offset, self._held_offset)

    @property
    def stable_offset(self) -> int:
        """Offset up to which no transaction is open (the last stable offset): committed records end there.

        Not before the first record that is kept, if the beginning of a transaction was deleted
        (``UnifiedLog.maybeIncrementFirstUnstableOffset``).
        """
        return max(self._start_offset, min(self.transactions.stable_offset(self.end_offset), self.high_watermark))

    def hold(self, held: bool) -> bool:
        """Hold back from clients what is appended from now on, or give them everything again; whether that is more."""
        if held:
            self._held_offset = self.high_watermark
            return False
        is_more = self.high_watermark < self.end_offset
        self._held_offset = None
        return is_more

    def append(
        self, data: bytes, *, now_ms: int = 0, in_transaction: bool = False, begins_at_zero: bool = False
    ) -> Appended:
        """Check one record batch and keep it. O(size of the batch), for the CRC.

        ``now_ms``: milliseconds since 1970.

        ``in_transaction``: the coordinator of the producer's transaction knows that it writes here. Without that a
        transactional batch is refused unless the transaction has begun here. ``begins_at_zero`` as in
        `ProducerStates.check`.
        """
        header = read_header(data)
        refusal = self._refusal(header, data)
        if refusal is not None:
            return refusal
        assert header is not None
        verdict = self.producers.check(header, begins_at_zero=begins_at_zero)
        if verdict.error is not ErrorCode.NONE:
            return Appended(verdict.error, message=verdict.message)
        if verdict.known is not None:  # a retry of what is here already
            return Appended(ErrorCode.NONE, verdict.known.base_offset, timestamp_ms=verdict.known.max_timestamp_ms)
        is_open = header.producer_id in self.transactions.open
        if header.is_transactional and not (in_transaction or self.is_writing(header)):
            return Appended(ErrorCode.INVALID_TXN_STATE, message="the record is not part of an open transaction")
        if is_open and not header.is_transactional:
            message = "the producer has a transaction open here, and the record is not part of it"
            return Appended(ErrorCode.INVALID_TXN_STATE, message=message)
        valid = validated(data, header, self.config, now_ms, self._crc32c)
        if valid.error is not ErrorCode.NONE:
            return Appended(valid.error, message=valid.message, bad_records=valid.bad_records)
        base_offset = self.end_offset
        if valid.batch is not data:
            header = read_header(valid.batch)
            assert header is not None
        self._note(header, valid.batch, base_offset)
        has_broker_time = self.config.timestamp_type is TimestampType.LOG_APPEND_TIME
        self._keep(valid.batch, header)
        appended = self._appended(base_offset, stable_before=self.transactions.stable_offset(base_offset))
        return replace(appended, timestamp_ms=now_ms) if has_broker_time else appended

    def delete_before(self, offset: int) -> int:
        """Delete the records before an offset of this log; answers how many bytes that freed. O(batches).

        A batch goes when all of its records do.
        """
        count = bisect_left(self._last_offsets, offset)
        freed_bytes = sum(map(len, self._batches[:count]))
        del self._batches[:count], self._last_offsets[:count], self._max_timestamps[:count]
        self._start_offset = offset
        self.size_bytes -= freed_bytes
        self.transactions.drop_before(offset)
        return freed_bytes

    def retained_from(self, now_ms: int) -> int:
        """The first offset that retention.ms and retention.bytes leave. O(batches that go).

        What Kafka does with segments is done with batches here; an open transaction stays whole.
        """
        config, count, left_bytes = self.config, 0, self.size_bytes
        while config.is_deleted and count < len(self._batches):
            is_old = config.retention_ms >= 0 and self._max_timestamps[count] < now_ms - config.retention_ms
            left_bytes -= len(self._batches[count])
            if not is_old and not 0 <= config.retention_bytes <= left_bytes:
                break
            count += 1
        offset = self._last_offsets[count - 1] + 1 if count else self._start_offset
        return min(offset, self.stable_offset)

    def is_writing(self, header: BatchHeader) -> bool:
        """Whether the producer of a batch has a transaction open here, in the epoch of the batch."""
        producer = self.producers.known.get(header.producer_id)
        is_its_epoch = producer is not None and producer.epoch == header.producer_epoch
        return is_its_epoch and header.producer_id in self.transactions.open

    def end_transaction(
        self,
        producer_id: int,
        epoch: int,
        *,
        committed: bool,
        coordinator_epoch: int,
        timestamp_ms: int,
        bumps_epoch: bool = False,
    ) -> Appended:
        """Write the marker that ends a producer's transaction here, whether or not it has written anything.

        ``bumps_epoch`` as in `ProducerStates.check_marker`.
        """
        verdict = self.producers.check_marker(producer_id, epoch, coordinator_epoch, bumps_epoch=bumps_epoch)
        if verdict.error is not ErrorCode.NONE:
            return Appended(verdict.error, message=verdict.message)
        marker = end_marker(
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=timestamp_ms,
            crc32c=self._crc32c,
        )
        header = read_header(marker)
        assert header is not None
        base_offset, stable_before = self.end_offset, self.stable_offset
        self._note(header, marker, base_offset)
        self._keep(marker, header)
        return self._appended(base_offset, stable_before)

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool, end_offset: int | None = None) -> bytes:
        """Whole batches from the one that holds ``offset`` on, up to ``max_bytes`` together.

        ``at_least_one`` lets the first batch be larger than that, so that a reader never gets stuck. ``end_offset`` is
        where to stop, the end of a batch; None: at the end. Empty there.
        """
        batches = self._batches
        first = stop = bisect_left(self._last_offsets, offset)
        end = len(batches) if end_offset is None else bisect_left(self._last_offsets, end_offset)
        taken = 0
        while stop < end:
            taken += len(batches[stop])
            if taken > max_bytes and not (at_least_one and stop == first):
                break
            stop += 1
        return batches[first] if stop == first + 1 else b"".join(batches[first:stop])

    def aborted_in(self, offset: int, size_bytes: int) -> Sequence[AbortedTransaction]:
        """The aborted transactions with records among ``size_bytes`` that were read from ``offset`` on."""
        if not size_bytes:
            return []
        index = bisect_left(self._last_offsets, offset)
        end_offset = offset
        while size_bytes > 0:
            size_bytes -= len(self._batches[index])
            end_offset = self._last_offsets[index] + 1
            index += 1
        return self.transactions.aborted_between(offset, end_offset)

    def available_bytes(self, offset: int, limit: int, end_offset: int | None = None) -> int:
        """Size of the batches from the one that holds ``offset`` on; counting stops at ``limit`` and ``end_offset``."""
        end = len(self._batches) if end_offset is None else bisect_left(self._last_offsets, end_offset)
        total = 0
        for index in range(bisect_left(self._last_offsets, offset), end):
            total += len(self._batches[index])
            if total >= limit:
                break
        return total

    def first_at_or_after(
        self, timestamp: int, records: Callable[[bytes], Iterator[TimestampedOffset]]
    ) -> TimestampedOffset:
        """The first record whose timestamp is at or after ``timestamp``; ``records`` unpacks one batch. O(batches)."""
        for batch, latest in zip(self._batches, self._max_timestamps, strict=True):
            if latest >= timestamp:
                for found in records(batch):
                    if found.timestamp >= timestamp and found.offset >= self._start_offset:
                        return found
        return TimestampedOffset()

    def end_before(self, timestamp_ms: int) -> int | None:
        """Where the log ended at that time, by the timestamps of its batches; None if no batch is as young.

        A batch that carries an old time hides what came after it, so the answer is a guess. O(batches since then).
        """
        first = len(self._batches)
        while first and self._max_timestamps[first - 1] >= timestamp_ms:
            first -= 1
        if first == len(self._batches):
            return None
        return self._start_offset if not first else self._last_offsets[first - 1] + 1

    def latest_timestamp(self, records: Callable[[bytes], Iterator[TimestampedOffset]]) -> TimestampedOffset:
        """The first record with the largest timestamp of all. O(batches)."""
        if not self._batches:
            return TimestampedOffset()
        latest = max(self._max_timestamps)
        batch = self._batches[self._max_timestamps.index(latest)]
        return next((found for found in records(batch) if found.timestamp >= latest), TimestampedOffset())

    # ---- over a restart ----

    @property
    def last_batch(self) -> KeptBatch:
        """The batch that was appended last; there must be one."""
        return KeptBatch(self._batches[-1], self._last_offsets[-1], self._max_timestamps[-1])

    def contents(self) -> LogContents:
        """All batches, which the log goes on to share. O(batches)."""
        return LogContents(tuple(self._batches), tuple(self._last_offsets), tuple(self._max_timestamps))

    def record(self) -> LogRecord:
        """What it knows beside its batches."""
        return LogRecord(
            start_offset=self._start_offset,
            end_offset=self.end_offset,
            epochs=self.epochs.starts,
            producers=self.producers.records(),
            open=tuple(self.transactions.open.items()),
            aborted=self.transactions.aborted,
        )

    def load(self, record: LogRecord, contents: LogContents) -> None:
        """Become the log that these are of. O(batches), and the headers of those that the record does not know yet."""
        self._start_offset = record.start_offset
        self.epochs = LeaderEpochs(record.epochs)
        self.producers = ProducerStates(record.producers)
        self.transactions = OpenTransactions(record.open, record.aborted)
        self._batches = list(contents.batches)
        self._last_offsets = list(contents.last_offsets)
        self._max_timestamps = list(contents.max_timestamps_ms)
        self.size_bytes = sum(map(len, self._batches))
        for batch in self._batches[bisect_left(self._last_offsets, record.end_offset) :]:
            header = read_header(batch)
            assert header is not None
            self._note(header, batch, header.base_offset)

    def expire_producers(self, before_ms: int) -> bool:
        """Forget the producers that have written nothing since a time. Answers if there was any. O(producers)."""
        return self.producers.expire(before_ms, self.transactions.open)

    def _note(self, header: BatchHeader, batch: bytes, base_offset: int) -> None:
        """What follows for producers and transactions from a batch at ``base_offset``, new or read back."""
        if header.is_control:
            marker = read_end_marker(batch)
            epoch, timestamp_ms = header.producer_epoch, header.max_timestamp
            self.producers.remember_marker(header.producer_id, epoch, marker.coordinator_epoch, timestamp_ms)
            self.transactions.end(header.producer_id, base_offset, committed=marker.committed)
            return
        self.producers.remember(header, base_offset)
        if header.is_transactional:
            self.transactions.begin(header.producer_id, base_offset)

    # ---- inside ----

    def _keep(self, data: bytes, header: BatchHeader) -> None:
        base_offset = self.end_offset
        batch = placed(data, base_offset, self.leader_epoch)
        self._batches.append(batch)
        self._last_offsets.append(base_offset + header.last_offset_delta)
        self._max_timestamps.append(header.max_timestamp)
        self.size_bytes += len(batch)

    def _appended(self, base_offset: int, stable_before: int) -> Appended:
        """The answer to a batch that was kept last; committed records ended at ``stable_before`` before that."""
        size_bytes = len(self._batches[-1])
        stable_bytes = self.available_bytes(stable_before, self.size_bytes, self.stable_offset)
        return Appended(ErrorCode.NONE, base_offset, size_bytes=size_bytes, stable_bytes=stable_bytes)

    def _refusal(self, header: BatchHeader | None, data: bytes) -> Appended | None:
        if header is None or header.size_bytes > len(data):
            return Appended(ErrorCode.INVALID_RECORD, message="the record batch ends early")
        if header.size_bytes < HEADER_BYTES:
            return Appended(ErrorCode.CORRUPT_MESSAGE, message="the record batch is shorter than its header")
        if header.size_bytes < len(data):
            return Appended(ErrorCode.INVALID_RECORD, message="a produce request takes one record batch a partition")
        if header.magic < MAGIC:
            return Appended(ErrorCode.INVALID_RECORD, message="only record batches v2 are taken")
        if header.base_offset:
            message = f"the base offset of the record batch should be 0, but it is {header.base_offset}"
            return Appended(ErrorCode.INVALID_RECORD, message=message)
        limit = self.config.max_message_bytes
        if len(data) > limit:
            message = f"the record batch has {len(data):,} bytes; the limit is {limit:,}"
            return Appended(ErrorCode.MESSAGE_TOO_LARGE, message=message)
        if header.magic > MAGIC or self._crc32c(checksummed(data)) != header.crc:
            return Appended(ErrorCode.CORRUPT_MESSAGE, message="the CRC of the record batch is wrong")
        if not header.is_sound:
            return Appended(ErrorCode.INVALID_RECORD, message="the header of the record batch contradicts itself")
        if header.is_control:
            return Appended(ErrorCode.INVALID_RECORD, message="only a broker writes control records")
        if header.is_transactional and header.producer_id == NO_PRODUCER_ID:
            return Appended(ErrorCode.INVALID_RECORD, message="a transactional batch needs a producer id")
        return None
