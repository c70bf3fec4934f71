"""The records of all groups, compacted: the newest under each key, as in Kafka's ``__consumer_offsets`` topic."""

from __future__ import annotations

from collections.abc import Iterator

from loadwise.coordinator.groups.consumer_records import ConsumerTombstone
from loadwise.coordinator.groups.records import ClassicTombstone, GroupTombstone, Key, OffsetTombstone, Record


class Journal:
    """Records in the order of their last change. What a tombstone deletes is dropped at once, the tombstone too."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Key, Record]] = {}

    def append(self, record: Record) -> None:
        """Keep a record in place of the one before it under the same key."""
        if isinstance(record, GroupTombstone):
            self._groups.pop(record.group_id, None)
            return
        of_group = self._groups.setdefault(record.group_id, {})
        of_group.pop(record.key, None)
        if not isinstance(record, OffsetTombstone | ClassicTombstone | ConsumerTombstone):
            of_group[record.key] = record

    def of_group(self, group_id: str) -> Iterator[Record]:
        """The records of a group that count."""
        yield from self._groups.get(group_id, {}).values()

    def __iter__(self) -> Iterator[Record]:
        """All records that count, group by group."""
        for records in self._groups.values():
            yield from records.values()

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))
