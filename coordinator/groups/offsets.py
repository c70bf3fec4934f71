"""Committed offsets of all groups. Mirrors the store of Kafka's ``OffsetMetadataManager``."""

from __future__ import annotations

from collections.abc import Mapping

from loadwise.coordinator.groups.partitions import CommittedOffset, Partition, size_bytes_of
from loadwise.coordinator.groups.records import OffsetRecord, OffsetTombstone

MAX_METADATA_CHARACTERS = 4096
"""Maximum length of the text of an offset (offset.metadata.max.bytes), in Java characters."""


def is_too_long(metadata: str) -> bool:
    """Return whether the text of an offset is too long, in UTF-16 code units like ``String.length``."""
    return len(metadata.encode("utf-16-le", "surrogatepass")) // 2 > MAX_METADATA_CHARACTERS


class Offsets:
    """Group id to partition to committed offset."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Partition, CommittedOffset]] = {}
        self._size_bytes = 0

    def size_with(self, more: Mapping[Partition, CommittedOffset]) -> int:
        """Return the approximate bytes of all offsets with some more; replaced ones count twice."""
        return self._size_bytes + sum(size_bytes_of(partition, committed) for partition, committed in more.items())

    def of(self, group_id: str) -> Mapping[Partition, CommittedOffset]:
        """Return all committed offsets of a group; empty if it has none."""
        return self._groups.get(group_id, {})

    def group_ids(self) -> set[str]:
        """Return the groups with committed offsets."""
        return set(self._groups)

    def apply(self, record: OffsetRecord | OffsetTombstone) -> None:
        """Apply a new or replayed record."""
        partition = Partition(record.topic, record.partition)
        if isinstance(record, OffsetRecord):
            committed = CommittedOffset(
                record.offset, record.leader_epoch, record.metadata, record.committed_ms, record.expires_ms
            )
            group = self._groups.setdefault(record.group_id, {})
            replaced = group.get(partition)
            group[partition] = committed
            self._size_bytes += size_bytes_of(partition, committed)
            if replaced is not None:
                self._size_bytes -= size_bytes_of(partition, replaced)
        else:
            group = self._groups.get(record.group_id, {})
            self._drop(group, partition)
            if not group:
                self._groups.pop(record.group_id, None)

    def forget(self, group_id: str) -> None:
        """Drop the offsets of a deleted group."""
        group = self._groups.pop(group_id, {})
        for partition in list(group):
            self._drop(group, partition)

    def _drop(self, group: dict[Partition, CommittedOffset], partition: Partition) -> None:
        committed = group.pop(partition, None)
        if committed is not None:
            self._size_bytes -= size_bytes_of(partition, committed)
