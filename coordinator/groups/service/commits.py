"""Committing and deleting offsets. Mirrors Kafka's ``OffsetMetadataManager``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loadwise.coordinator.groups.events import Committer
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.records import OffsetRecord, OffsetTombstone
from loadwise.coordinator.groups.service.store import GroupStore
from loadwise.protocol.error_codes import ErrorCode


def commit(
    store: GroupStore, group_id: str, who: Committer, offsets: Mapping[Partition, CommittedOffset]
) -> Mapping[Partition, ErrorCode]:
    """Commit offsets, and answer with those that are refused. Empty: all are committed."""
    group = store.groups.get(group_id)
    is_one_too_many = group is None and len(store.groups) >= store.limits.max_groups
    if is_one_too_many or store.offsets.size_with(offsets) > store.limits.max_offset_bytes:
        return dict.fromkeys(offsets, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
    if group is None:
        if who.generation >= 0:
            error = ErrorCode.GROUP_ID_NOT_FOUND if who.knows_epochs else ErrorCode.ILLEGAL_GENERATION
            return dict.fromkeys(offsets, error)
        # A "simple" group: a client that assigns partitions to itself and only keeps its offsets here.
        group = store.new_classic_group(group_id)
        store.add(group)
    refused = group.validate_offset_commit(who, offsets.keys())
    for partition, committed in offsets.items():
        if partition not in refused:
            store.append(
                OffsetRecord(
                    group_id=group_id,
                    topic=partition.topic,
                    partition=partition.number,
                    offset=committed.offset,
                    leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                )
            )
    return refused


def forget(store: GroupStore, group_id: str, partitions: Iterable[Partition]) -> None:
    """Delete committed offsets; partitions without one are passed over."""
    committed = store.offsets.of(group_id)
    for partition in partitions:
        if partition in committed:
            store.append(OffsetTombstone(group_id=group_id, topic=partition.topic, partition=partition.number))


def forget_topic(store: GroupStore, topic: str) -> None:
    """Delete what all groups committed for a topic."""
    for group_id in store.offsets.group_ids():
        forget(store, group_id, [each for each in store.offsets.of(group_id) if each.topic == topic])
