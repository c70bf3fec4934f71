"""Where a share group starts in a partition that it has never read (share.auto.offset.reset)."""

from __future__ import annotations

from collections.abc import Iterator

from loadwise.coordinator.cluster.log import NO_OFFSET, PartitionLog, TimestampedOffset
from loadwise.coordinator.share.reset_strategies import BY_DURATION, duration_ms
from loadwise.protocol.errors import MalformedBytesError, MissingCodecError
from loadwise.protocol.record_times import ReadingBudget, record_times


def start_offset(strategy: str, log: PartitionLog, now_ms: int) -> int:
    """Return the first offset that the group reads.

    ``now_ms`` counts from 1970. O(batches) for a duration.
    """
    kind = strategy.lower()
    if kind == "earliest":
        return log.start_offset
    if kind.startswith(BY_DURATION):
        since_ms = now_ms - (duration_ms(strategy[len(BY_DURATION) :]) or 0)
        try:
            found = log.first_at_or_after(since_ms, _records)
        except (MissingCodecError, MalformedBytesError):
            return log.end_offset  # records that cannot be decoded are skipped
        return log.end_offset if found.offset == NO_OFFSET else found.offset
    return log.end_offset


def _records(batch: bytes) -> Iterator[TimestampedOffset]:
    return (TimestampedOffset(each.offset, each.timestamp_ms) for each in record_times(batch, ReadingBudget()))
