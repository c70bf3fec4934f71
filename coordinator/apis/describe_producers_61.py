"""DescribeProducers (61, v0): lists a partition's producers and their open transactions (KIP-664)."""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.cluster.replication import NO_EPOCH
from loadwise.coordinator.cluster.topics import is_topic_name
from loadwise.coordinator.handling.access import Access, allowed, per_item
from loadwise.coordinator.handling.named_twice import Repeats
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DescribeProducersRequest, DescribeProducersResponse

_Topic = DescribeProducersResponse.TopicResponse
_Partition = _Topic.PartitionResponse
_NONE_OPEN = -1


def handle(call: Call[DescribeProducersRequest], cluster: Cluster) -> Turns[DescribeProducersResponse]:
    """Describe each partition with a replica on this broker. Mirrors ``activeProducerState``."""
    repeats = Repeats()
    topics = []
    for topic in call.body.topics:
        rows = []
        for number in topic.partition_indexes:
            rows.append(_described(call, cluster, topic.name, number, repeats))
            yield 1 + len(rows[-1].active_producers)
        topics.append(_Topic(name=topic.name, partitions=rows))
        yield
    return DescribeProducersResponse(topics=topics)


def _described(
    call: Call[DescribeProducersRequest], cluster: Cluster, topic: str, number: int, repeats: Repeats
) -> _Partition:
    partition = cluster.topics.partition(topic, number)
    error = ErrorCode.NONE
    if not is_topic_name(topic):
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    elif partition is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        error = partition.refusal(call.node_id, NO_EPOCH, leader_only=False)
        if not repeats.allow((topic, number), len(partition.log.producers.known)):
            error = ErrorCode.INVALID_REQUEST
    producers = [] if partition is None or error is not ErrorCode.NONE else _active(partition.log)
    return _Partition(partition_index=number, error_code=error, error_message=None, active_producers=producers)


def _active(log: PartitionLog) -> list[_Partition.ProducerState]:
    return [
        _Partition.ProducerState(
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp_ms,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=log.transactions.open.get(producer_id, _NONE_OPEN),
        )
        for producer_id, producer in log.producers.known.items()
    ]


def _check(_: Call, __: Cluster, access: Access, topic: DescribeProducersRequest.TopicRequest) -> ErrorCode:
    if not is_topic_name(topic.name):
        return ErrorCode.NONE  # the API itself reports it
    return allowed(access, Operation.READ, ResourceType.TOPIC, topic.name)


guard = per_item(_check, message=True)
