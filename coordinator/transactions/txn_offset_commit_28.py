"""TxnOffsetCommit (28, v0 to v5): commits a group's offsets in a transaction.

v1 throttled after the response; v2 leader epoch; v3 flexible, generation and member (KIP-447); v4
TRANSACTION_ABORTABLE; v5 adds the group to the transaction itself (KIP-890).
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.brokers import CONSUMER_OFFSETS, coordinator_partition
from loadwise.coordinator.groups.events import Committer
from loadwise.coordinator.groups.offsets import is_too_long
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.handling.access import Need, per_item, topics
from loadwise.coordinator.handling.commits import Commits
from loadwise.coordinator.handling.topic_rows import TopicRows
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.transactions.feature import ClusterTransactions
from loadwise.coordinator.transactions.outcomes import ProducerAt
from loadwise.coordinator.transactions.verification import Verification, verified
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_LEADER_EPOCH = 2
_MEMBER = 3
_ADDS_GROUP = 5
_Topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_Row = _Topic.TxnOffsetCommitResponsePartition


def handle(call: Call[TxnOffsetCommitRequest], cluster: Cluster) -> Turns[TxnOffsetCommitResponse]:
    """Check partitions, transaction and member; valid offsets stay pending until the transaction ends.

    What is valid in one turn is stored together.
    """
    commits = Commits(call, cluster, call.body.group_id, _committer(call), lambda: _error(call, cluster))
    rows: TopicRows[str, _Row] = TopicRows()
    for topic in call.body.topics:
        there: list[_Row] = []
        if cluster.topics.get(topic.name) is None:
            rows.missing(topic.name)
        yield from commits.row_made()
        for each in topic.partitions:
            partition = Partition(topic.name, each.partition_index)
            metadata = each.committed_metadata or ""
            error = ErrorCode.NONE
            if cluster.topics.log(*partition) is None:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif is_too_long(metadata):
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                epoch = each.committed_leader_epoch if call.version >= _LEADER_EPOCH else -1
                commits.offsets[partition] = CommittedOffset(each.committed_offset, epoch, metadata, cluster.now_ms)
            row = _Row(partition_index=each.partition_index, error_code=error)
            is_missing = error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            (rows.missing(topic.name) if is_missing else there).append(row)
            yield from commits.row_made(row)
        rows.add(topic.name, there)
    commits.store()
    joined = yield from rows.joined()
    topics = yield from listed(_Topic(name=name, partitions=each) for name, each in joined)
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
