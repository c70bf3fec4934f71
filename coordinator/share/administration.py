"""Not an API: the share groups that AlterShareGroupOffsets and DeleteShareGroupOffsets may change."""

from __future__ import annotations

from collections.abc import Collection

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.share.feature import ShareGroups
from loadwise.protocol.error_codes import ErrorCode


def refusal(call: Call, cluster: Cluster) -> tuple[ErrorCode, str | None]:
    """Return the error of a group that cannot be changed; NONE for a share group without members."""
    group_id = call.body.group_id
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID, None
    if not cluster.coordinates(call, group_id):
        return ErrorCode.NOT_COORDINATOR, None
    group = ShareGroups.of(cluster).shares.group(group_id)
    if group is None:
        is_there = cluster.groups.get(group_id) is not None
        return ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {'is not a share group' if is_there else 'not found'}."
    if group.members:
        return ErrorCode.NON_EMPTY_GROUP, "The group is not empty."
    return ErrorCode.NONE, None


def fails(cluster: Cluster, group_id: str, topic: str, numbers: Collection[int]) -> bool:
    """Return whether Kafka fails on these partitions: its ``Persister`` takes no empty group and no negative number."""
    return cluster.topics.get(topic) is not None and (not group_id or min(numbers, default=0) < 0)
