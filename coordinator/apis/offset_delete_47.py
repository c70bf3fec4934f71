"""OffsetDelete (47, v0): deletes offsets of topics that the group does not read (KIP-496)."""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.handling.access import Need, per_item, topics
from loadwise.coordinator.handling.topic_rows import TopicRows
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import OffsetDeleteRequest, OffsetDeleteResponse

_Topic = OffsetDeleteResponse.OffsetDeleteResponseTopic
_Partition = _Topic.OffsetDeleteResponsePartition


def handle(call: Call[OffsetDeleteRequest], cluster: Cluster) -> Turns[OffsetDeleteResponse]:
    """Delete offsets by partition; subscribed topics keep their offsets."""
    group_id = call.body.group_id
    if not group_id:
        return _refused(call, ErrorCode.INVALID_GROUP_ID)
    if not cluster.coordinates(call, group_id):
        return _refused(call, ErrorCode.NOT_COORDINATOR)
    group = cluster.groups.get(group_id)
    if group is None:
        return _refused(call, ErrorCode.GROUP_ID_NOT_FOUND)
    refusal = group.validate_offset_delete()
    if refusal is not ErrorCode.NONE:
        return _refused(call, refusal)
    is_read = group.subscribed_topics()
    rows: TopicRows[str, _Partition] = TopicRows()
    for topic in call.body.topics:
        outcome = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if topic.name in is_read else ErrorCode.NONE
        there = []
        if cluster.topics.get(topic.name) is None:
            rows.missing(topic.name)
        yield
        for each in topic.partitions:
            yield
            if cluster.topics.log(topic.name, each.partition_index) is None:
                row = _Partition(partition_index=each.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                rows.missing(topic.name).append(row)
                continue
            there.append(_Partition(partition_index=each.partition_index, error_code=outcome))
            if outcome is ErrorCode.NONE:
                cluster.groups.forget_offsets(group_id, [Partition(topic.name, each.partition_index)])
        rows.add(topic.name, there)
    joined = yield from rows.joined()
    topics = yield from listed(_Topic(name=name, partitions=each) for name, each in joined)
    return OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=topics)


def _refused(call: Call[OffsetDeleteRequest], error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error, topics=[])


guard = per_item(topics(Operation.READ), Need(Operation.DELETE, ResourceType.GROUP, "group_id"))
