"""OffsetForLeaderEpoch (23, v2 to v4): returns the end offset of a leader epoch (KIP-320).

Consumers validate their positions with it. v2 leader epoch in request and response; v3 replica id; v4 flexible.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call, Outcome
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.leader_epochs import EpochEnd
from loadwise.coordinator.handling.access import Access, item_by_item, topics
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

_Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult


def handle(call: Call[OffsetForLeaderEpochRequest], cluster: Cluster) -> Turns[OffsetForLeaderEpochResponse]:
    """Look up each partition."""
    topics = []
    for topic in call.body.topics:
        partitions = []
        for each in topic.partitions:
            partition = cluster.topics.partition(topic.topic, each.partition)
            end = EpochEnd()
            if partition is None:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                error = partition.refusal(call.node_id, each.current_leader_epoch)
                if error is ErrorCode.NONE:
                    end = partition.log.epochs.end_of(each.leader_epoch, partition.log.end_offset)
            partitions.append(
                _Topic.EpochEndOffset(
                    error_code=error, partition=each.partition, leader_epoch=end.epoch, end_offset=end.end_offset
                )
            )
            yield
        yield
        topics.append(_Topic(topic=topic.topic, partitions=partitions))
    return OffsetForLeaderEpochResponse(topics=topics)


def guard(call: Call[OffsetForLeaderEpochRequest], cluster: Cluster, handle: Handler) -> Outcome:
    if Access(call, cluster).may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return handle(call, cluster)
    return item_by_item(topics(Operation.DESCRIBE, "topic"), call, cluster, handle)
