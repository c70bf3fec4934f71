"""One partition in memory: record batches as their producer sent them, each given its place.

Mirrors Kafka's ``UnifiedLog`` and ``LogValidator`` as far as a broker without replicas, segments and transactions needs
them. Nothing is done per record, but to find the record of a timestamp.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from loadwise.coordinator.cluster.leader_epochs import LeaderEpochs
from loadwise.coordinator.cluster.producers import ProducerStates
from loadwise.protocol.batches import HEADER_BYTES, MAGIC, BatchHeader, checksummed, placed, read_header
from loadwise.protocol.error_codes import ErrorCode

NO_TIMESTAMP = -1
NO_OFFSET = -1


class TimestampedOffset(NamedTuple):
    """A record found by its timestamp; both -1 if there is none."""

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


class PartitionLog:
    """The log of one partition, from offset 0 on."""

    def __init__(self, crc32c: Callable[[memoryview], int], *, max_batch_bytes: int) -> None:
        self._crc32c = crc32c
        self._max_batch_bytes = max_batch_bytes
        self._batches: list[bytes] = []
        self._last_offsets: list[int] = []
        self._max_timestamps: list[int] = []
        self._producers = ProducerStates()
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
        return 0

    @property
    def end_offset(self) -> int:
        """Offset that the next record gets. High watermark and last stable offset are the same here."""
        return self._last_offsets[-1] + 1 if self._last_offsets else 0

    def append(self, data: bytes) -> Appended:
        """Check one record batch and keep it. O(size of the batch), for the CRC."""
        header = read_header(data)
        refusal = self._refusal(header, data)
        if refusal is not None:
            return refusal
        assert header is not None
        base_offset = self.end_offset
        verdict = self._producers.check(header, base_offset)
        if verdict.error is not ErrorCode.NONE:
            return Appended(verdict.error, message=verdict.message)
        if verdict.known_offset is not None:
            return Appended(ErrorCode.NONE, verdict.known_offset)  # a retry of what is here already
        batch = placed(data, base_offset, self.leader_epoch)
        self._batches.append(batch)
        self._last_offsets.append(base_offset + header.last_offset_delta)
        self._max_timestamps.append(header.max_timestamp)
        self.size_bytes += len(batch)
        return Appended(ErrorCode.NONE, base_offset, size_bytes=len(batch))

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool) -> bytes:
        """Whole batches from the one that holds ``offset`` on, up to ``max_bytes`` together.

        ``at_least_one`` lets the first batch be larger than that, so that a reader never gets stuck. Empty at the end.
        """
        batches = self._batches
        first = stop = bisect_left(self._last_offsets, offset)
        taken = 0
        while stop < len(batches):
            taken += len(batches[stop])
            if taken > max_bytes and not (at_least_one and stop == first):
                break
            stop += 1
        return batches[first] if stop == first + 1 else b"".join(batches[first:stop])

    def available_bytes(self, offset: int, limit: int) -> int:
        """Size of the batches from the one that holds ``offset`` on; counting stops at ``limit``."""
        total = 0
        for index in range(bisect_left(self._last_offsets, offset), len(self._batches)):
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
                return next((found for found in records(batch) if found.timestamp >= timestamp), TimestampedOffset())
        return TimestampedOffset()

    def latest_timestamp(self, records: Callable[[bytes], Iterator[TimestampedOffset]]) -> TimestampedOffset:
        """The first record with the largest timestamp of all. O(batches)."""
        if not self._batches:
            return TimestampedOffset()
        latest = max(self._max_timestamps)
        batch = self._batches[self._max_timestamps.index(latest)]
        return next((found for found in records(batch) if found.timestamp >= latest), TimestampedOffset())

    def _refusal(self, header: BatchHeader | None, data: bytes) -> Appended | None:
        if header is None or header.size_bytes > len(data):
            return Appended(ErrorCode.INVALID_RECORD, message="the record batch ends early")
        if header.size_bytes < HEADER_BYTES:
            return Appended(ErrorCode.CORRUPT_MESSAGE, message="the record batch is shorter than its header")
        if header.size_bytes < len(data):
            return Appended(ErrorCode.INVALID_RECORD, message="a produce request takes one record batch a partition")
        if header.magic < MAGIC:
            return Appended(ErrorCode.INVALID_RECORD, message="only record batches v2 are taken")
        if len(data) > self._max_batch_bytes:
            message = f"the record batch has {len(data):,} bytes; the limit is {self._max_batch_bytes:,}"
            return Appended(ErrorCode.MESSAGE_TOO_LARGE, message=message)
        if header.magic > MAGIC or self._crc32c(checksummed(data)) != header.crc:
            return Appended(ErrorCode.CORRUPT_MESSAGE, message="the CRC of the record batch is wrong")
        if not header.is_sound:
            return Appended(ErrorCode.INVALID_RECORD, message="the header of the record batch contradicts itself")
        if header.is_control or header.is_transactional:
            return Appended(ErrorCode.INVALID_RECORD, message="transactions are not supported here")
        return None
