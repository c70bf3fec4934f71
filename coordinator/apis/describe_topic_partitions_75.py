"""DescribeTopicPartitions (75, v0): lists topics and their partitions in pages (KIP-966)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.replication import NO_NODE
from loadwise.coordinator.cluster.topics import is_topic_name
from loadwise.coordinator.handling.access import Access, open_to_all
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

_MOST = 2000
"""Maximum partitions of a response (max.request.partition.size.limit)."""
_Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic


def handle(call: Call[DescribeTopicPartitionsRequest], cluster: Cluster) -> Turns[DescribeTopicPartitionsResponse]:
    """List topics by name from the cursor on, up to the requested number of partitions."""
    body = call.body
    named = {topic.name for topic in body.topics}
    access = Access(call, cluster)
    error = _error(access, named, body.cursor)
    if error is not ErrorCode.NONE:
        refused = [_refused(topic.name, error) for topic in body.topics]
        return DescribeTopicPartitionsResponse(topics=refused, next_cursor=None)
    asked = []
    for name in named or [topic.name for topic in cluster.topics]:
        if access.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
            asked.append(name)
        yield
    asked.sort()
    first_name, first_partition = ("", 0)
    if body.cursor is not None:
        first_name, first_partition = body.cursor.topic_name, body.cursor.partition_index
    left = max(min(body.response_partition_limit, _MOST), 1)
    topics: list[_Topic] = []
    cursor = None
    for name in asked[bisect_left(asked, first_name) :]:
        yield
        if not named and cluster.topics.get(name) is None:
            continue  # it was deleted meanwhile
        if left == 0:
            cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=0)
            break
        start = first_partition if name == first_name else 0
        row, count, total = yield from _described(cluster, name, start, left)
        row.topic_authorized_operations = access.operations(ResourceType.TOPIC, name)
        topics.append(row)
        left -= count
        if start + count < total:
            cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=start + count)
            break
    hidden = sorted(name for name in named.difference(asked) if name >= first_name)
    topics += [_refused(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in hidden]
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=cursor)


def _error(access: Access, named: Collection[str], cursor: DescribeTopicPartitionsRequest.Cursor | None) -> ErrorCode:
    """Return the error of the whole request. Kafka fails on a visible empty name, unless the cursor is after it."""
    if cursor is None or not cursor.topic_name:
        fails = "" in named and access.may(Operation.DESCRIBE, ResourceType.TOPIC, "")
        return ErrorCode.UNKNOWN_SERVER_ERROR if fails else ErrorCode.NONE
    if (named and cursor.topic_name not in named) or cursor.partition_index < 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _described(cluster: Cluster, name: str, start: int, limit: int) -> Turns[tuple[_Topic, int, int]]:
    """Return a topic's row, its number of partitions, and the topic's."""
    topic = cluster.topics.get(name)
    if topic is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_topic_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
        return _refused(name, error), 0, 0
    partitions = yield from listed(
        _Topic.DescribeTopicPartitionsResponsePartition(
            error_code=ErrorCode.NONE if partition.leader != NO_NODE else ErrorCode.LEADER_NOT_AVAILABLE,
            partition_index=start + index,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=partition.replicas,
            isr_nodes=partition.isr,
            eligible_leader_replicas=partition.elr,
            last_known_elr=[],
            offline_replicas=cluster.brokers.stopped_of(partition.replicas),
        )
        for index, partition in enumerate(topic.partitions[start : start + limit])
    )
    row = _Topic(
        error_code=ErrorCode.NONE,
        name=name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=partitions,
    )
    return row, len(partitions), len(topic.partitions)


def _refused(name: str, error: ErrorCode) -> _Topic:
    return _Topic(
        error_code=error,
        name=name,
        topic_id=None,
        is_internal=False,
        partitions=[],
    )


guard = open_to_all
