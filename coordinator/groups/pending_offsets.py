"""Offsets of open transactions, which are not visible yet. Only records change them.

Mirrors the pending transactional offsets of Kafka's ``OffsetMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.records import PendingOffsetRecord, PendingOffsetTombstone


class PendingOffsets:
    """Producer id to group id to partition to its pending offset."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[str, dict[Partition, CommittedOffset | None]]] = {}

    def apply(self, record: PendingOffsetRecord | PendingOffsetTombstone) -> None:
        """Apply a new or replayed record."""
        partition = Partition(record.topic, record.partition)
        groups = self._by_producer.setdefault(record.producer_id, {})
        offsets = groups.setdefault(record.group_id, {})
        if isinstance(record, PendingOffsetRecord):
            offsets[partition] = record.committed
            return
        offsets.pop(partition, None)
        if not offsets:
            del groups[record.group_id]
        if not groups:
            del self._by_producer[record.producer_id]

    def __len__(self) -> int:
        """Return the number of pending offsets. O(groups with such offsets)."""
        return sum(len(offsets) for groups in self._by_producer.values() for offsets in groups.values())

    def of(self, group_id: str) -> set[Partition]:
        """Return the partitions of a group with offsets in open transactions."""
        return {partition for groups in self._by_producer.values() for partition in groups.get(group_id, ())}

    def superseded(self, group_id: str, partitions: Iterable[Partition]) -> Iterator[PendingOffsetRecord]:
        """Return records of pending offsets that a later commit without a transaction replaces."""
        for producer_id, groups in self._by_producer.items():
            offsets = groups.get(group_id, {})
            for partition in partitions:
                if offsets.get(partition) is not None:
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
            groups.pop(group_id, None)

    def of_producer(self, producer_id: int, group_id: str) -> Mapping[Partition, CommittedOffset | None]:
        """Return a producer's pending offsets of a group; None for replaced ones."""
        return self._by_producer.get(producer_id, {}).get(group_id, {})

    def group_ids(self, producer_id: int) -> set[str]:
        """Return the groups with pending offsets of a producer."""
        return set(self._by_producer.get(producer_id, ()))
