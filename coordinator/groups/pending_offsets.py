"""Offsets that were committed in a transaction which has not ended: nobody sees them before.

Mirrors the pending transactional offsets of Kafka's ``OffsetMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loadwise.coordinator.groups.partitions import CommittedOffset, Partition


class PendingOffsets:
    """Producer id to group id to partition to the offset that it is to commit."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[str, dict[Partition, CommittedOffset | None]]] = {}

    def add(self, producer_id: int, group_id: str, offsets: Mapping[Partition, CommittedOffset]) -> None:
        """A producer wants these offsets committed with its transaction."""
        if offsets:
            self._by_producer.setdefault(producer_id, {}).setdefault(group_id, {}).update(offsets)

    def __len__(self) -> int:
        """How many offsets wait, of all groups together. O(groups with such offsets)."""
        return sum(len(offsets) for groups in self._by_producer.values() for offsets in groups.values())

    def of(self, group_id: str) -> set[Partition]:
        """The partitions of a group whose offset depends on a transaction that has not ended."""
        return {partition for groups in self._by_producer.values() for partition in groups.get(group_id, ())}

    def supersede(self, group_id: str, partitions: Iterable[Partition]) -> None:
        """Somebody committed these without a transaction, later: that one counts whatever the transaction does."""
        for groups in self._by_producer.values():
            offsets = groups.get(group_id, {})
            for partition in partitions:
                if partition in offsets:
                    offsets[partition] = None

    def forget(self, group_id: str) -> None:
        """A group was deleted."""
        for groups in self._by_producer.values():
            groups.pop(group_id, None)

    def end(
        self, producer_id: int, group_ids: Iterable[str], *, committed: bool
    ) -> Mapping[str, Mapping[Partition, CommittedOffset]]:
        """A producer's transaction has ended for these groups: what is to be committed now, by group."""
        groups = self._by_producer.get(producer_id, {})
        ended = {each: groups.pop(each) for each in group_ids if each in groups}
        if not groups:
            self._by_producer.pop(producer_id, None)
        if not committed:
            return {}
        return {
            group_id: {partition: offset for partition, offset in offsets.items() if offset is not None}
            for group_id, offsets in ended.items()
        }

    def group_ids(self, producer_id: int) -> set[str]:
        """The groups for which a producer has offsets pending."""
        return set(self._by_producer.get(producer_id, ()))
