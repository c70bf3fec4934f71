"""The records of all groups, compacted: the newest under each key, as in Kafka's ``__consumer_offsets`` topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from loadwise.coordinator.records import GroupRecord, GroupTombstone, OffsetRecord, Record

_Key: TypeAlias = tuple[str, int]


class Journal:
    """Records in the order of their last change. What a tombstone deletes is dropped at once, the tombstone too."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[_Key | None, Record]] = {}

    def append(self, record: Record) -> None:
        """Keep a record in place of the one before it under the same key."""
        if isinstance(record, GroupTombstone):
            self._groups.pop(record.group_id, None)
            return
        of_group = self._groups.setdefault(record.group_id, {})
        key = None if isinstance(record, GroupRecord) else (record.topic, record.partition)
        of_group.pop(key, None)
        if isinstance(record, GroupRecord | OffsetRecord):
            of_group[key] = record

    def group(self, group_id: str) -> GroupRecord | None:
        """The newest record of a group; None if there are only offsets of it."""
        record = self._groups.get(group_id, {}).get(None)
        return record if isinstance(record, GroupRecord) else None

    def __iter__(self) -> Iterator[Record]:
        """All records that count, group by group."""
        for records in self._groups.values():
            yield from records.values()

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))
