"""Committing and deleting offsets. Mirrors Kafka's ``OffsetMetadataManager``."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping

from loadwise.coordinator.cluster.brokers import coordinator_partition
from loadwise.coordinator.groups.events import Committer
from loadwise.coordinator.groups.group import Group
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.records import (
    OffsetRecord,
    OffsetTombstone,
    PendingOffsetRecord,
    PendingOffsetTombstone,
)
from loadwise.coordinator.groups.service.store import GroupStore
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode


def commit(store: GroupStore, group_id: str, who: Committer, offsets: Mapping[Partition, CommittedOffset]) -> ErrorCode:
    """Commit all these offsets, or none and return the error.

    Offsets in a transaction are committed when it commits.
    """
    group = store.groups.get(group_id)
    is_one_too_many = group is None and len(store.groups) >= store.limits.max_groups
    size_bytes = store.offsets.size_with(offsets) + store.pending_offsets.size_bytes
    if is_one_too_many or size_bytes > store.limits.max_offset_bytes:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    if group is None:
        if who.generation >= 0:
            names_it = who.knows_epochs and who.producer_id is None
            return ErrorCode.GROUP_ID_NOT_FOUND if names_it else ErrorCode.ILLEGAL_GENERATION
        # A "simple" group, whose client assigns its partitions itself and only stores offsets here.
        group = store.new_classic_group(group_id)
        store.put(group)
    error = group.validate_offset_commit(who, offsets)
    if error is not ErrorCode.NONE:
        return error
    if who.producer_id is not None:
        for partition, committed in offsets.items():
            store.append(
                PendingOffsetRecord(
                    group_id=group_id,
                    producer_id=who.producer_id,
                    topic=partition.topic,
                    partition=partition.number,
                    committed=committed,
                )
            )
    else:
        for partition, committed in offsets.items():
            _keep(store, group_id, partition, committed)
    return ErrorCode.NONE


def expire(store: GroupStore, group: Group, now_ms: int) -> None:
    """Delete a group's expired offsets of topics that no member reads.

    Mirrors ``OffsetMetadataManager.cleanupExpiredOffsets``, and KIP-211.
    """
    retention_ms = store.limits.offsets_retention_minutes * 60_000
    pending = store.pending_offsets.of(group.group_id)
    is_read = group.subscribed_topics()
    expired = []
    for partition, committed in store.offsets.of(group.group_id).items():
        since_ms = group.expires_from_ms(committed)
        if since_ms is None or partition in pending or partition.topic in is_read:
            continue
        # A client of OffsetCommit v2 to v4 may have set its own retention time.
        expires_ms = since_ms + retention_ms if committed.expires_ms is None else committed.expires_ms
        if now_ms >= expires_ms:
            expired.append(partition)
    forget(store, group.group_id, expired)


def end_transaction(store: GroupStore, producer_id: int, offsets_partition: int, *, committed: bool) -> Turns[None]:
    """End a producer's transaction for the groups of a ``__consumer_offsets`` partition."""
    groups = store.pending_offsets.group_ids(producer_id)
    for group_id in sorted(each for each in groups if coordinator_partition(each) == offsets_partition):
        for partition in list(store.pending_offsets.of_producer(producer_id, group_id)):
            yield
            pending = store.pending_offsets.of_producer(producer_id, group_id).get(partition)
            if pending is None:  # deleted meanwhile
                continue
            store.append(
                PendingOffsetTombstone(
                    group_id=group_id, producer_id=producer_id, topic=partition.topic, partition=partition.number
                )
            )
            if committed and pending.committed is not None:
                _keep(store, group_id, partition, pending.committed, pending.order)


def _keep(
    store: GroupStore, group_id: str, partition: Partition, committed: CommittedOffset, order: int | None = None
) -> None:
    """Store a committed offset in place of those that were committed before it, also in open transactions.

    ``order`` is that of a commit in a transaction.
    """
    for record in list(store.pending_offsets.superseded(group_id, [partition], order)):
        store.append(record)
    store.append(
        OffsetRecord(
            group_id=group_id,
            topic=partition.topic,
            partition=partition.number,
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            committed_ms=committed.committed_ms,
            expires_ms=committed.expires_ms,
        )
    )


def forget(store: GroupStore, group_id: str, partitions: Collection[Partition]) -> None:
    """Delete the offsets of these partitions, also those of open transactions, which then commit none of them.

    Mirrors the replay of a tombstone in ``OffsetMetadataManager``.
    """
    committed = store.offsets.of(group_id)
    for partition in partitions:
        if partition in committed:
            store.append(OffsetTombstone(group_id=group_id, topic=partition.topic, partition=partition.number))
    for tombstone in list(store.pending_offsets.deleted(group_id, partitions)):
        store.append(tombstone)


def forget_topics(store: GroupStore, topics: Container[str]) -> None:
    """Delete all groups' offsets of some topics. O(all offsets)."""
    for group_id in store.offsets.group_ids() | store.pending_offsets.all_group_ids():
        known = {*store.offsets.of(group_id), *store.pending_offsets.of(group_id)}
        forget(store, group_id, sorted(each for each in known if each.topic in topics))
