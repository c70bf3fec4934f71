"""DescribeTransactions (65, v0): describes transactional ids (KIP-664)."""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.handling.access import Access, names, per_item
from loadwise.coordinator.handling.named_twice import Repeats
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.transactions.feature import ClusterTransactions
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DescribeTransactionsRequest, DescribeTransactionsResponse

_State = DescribeTransactionsResponse.TransactionState


def handle(call: Call[DescribeTransactionsRequest], cluster: Cluster) -> Turns[DescribeTransactionsResponse]:
    """Describe each id separately."""
    repeats = Repeats()
    states = []
    for each in call.body.transactional_ids:
        states.append(_described(call, cluster, each, repeats))
        yield 1 + sum(len(topic.partitions) for topic in states[-1].topics)
    return DescribeTransactionsResponse(transaction_states=states)


def _described(
    call: Call[DescribeTransactionsRequest], cluster: Cluster, transactional_id: str, repeats: Repeats
) -> _State:
    found = ClusterTransactions.of(cluster).ids.all.get(transactional_id)
    error = ErrorCode.NONE
    if not transactional_id:
        error = ErrorCode.INVALID_REQUEST
    elif not ClusterTransactions.of(cluster).is_coordinator(call, transactional_id):
        error = ErrorCode.NOT_COORDINATOR
    elif found is None:
        error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    elif not repeats.allow(transactional_id, len(found.partitions)):
        error = ErrorCode.INVALID_REQUEST
    if found is None or error is not ErrorCode.NONE:
        return _State(error_code=error, transactional_id=transactional_id, topics=[])
    access = Access(call, cluster)
    by_topic: dict[str, list[int]] = {}
    for partition in sorted(found.partitions):
        if access.may(Operation.DESCRIBE, ResourceType.TOPIC, partition.topic):
            by_topic.setdefault(partition.topic, []).append(partition.number)
    return _State(
        error_code=error,
        transactional_id=transactional_id,
        transaction_state=found.state.value,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=[_State.TopicData(topic=topic, partitions=numbers) for topic, numbers in by_topic.items()],
    )


guard = per_item(names(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID))
