"""The records of all groups, compacted to the newest of each key as in ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from loadwise.coordinator.groups.consumer_records import Key, Tombstone
from loadwise.coordinator.groups.records import GroupTombstone, OffsetTombstone, PendingOffsetTombstone, Record
from loadwise.coordinator.keeper import NOTHING, Keeper, Place

_TOMBSTONES = Tombstone | OffsetTombstone | PendingOffsetTombstone


class Journal:
    """Records in the order of their last change. A tombstone is dropped with what it deletes.

    ``keeper`` gets each change.
    """

    def __init__(self, keeper: Keeper = NOTHING) -> None:
        self._keeper = keeper
        self._groups: dict[str, dict[Key, Record]] = {}

    def append(self, record: Record) -> None:
        """Store a record and replace the previous one of its key."""
        if isinstance(record, GroupTombstone):
            for key in self._groups.pop(record.group_id, {}):
                self._keeper.drop(_place(record.group_id, key))
            return
        of_group = self._groups.setdefault(record.group_id, {})
        of_group.pop(record.key, None)
        if isinstance(record, _TOMBSTONES):
            self._keeper.drop(_place(record.group_id, record.key))
            return
        of_group[record.key] = record
        self._keeper.put(_place(record.group_id, record.key), record)

    def load(self, records: Iterable[Record]) -> None:
        """Load these records, which the keeper has already."""
        for record in records:
            assert not isinstance(record, GroupTombstone | _TOMBSTONES), "deleted records are not stored"
            self._groups.setdefault(record.group_id, {})[record.key] = record

    def entries(self) -> Iterator[tuple[Place, Record]]:
        """Return all records, each with its place in the keeper."""
        for group_id, records in self._groups.items():
            for key, record in records.items():
                yield _place(group_id, key), record

    def of_group(self, group_id: str) -> Iterator[Record]:
        """Return the records of a group."""
        yield from self._groups.get(group_id, {}).values()

    def get(self, group_id: str, key: Key) -> Record | None:
        """Return the record of a key of a group, or None."""
        return self._groups.get(group_id, {}).get(key)

    def __iter__(self) -> Iterator[Record]:
        for records in self._groups.values():
            yield from records.values()

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))


def _place(group_id: str, key: Key) -> Place:
    return ("group", group_id, *key)
