"""AddPartitionsToTxn (24, v0 to v5): a producer will write to these partitions in its transaction.

v1 throttled after the response; v2 PRODUCER_FENCED, which was INVALID_PRODUCER_EPOCH before; v3 flexible; v4 for
brokers: several transactions at once, or only verification of a partition (KIP-890); v5 TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from loadwise.coordinator.access import Access, Need, of_cluster, refused_without
from loadwise.coordinator.calls import Call, Outcome
from loadwise.coordinator.cluster.brokers import INTERNAL_TOPICS
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.coordinator.rights import Operation, ResourceType
from loadwise.coordinator.transactions.feature import ClusterTransactions
from loadwise.coordinator.transactions.outcomes import ProducerAt
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

_FENCED = 2
_MANY = 4
_OF_BROKERS = of_cluster(Operation.CLUSTER_ACTION)
_TRANSACTIONAL_ID = Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "v3_and_below_transactional_id")
_Asked = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
_Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
_Topic = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult


def handle(call: Call[AddPartitionsToTxnRequest], cluster: Cluster) -> AddPartitionsToTxnResponse:
    """Add all partitions of a transaction, or none of them."""
    body = call.body
    if call.version >= _MANY:
        results = []
        for each in body.transactions:
            producer = ProducerAt(each.producer_id, each.producer_epoch)
            errors = _errors(call, cluster, each.transactional_id, producer, each.topics, verify_only=each.verify_only)
            results.append(_Result(transactional_id=each.transactional_id, topic_results=_rows(each.topics, errors)))
        return AddPartitionsToTxnResponse(error_code=ErrorCode.NONE, results_by_transaction=results)
    producer = ProducerAt(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)
    topics = body.v3_and_below_topics
    access = Access(call, cluster)
    forbidden = {
        topic.name
        for topic in topics
        if topic.name in INTERNAL_TOPICS or not access.may(Operation.WRITE, ResourceType.TOPIC, topic.name)
    }
    errors = _errors(call, cluster, body.v3_and_below_transactional_id, producer, topics, forbidden=forbidden)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_rows(topics, errors))


def _errors(
    call: Call[AddPartitionsToTxnRequest],
    cluster: Cluster,
    transactional_id: str,
    producer: ProducerAt,
    topics: Sequence[_Asked],
    *,
    forbidden: Container[str] = (),
    verify_only: bool = False,
) -> Mapping[Partition, ErrorCode]:
    partitions = [Partition(topic.name, number) for topic in topics for number in topic.partitions]
    wrong = {
        each: ErrorCode.TOPIC_AUTHORIZATION_FAILED if each.topic in forbidden else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for each in partitions
        if each.topic in forbidden or cluster.topics.log(*each) is None
    }
    transactions = ClusterTransactions.of(cluster).ids
    if wrong:
        return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | wrong
    if not ClusterTransactions.of(cluster).is_coordinator(call, transactional_id):
        return dict.fromkeys(partitions, ErrorCode.NOT_COORDINATOR)
    if verify_only:
        return {each: transactions.check_partition(transactional_id, producer, each) for each in partitions}
    error = transactions.add_partitions(transactional_id, producer, set(partitions), cluster.now_ms)
    if error is ErrorCode.PRODUCER_FENCED and call.version < _FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return dict.fromkeys(partitions, error)


def _rows(topics: Sequence[_Asked], errors: Mapping[Partition, ErrorCode]) -> list[_Topic]:
    row = _Topic.AddPartitionsToTxnPartitionResult
    return [
        _Topic(
            name=topic.name,
            results_by_partition=[
                row(partition_index=number, partition_error_code=errors[Partition(topic.name, number)])
                for number in topic.partitions
            ],
        )
        for topic in topics
    ]


def guard(call: Call[AddPartitionsToTxnRequest], cluster: Cluster, handle: Handler) -> Outcome:
    if call.version >= _MANY:
        return _OF_BROKERS(call, cluster, handle)
    return refused_without(call, cluster, _TRANSACTIONAL_ID) or handle(call, cluster)
