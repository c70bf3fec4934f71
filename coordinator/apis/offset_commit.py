"""OffsetCommit (8): a group remembers how far it has read.

v2 no more timestamps; v3 throttle time; v5 no retention time; v6 leader epoch; v7 static members (KIP-345); v8
flexible; v9 GROUP_ID_NOT_FOUND, KIP-848; v10 topics by id (KIP-516).
"""

from __future__ import annotations

from kafka.protocol.consumer import OffsetCommitRequest, OffsetCommitResponse

from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.groups.offsets import MAX_METADATA_BYTES, CommittedOffset, Partition
from loadwise.coordinator.groups.service.groups import Committer
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api

_NAMES_MISSING_GROUPS = 9
_BY_ID = 10
_Topic = OffsetCommitResponse.OffsetCommitResponseTopic


def handle(call: Call, cluster: Cluster) -> Message:
    """Check each partition, then let the group check who commits; what passes both is kept."""
    body = call.body
    offsets: dict[Partition, CommittedOffset] = {}
    errors: list[list[ErrorCode]] = []
    names = [_name(call, cluster, topic) for topic in body.topics]
    for topic, name in zip(body.topics, names, strict=True):
        row = []
        for each in topic.partitions:
            if name is None:
                error = ErrorCode.UNKNOWN_TOPIC_ID
            elif cluster.topics.log(name, each.partition_index) is None:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif len((each.committed_metadata or "").encode()) > MAX_METADATA_BYTES:
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                error = ErrorCode.NONE
                offsets[Partition(name, each.partition_index)] = CommittedOffset(
                    each.committed_offset, each.committed_leader_epoch, each.committed_metadata or ""
                )
            row.append(error)
        errors.append(row)
    who = Committer(
        member_id=body.member_id, instance_id=body.group_instance_id, generation=body.generation_id_or_member_epoch
    )
    names_missing_groups = call.version >= _NAMES_MISSING_GROUPS
    if cluster.coordinates(call, body.group_id):
        refused = cluster.groups.commit(body.group_id, who, offsets, names_missing_groups=names_missing_groups)
    else:
        refused = dict.fromkeys(offsets, ErrorCode.NOT_COORDINATOR)
    topics = []
    for topic, name, row in zip(body.topics, names, errors, strict=True):
        partitions = [
            _Topic.OffsetCommitResponsePartition(
                partition_index=each.partition_index,
                error_code=error or refused.get(Partition(name or "", each.partition_index), ErrorCode.NONE),
            )
            for each, error in zip(topic.partitions, row, strict=True)
        ]
        topics.append(_Topic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    return call.response(throttle_time_ms=0, topics=topics)


def _name(call: Call, cluster: Cluster, topic: Message) -> str | None:
    if call.version < _BY_ID:
        name: str = topic.name
        return name
    found = cluster.topics.get_by_id(topic.topic_id)
    return None if found is None else found.name


SERVICE = Service(Api.of(OffsetCommitRequest, OffsetCommitResponse), handle)
