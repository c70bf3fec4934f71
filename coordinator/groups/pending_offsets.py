"""Offsets of open transactions, which are not visible yet. Only records change them.

Mirrors the pending transactional offsets of Kafka's ``OffsetMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import count
from typing import NamedTuple

from loadwise.coordinator.groups.partitions import CommittedOffset, Partition, size_bytes_of
from loadwise.coordinator.groups.records import PendingOffsetRecord, PendingOffsetTombstone


class PendingOffset(NamedTuple):
    """An offset of an open transaction."""

    order: int
    """Its place in the order of all such commits, as Kafka's record offset."""
    committed: CommittedOffset | None
    """None if a later commit replaces it, so that the transaction's end changes nothing."""


class PendingOffsets:
    """Producer id to group id to partition to its pending offset."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[str, dict[Partition, PendingOffset]]] = {}
        self._orders = count()
        self.size_bytes = 0
        """Approximate bytes of all pending offsets."""

    def apply(self, record: PendingOffsetRecord | PendingOffsetTombstone) -> None:
        """Apply a new or replayed record."""
        partition = Partition(record.topic, record.partition)
        groups = self._by_producer.setdefault(record.producer_id, {})
        offsets = groups.setdefault(record.group_id, {})
        self._drop(offsets, partition)
        if isinstance(record, PendingOffsetRecord):
            offsets[partition] = PendingOffset(next(self._orders), record.committed)
            self.size_bytes += size_bytes_of(partition, record.committed)
            return
        if not offsets:
            del groups[record.group_id]
        if not groups:
            del self._by_producer[record.producer_id]

    def of(self, group_id: str) -> set[Partition]:
        """Return the partitions of a group with offsets in open transactions."""
        return {partition for groups in self._by_producer.values() for partition in groups.get(group_id, ())}

    def all_group_ids(self) -> set[str]:
        """Return the groups with offsets in open transactions."""
        return {group_id for groups in self._by_producer.values() for group_id in groups}

    def deleted(self, group_id: str, partitions: Collection[Partition]) -> Iterator[PendingOffsetTombstone]:
        """Return the tombstones of these partitions, in the transactions of all producers."""
        for producer_id, partition, _ in self._of_all_producers(group_id, partitions):
            yield PendingOffsetTombstone(
                group_id=group_id, producer_id=producer_id, topic=partition.topic, partition=partition.number
            )

    def superseded(
        self, group_id: str, partitions: Collection[Partition], before: int | None = None
    ) -> Iterator[PendingOffsetRecord]:
        """Return records of the pending offsets that a commit of these partitions replaces.

        ``before`` is the order of that commit if it was made in a transaction, which has ended since.
        """
        for producer_id, partition, pending in self._of_all_producers(group_id, partitions):
            if pending.committed is not None and (before is None or pending.order < before):
                yield PendingOffsetRecord(
                    group_id=group_id,
                    producer_id=producer_id,
                    topic=partition.topic,
                    partition=partition.number,
                    committed=None,
                )

    def forget(self, group_id: str) -> None:
        """Drop the pending offsets of a deleted group."""
        for groups in self._by_producer.values():
            offsets = groups.pop(group_id, {})
            for partition in list(offsets):
                self._drop(offsets, partition)

    def _drop(self, offsets: dict[Partition, PendingOffset], partition: Partition) -> None:
        pending = offsets.pop(partition, None)
        if pending is not None:
            self.size_bytes -= size_bytes_of(partition, pending.committed)

    def of_producer(self, producer_id: int, group_id: str) -> Mapping[Partition, PendingOffset]:
        """Return a producer's pending offsets of a group."""
        return self._by_producer.get(producer_id, {}).get(group_id, {})

    def group_ids(self, producer_id: int) -> set[str]:
        """Return the groups with pending offsets of a producer."""
        return set(self._by_producer.get(producer_id, ()))

    def _of_all_producers(
        self, group_id: str, partitions: Collection[Partition]
    ) -> Iterator[tuple[int, Partition, PendingOffset]]:
        for producer_id, groups in self._by_producer.items():
            offsets = groups.get(group_id, {})
            for partition in partitions:
                if partition in offsets:
                    yield producer_id, partition, offsets[partition]
