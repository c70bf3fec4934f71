"""TxnOffsetCommit (28, v0 to v5): commits a group's offsets in a transaction.

v1 throttled after the response; v2 leader epoch; v3 flexible, generation and member (KIP-447); v4
TRANSACTION_ABORTABLE; v5 adds the group to the transaction itself (KIP-890).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from loadwise.coordinator.access import Need, per_item, topics
from loadwise.coordinator.calls import Call, GroupRequest
from loadwise.coordinator.cluster.brokers import CONSUMER_OFFSETS, coordinator_partition
from loadwise.coordinator.groups.effects import CommitReply
from loadwise.coordinator.groups.events import CommitOffsets, Committer
from loadwise.coordinator.groups.offsets import is_too_long
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.rights import Operation, ResourceType
from loadwise.coordinator.transactions.feature import ClusterTransactions
from loadwise.coordinator.transactions.outcomes import ProducerAt
from loadwise.coordinator.transactions.verification import Verification, verified
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_LEADER_EPOCH = 2
_MEMBER = 3
_ADDS_GROUP = 5
_Topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic


def handle(call: Call[TxnOffsetCommitRequest], cluster: Cluster) -> TxnOffsetCommitResponse | GroupRequest:
    """Check partitions, transaction and member; valid offsets stay pending until the transaction ends."""
    offsets: dict[Partition, CommittedOffset] = {}
    errors: dict[Partition, ErrorCode] = {}
    for topic in call.body.topics:
        for each in topic.partitions:
            partition = Partition(topic.name, each.partition_index)
            epoch = each.committed_leader_epoch if call.version >= _LEADER_EPOCH else -1
            if cluster.topics.log(*partition) is None:
                errors[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif is_too_long(each.committed_metadata or ""):
                errors[partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                offsets[partition] = CommittedOffset(
                    each.committed_offset, epoch, each.committed_metadata or "", cluster.now_ms
                )
    if not offsets and ErrorCode.OFFSET_METADATA_TOO_LARGE not in errors.values():
        return _response(call, errors)  # transaction and group do not see the request, as in Kafka
    error = _error(call, cluster)
    if error is not ErrorCode.NONE:
        return _respond(call, CommitReply(error=error), errors=errors)
    event = CommitOffsets(token=call.token, who=_committer(call), offsets=offsets)
    return GroupRequest(call.body.group_id, event, partial(_respond, errors=errors))


def _respond(
    call: Call[TxnOffsetCommitRequest], reply: CommitReply, *, errors: Mapping[Partition, ErrorCode]
) -> TxnOffsetCommitResponse:
    """Answer the error of the transaction or the group; the group does not see partitions that do not exist."""
    of_all = {} if reply.error is ErrorCode.NONE else dict.fromkeys(_partitions(call), reply.error)
    unseen = {each: error for each, error in errors.items() if error is not ErrorCode.OFFSET_METADATA_TOO_LARGE}
    return _response(call, {**errors, **of_all, **unseen})


def _partitions(call: Call[TxnOffsetCommitRequest]) -> Iterator[Partition]:
    return (Partition(topic.name, each.partition_index) for topic in call.body.topics for each in topic.partitions)


def _response(call: Call[TxnOffsetCommitRequest], errors: Mapping[Partition, ErrorCode]) -> TxnOffsetCommitResponse:
    topics = [
        _Topic(
            name=topic.name,
            partitions=[
                _Topic.TxnOffsetCommitResponsePartition(
                    partition_index=each.partition_index,
                    error_code=errors.get(Partition(topic.name, each.partition_index), ErrorCode.NONE),
                )
                for each in topic.partitions
            ],
        )
        for topic in call.body.topics
    ]
    return TxnOffsetCommitResponse(topics=topics)


def _error(call: Call[TxnOffsetCommitRequest], cluster: Cluster) -> ErrorCode:
    """Return whether the producer may commit offsets of the group in its transaction."""
    body = call.body
    if not body.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if not cluster.coordinates(call, body.group_id):
        return ErrorCode.NOT_COORDINATOR
    return verified(
        ClusterTransactions.of(cluster).ids,
        body.transactional_id,
        ProducerAt(body.producer_id, body.producer_epoch),
        Partition(CONSUMER_OFFSETS, coordinator_partition(body.group_id)),
        kind=Verification.of(call.version, _ADDS_GROUP),
        now_ms=cluster.now_ms,
    )


def _committer(call: Call[TxnOffsetCommitRequest]) -> Committer:
    body = call.body
    if call.version < _MEMBER:
        return Committer(producer_id=body.producer_id)
    return Committer(
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id,
        producer_id=body.producer_id,
    )


guard = per_item(
    topics(Operation.READ),
    Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id"),
    Need(Operation.READ, ResourceType.GROUP, "group_id"),
)
