"""AddPartitionsToTxn (24, v0 to v5): a producer will write to these partitions in its transaction.

v1 throttled after the response; v2 PRODUCER_FENCED, which was INVALID_PRODUCER_EPOCH before; v3 flexible; v4 for
brokers: several transactions at once, or only verification of a partition (KIP-890); v5 TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from loadwise.coordinator.calls.call import Call, Outcome
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.brokers import INTERNAL_TOPICS
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.handling.access import Access, Need, of_cluster, refused_without
from loadwise.coordinator.handling.named_twice import Repeats
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.coordinator.transactions.feature import ClusterTransactions
from loadwise.coordinator.transactions.outcomes import ProducerAt
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

_FENCED = 2
_MANY = 4
_OF_BROKERS = of_cluster(Operation.CLUSTER_ACTION)
_TRANSACTIONAL_ID = Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "v3_and_below_transactional_id")
_Topics = Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
_Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
_Topic = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_Row = _Topic.AddPartitionsToTxnPartitionResult


class _Asked(NamedTuple):
    topics: _Topics
    answered: _Topics
    """The topics of the response."""
    forbidden: Container[str] = ()
    verify_only: bool = False


def handle(call: Call[AddPartitionsToTxnRequest], cluster: Cluster) -> Turns[AddPartitionsToTxnResponse]:
    """Add all partitions of a transaction, or none of them."""
    body = call.body
    if call.version >= _MANY:
        # As in Kafka, of a transaction that is named twice the last partitions are added, and the first are answered.
        first = {each.transactional_id: each for each in reversed(body.transactions)}
        last = {each.transactional_id: each for each in body.transactions}
        size = {each: _size(first[each].topics) + _size(last[each].topics) for each in first}
        repeats = Repeats()
        for each in body.transactions:
            yield
            if not repeats.allow(each.transactional_id, size[each.transactional_id]):
                return AddPartitionsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST, results_by_transaction=[])
        results = []
        for each in body.transactions:
            transactional_id = each.transactional_id
            producer = ProducerAt(each.producer_id, each.producer_epoch)
            asked = _Asked(last[transactional_id].topics, first[transactional_id].topics, verify_only=each.verify_only)
            rows = _answered(call, cluster, transactional_id, producer, asked)
            results.append(_Result(transactional_id=transactional_id, topic_results=rows))
            yield 1 + size[transactional_id]
        return AddPartitionsToTxnResponse(error_code=ErrorCode.NONE, results_by_transaction=results)
    producer = ProducerAt(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)
    topics = body.v3_and_below_topics
    access = Access(call, cluster)
    forbidden = {
        topic.name
        for topic in topics
        if topic.name in INTERNAL_TOPICS or not access.may(Operation.WRITE, ResourceType.TOPIC, topic.name)
    }
    asked = _Asked(topics, topics, forbidden=forbidden)
    rows = _answered(call, cluster, body.v3_and_below_transactional_id, producer, asked)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)


def _answered(
    call: Call[AddPartitionsToTxnRequest], cluster: Cluster, transactional_id: str, producer: ProducerAt, asked: _Asked
) -> list[_Topic]:
    partitions = {Partition(topic.name, number): None for topic in asked.topics for number in topic.partitions}
    wrong = {
        each: (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if each.topic in asked.forbidden
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        for each in partitions
        if each.topic in asked.forbidden or cluster.topics.log(*each) is None
    }
    transactions = ClusterTransactions.of(cluster)
    if wrong:
        return _by_topic(dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | wrong)
    is_here = transactions.is_coordinator(call, transactional_id)
    if asked.verify_only and is_here:
        return _by_topic(
            {each: transactions.ids.check_partition(transactional_id, producer, each) for each in partitions}
        )
    error = ErrorCode.NOT_COORDINATOR
    if is_here:
        error = transactions.ids.add_partitions(transactional_id, producer, set(partitions), cluster.now_ms)
    if error is ErrorCode.PRODUCER_FENCED and call.version < _FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return [
        _Topic(
            name=topic.name,
            results_by_partition=[_Row(partition_index=each, partition_error_code=error) for each in topic.partitions],
        )
        for topic in asked.answered
    ]


def _size(topics: _Topics) -> int:
    return sum(1 + len(each.partitions) for each in topics)


def _by_topic(errors: Mapping[Partition, ErrorCode]) -> list[_Topic]:
    topics: dict[str, list[_Row]] = {}
    for (name, number), error in errors.items():
        topics.setdefault(name, []).append(_Row(partition_index=number, partition_error_code=error))
    return [_Topic(name=name, results_by_partition=rows) for name, rows in topics.items()]


def guard(call: Call[AddPartitionsToTxnRequest], cluster: Cluster, handle: Handler) -> Outcome:
    if call.version >= _MANY:
        return _OF_BROKERS(call, cluster, handle)
    return refused_without(call, cluster, _TRANSACTIONAL_ID) or handle(call, cluster)
