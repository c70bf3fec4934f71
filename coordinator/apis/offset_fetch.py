"""OffsetFetch (9): how far groups have read.

v2 null: all partitions; v3 throttle time; v5 leader epoch; v6 flexible; v7 require_stable (KIP-447, always so here); v8
many groups at once (KIP-709); v9 member and epoch, KIP-848; v10 topics by id (KIP-516).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka.protocol.consumer import OffsetFetchRequest, OffsetFetchResponse

from loadwise.coordinator.broker import Broker
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.offsets import CommittedOffset, Partition
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api

_MANY_GROUPS = 8
_BY_ID = 10
_NOTHING = CommittedOffset(-1, -1, "")
_Topic = OffsetFetchResponse.OffsetFetchResponseTopic
_Group = OffsetFetchResponse.OffsetFetchResponseGroup


def handle(call: Call, broker: Broker) -> Message:
    """Look every group's partitions up; one without a commit has offset -1. A group that is not there has none."""
    body = call.body
    if call.version < _MANY_GROUPS:
        error = ErrorCode.NONE if body.group_id else ErrorCode.INVALID_GROUP_ID
        topics = [] if error else _topics(call, broker, body.group_id, body.topics)
        return call.response(throttle_time_ms=0, topics=topics, error_code=error)
    groups = []
    for each in body.groups:
        error = ErrorCode.NONE if each.group_id else ErrorCode.INVALID_GROUP_ID
        topics = [] if error else _topics(call, broker, each.group_id, each.topics)
        groups.append(_Group(group_id=each.group_id, topics=topics, error_code=error))
    return call.response(throttle_time_ms=0, groups=groups)


def _topics(call: Call, broker: Broker, group_id: str, wanted: list[Message] | None) -> list[Message]:
    committed = broker.groups.offsets.of(group_id)
    row = _Topic if call.version < _MANY_GROUPS else _Group.OffsetFetchResponseTopics
    if wanted is None:
        by_topic: dict[str, list[int]] = {}
        for partition in committed:
            by_topic.setdefault(partition.topic, []).append(partition.number)
        return [
            row(name=name, topic_id=_id(broker, name), partitions=_partitions(row, committed, name, indexes))
            for name, indexes in by_topic.items()
            if call.version < _BY_ID or _id(broker, name) is not None
        ]
    topics = []
    for topic in wanted:
        name = topic.name
        error = ErrorCode.NONE
        if call.version >= _BY_ID:
            found = broker.topics.get_by_id(topic.topic_id)
            name = "" if found is None else found.name
            error = ErrorCode.UNKNOWN_TOPIC_ID if found is None else ErrorCode.NONE
        partitions = _partitions(row, committed, name, topic.partition_indexes, error)
        topics.append(row(name=name, topic_id=topic.topic_id, partitions=partitions))
    return topics


def _id(broker: Broker, name: str) -> object:
    topic = broker.topics.get(name)
    return None if topic is None else topic.id


def _partitions(
    topic_row: Message,
    committed: Mapping[Partition, CommittedOffset],
    name: str,
    indexes: Iterable[int],
    error: ErrorCode = ErrorCode.NONE,
) -> list[Message]:
    is_single = topic_row is _Topic
    row = topic_row.OffsetFetchResponsePartition if is_single else topic_row.OffsetFetchResponsePartitions
    partitions = []
    for index in indexes:
        found = committed.get(Partition(name, index), _NOTHING)
        partitions.append(
            row(
                partition_index=index,
                committed_offset=found.offset,
                committed_leader_epoch=found.leader_epoch,
                metadata=found.metadata,
                error_code=error,
            )
        )
    return partitions


SERVICE = Service(Api.of(OffsetFetchRequest, OffsetFetchResponse), handle)
