"""OffsetCommit (8, v2 to v10): commits a group's offsets.

v2 no timestamps; v3 throttle time; v5 no retention time; v6 leader epoch; v7 static members (KIP-345); v8 flexible; v9
GROUP_ID_NOT_FOUND, KIP-848; v10 topics by id (KIP-516).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from loadwise.coordinator.access import Need, per_item, topics
from loadwise.coordinator.calls import Call, GroupRequest
from loadwise.coordinator.groups.effects import CommitReply
from loadwise.coordinator.groups.events import CommitOffsets, Committer
from loadwise.coordinator.groups.offsets import is_too_long
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.rights import Operation, ResourceType
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import OffsetCommitRequest, OffsetCommitResponse

_EPOCHS = 9
_RETENTION_TIMES = range(2, 5)
_BY_ID = 10
_OF_THE_GROUP = frozenset({ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE})
"""Partition errors with which the group still checks the request; the group's error has priority."""
_Asked = OffsetCommitRequest.OffsetCommitRequestTopic
_Topic = OffsetCommitResponse.OffsetCommitResponseTopic


def handle(call: Call[OffsetCommitRequest], cluster: Cluster) -> GroupRequest | OffsetCommitResponse:
    """Check each partition, then let the group check the client; what passes both is stored."""
    body = call.body
    offsets: dict[Partition, CommittedOffset] = {}
    names = [_name(call, cluster, topic) for topic in body.topics]
    errors = [
        [_error(call, cluster, name, each, offsets) for each in topic.partitions]
        for topic, name in zip(body.topics, names, strict=True)
    ]
    if not any(error in _OF_THE_GROUP for row in errors for error in row):
        return _respond(call, CommitReply(), errors=errors)  # the group does not see the request, as in Kafka
    who = Committer(
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id_or_member_epoch,
        knows_epochs=call.version >= _EPOCHS,
    )
    event = CommitOffsets(token=call.token, who=who, offsets=offsets)
    return GroupRequest(body.group_id, event, partial(_respond, errors=errors))


def _error(
    call: Call[OffsetCommitRequest],
    cluster: Cluster,
    topic: str | None,
    asked: _Asked.OffsetCommitRequestPartition,
    offsets: dict[Partition, CommittedOffset],
) -> ErrorCode:
    """Return the error of a partition; without an error, add the partition to the offsets."""
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if cluster.topics.log(topic, asked.partition_index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    metadata = asked.committed_metadata or ""
    if is_too_long(metadata):
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    has_retention = call.version in _RETENTION_TIMES and call.body.retention_time_ms >= 0
    offsets[Partition(topic, asked.partition_index)] = CommittedOffset(
        asked.committed_offset,
        asked.committed_leader_epoch,
        metadata,
        committed_ms=cluster.now_ms,
        expires_ms=cluster.now_ms + call.body.retention_time_ms if has_retention else None,
    )
    return ErrorCode.NONE


def _respond(
    call: Call[OffsetCommitRequest], reply: CommitReply, *, errors: Sequence[Sequence[ErrorCode]]
) -> OffsetCommitResponse:
    topics = []
    for topic, row in zip(call.body.topics, errors, strict=True):
        partitions = [
            _Topic.OffsetCommitResponsePartition(
                partition_index=each.partition_index,
                error_code=(reply.error or error) if error in _OF_THE_GROUP else error,
            )
            for each, error in zip(topic.partitions, row, strict=True)
        ]
        topics.append(_Topic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    return OffsetCommitResponse(topics=topics)


def _name(call: Call[OffsetCommitRequest], cluster: Cluster, topic: _Asked) -> str | None:
    if call.version < _BY_ID:
        return topic.name
    found = cluster.topics.get_by_id(topic.topic_id)
    return None if found is None else found.name


guard = per_item(topics(Operation.READ, by_id_from=_BY_ID), Need(Operation.READ, ResourceType.GROUP, "group_id"))
