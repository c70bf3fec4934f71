"""Builds a partition's part of a share fetch: record batches, and the acquired records.

Mirrors Kafka's ``ShareFetchUtils.processFetchResponse``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.cluster.records import AbortedTransaction
from loadwise.coordinator.share.partition import Acquired, LogBatch, SharePartition, WantedRecords
from loadwise.protocol.batches import BatchHeader, read_header


class Delivered(NamedTuple):
    """Whole batches and the acquired records in them; clients skip all other records."""

    records: bytes = b""
    acquired: Sequence[Acquired] = ()

    @property
    def number(self) -> int:
        """Return the number of acquired records."""
        return sum(last - first + 1 for first, last, _ in self.acquired)


class _Batch(NamedTuple):
    data: memoryview
    header: BatchHeader

    @property
    def offsets(self) -> LogBatch:
        return LogBatch(self.header.base_offset, self.header.base_offset + self.header.last_offset_delta)


def available_bytes(partition: SharePartition, log: PartitionLog, limit: int) -> int:
    """Return how many bytes a member could get, up to a limit."""
    return log.available_bytes(partition.next_fetch_offset, limit, _end_offset(partition, log))


def deliver(
    partition: SharePartition,
    log: PartitionLog,
    member_id: str,
    wanted: WantedRecords,
    now_ms: int,
    *,
    max_bytes: int,
    at_least_one: bool,
) -> Delivered:
    """Acquire available records for a member, up to ``max_bytes`` of batches.

    ``at_least_one`` as in `PartitionLog.read`.
    """
    end_offset = _end_offset(partition, log)
    while (offset := partition.next_fetch_offset) < end_offset:
        data = log.read(offset, max_bytes, at_least_one=at_least_one, end_offset=end_offset)
        batches = list(_batches(data))
        acquired = partition.acquire(member_id, [batch.offsets for batch in batches], wanted, now_ms)
        if not acquired:
            break
        if partition.limits.committed_only:
            aborted = log.aborted_in(offset, len(data))
            acquired = partition.archive(acquired, [batch.offsets for batch in batches if _is_aborted(batch, aborted)])
        if acquired:
            first, last = acquired[0].first, acquired[-1].last
            own = [batch.data for batch in batches if batch.offsets.last >= first and batch.offsets.first <= last]
            return Delivered(b"".join(own), acquired)
        # All of it was aborted, so the member gets the records after it; nothing else would wake it.
    return Delivered()


def _end_offset(partition: SharePartition, log: PartitionLog) -> int:
    return log.stable_offset if partition.limits.committed_only else log.high_watermark


def _batches(data: bytes) -> Iterator[_Batch]:
    view = memoryview(data)
    while view:
        header = read_header(view)
        assert header is not None, "a log reads whole batches"
        yield _Batch(view[: header.size_bytes], header)
        view = view[header.size_bytes :]


def _is_aborted(batch: _Batch, aborted: Sequence[AbortedTransaction]) -> bool:
    header = batch.header
    return (
        header.is_transactional
        and not header.is_control
        and any(
            each.producer_id == header.producer_id and each.first_offset <= header.base_offset <= each.last_offset
            for each in aborted
        )
    )
