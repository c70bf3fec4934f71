"""OffsetCommit (8, v2 to v10): commits a group's offsets.

v2 no timestamps; v3 throttle time; v5 no retention time; v6 leader epoch; v7 static members (KIP-345); v8 flexible; v9
GROUP_ID_NOT_FOUND, KIP-848; v10 topics by id (KIP-516).
"""

from __future__ import annotations

from uuid import UUID

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.groups.events import Committer
from loadwise.coordinator.groups.offsets import is_too_long
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.handling.access import Need, per_item, topics
from loadwise.coordinator.handling.commits import Commits
from loadwise.coordinator.handling.topic_rows import TopicRows
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import OffsetCommitRequest, OffsetCommitResponse

_EPOCHS = 9
_RETENTION_TIMES = range(2, 5)
_BY_ID = 10
_MISSING = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_Asked = OffsetCommitRequest.OffsetCommitRequestTopic
_Topic = OffsetCommitResponse.OffsetCommitResponseTopic
_Row = _Topic.OffsetCommitResponsePartition


def handle(call: Call[OffsetCommitRequest], cluster: Cluster) -> Turns[OffsetCommitResponse]:
    """Check each partition, then let the group check the client; what passes both is stored.

    What passes in one turn is stored together.
    """
    body = call.body
    who = Committer(
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id_or_member_epoch,
        knows_epochs=call.version >= _EPOCHS,
    )
    commits = Commits(call, cluster, body.group_id, who)
    rows: TopicRows[tuple[str, UUID | None], _Row] = TopicRows()
    for topic in body.topics:
        key, there = (topic.name, topic.topic_id), list[_Row]()
        name = _name(call, cluster, topic)
        if name is None or cluster.topics.get(name) is None:
            rows.missing(key)
        yield from commits.row_made()
        for each in topic.partitions:
            error = _error(call, cluster, name, each, commits.offsets)
            row = _Row(partition_index=each.partition_index, error_code=error)
            (rows.missing(key) if error in _MISSING else there).append(row)
            yield from commits.row_made(row)
        rows.add(key, there)
    commits.store()
    joined = yield from rows.joined()
    topics = yield from listed(_Topic(name=name, topic_id=id_, partitions=each) for (name, id_), each in joined)
    return OffsetCommitResponse(topics=topics)


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


def _name(call: Call[OffsetCommitRequest], cluster: Cluster, topic: _Asked) -> str | None:
    if call.version < _BY_ID:
        return topic.name
    found = cluster.topics.get_by_id(topic.topic_id)
    return None if found is None else found.name


guard = per_item(topics(Operation.READ, by_id_from=_BY_ID), Need(Operation.READ, ResourceType.GROUP, "group_id"))
