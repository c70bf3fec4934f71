"""AlterShareGroupOffsets (91, v0): sets the start offsets of a share group without members (KIP-932)."""

from __future__ import annotations

from uuid import UUID

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.handling.access import OF_GROUP_MEMBERS, Access
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.share.administration import fails, refusal
from loadwise.coordinator.share.feature import ShareGroups
from loadwise.coordinator.share.service import ShareKey
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse

_Topic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
_Partition = _Topic.AlterShareGroupOffsetsResponsePartition


def handle(call: Call[AlterShareGroupOffsetsRequest], cluster: Cluster) -> Turns[AlterShareGroupOffsetsResponse]:
    """Set each partition separately, and drop its records' states. A missing group is created."""
    group_id = call.body.group_id
    error, message = refusal(call, cluster)
    if error is ErrorCode.GROUP_ID_NOT_FOUND and cluster.groups.get(group_id) is None:
        if len(cluster.groups.all()) >= cluster.settings.groups.max_groups:
            error, message = ErrorCode.GROUP_MAX_SIZE_REACHED, "the limit of groups is reached"
        else:
            error = ErrorCode.NONE
            ShareGroups.of(cluster).shares.make_group(group_id, cluster.now_ms)
    if error is not ErrorCode.NONE:
        return AlterShareGroupOffsetsResponse(error_code=error, error_message=message, responses=[])
    access = Access(call, cluster)
    for asked in call.body.topics:
        yield 1 + len(asked.partitions)
        numbers = [each.partition_index for each in asked.partitions]
        may = access.may(Operation.READ, ResourceType.TOPIC, asked.topic_name)
        if may and fails(cluster, group_id, asked.topic_name, numbers):
            return AlterShareGroupOffsetsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, responses=[])
    topics: dict[str, tuple[UUID | None, list[_Partition]]] = {}
    for asked in call.body.topics:
        topic = cluster.topics.get(asked.topic_name)
        _, rows = topics.setdefault(asked.topic_name, (None if topic is None else topic.id, []))
        for each in asked.partitions:
            outcome, problem = ErrorCode.NONE, None
            if not access.may(Operation.READ, ResourceType.TOPIC, asked.topic_name):
                outcome, problem = ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."
            elif topic is None or not 0 <= each.partition_index < len(topic.partitions):
                outcome = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                problem = "This server does not host this topic-partition."
            else:
                key = ShareKey(group_id, topic.id, each.partition_index)
                ShareGroups.of(cluster).shares.set_start(key, each.start_offset)
            rows.append(_Partition(partition_index=each.partition_index, error_code=outcome, error_message=problem))
            yield
        yield
    responses = [
        _Topic(topic_name=name, topic_id=topic_id, partitions=rows) for name, (topic_id, rows) in topics.items()
    ]
    return AlterShareGroupOffsetsResponse(error_code=ErrorCode.NONE, error_message=None, responses=responses)


guard = OF_GROUP_MEMBERS
