"""WriteTxnMarkers (27, v1 to v2): ends a transaction in some partitions, like Admin's abortTransaction.

v1 flexible; v2 the version of transactions (KIP-1228). Kafka's coordinators also use it; the one here does not need it.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call, Outcome
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.brokers import CONSUMER_OFFSETS
from loadwise.coordinator.handling.access import Access, of_cluster
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

_OF_BROKERS = of_cluster(Operation.CLUSTER_ACTION)
_TRANSACTION_VERSION = 2
_EPOCH_EACH = 2
"""The version of transactions with an epoch for each one (KIP-890)."""
_Marker = WriteTxnMarkersResponse.WritableTxnMarkerResult
_Topic = _Marker.WritableTxnMarkerTopicResult


def handle(call: Call[WriteTxnMarkersRequest], cluster: Cluster) -> Turns[WriteTxnMarkersResponse]:
    """Write each marker separately. A producer has one row for each partition, with what its last marker did."""
    errors: dict[int, dict[str, dict[int, ErrorCode]]] = {}
    for marker in call.body.markers:
        done: set[tuple[str, int]] = set()
        for topic in marker.topics:
            yield
            for number in topic.partition_indexes:
                yield
                if (topic.name, number) not in done:
                    done.add((topic.name, number))
                    of_topic = errors.setdefault(marker.producer_id, {}).setdefault(topic.name, {})
                    of_topic[number] = yield from _written(call, cluster, marker, topic.name, number)
    row = _Topic.WritableTxnMarkerPartitionResult
    markers = []
    for producer_id, by_topic in errors.items():
        topics = []
        for name, codes in by_topic.items():
            rows = yield from listed(row(partition_index=each, error_code=code) for each, code in codes.items())
            topics.append(_Topic(name=name, partitions=rows))
        markers.append(_Marker(producer_id=producer_id, topics=topics))
        yield
    return WriteTxnMarkersResponse(markers=markers)


def _written(
    call: Call[WriteTxnMarkersRequest],
    cluster: Cluster,
    marker: WriteTxnMarkersRequest.WritableTxnMarker,
    topic: str,
    number: int,
) -> Turns[ErrorCode]:
    committed = marker.transaction_result
    if topic == CONSUMER_OFFSETS:
        yield from cluster.groups.end_transaction(marker.producer_id, number, committed=committed)
        return ErrorCode.NONE
    partition = cluster.topics.partition(topic, number)
    if partition is None or partition.leader != call.node_id:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if min(marker.producer_id, marker.producer_epoch) < 0:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka fails to make such a marker
    appended = partition.log.end_transaction(
        marker.producer_id,
        marker.producer_epoch,
        committed=committed,
        coordinator_epoch=marker.coordinator_epoch,
        timestamp_ms=cluster.now_ms,
        bumps_epoch=call.version >= _TRANSACTION_VERSION and marker.transaction_version >= _EPOCH_EACH,
    )
    cluster.grown(partition.log, appended)
    return appended.error


def guard(call: Call[WriteTxnMarkersRequest], cluster: Cluster, handle: Handler) -> Outcome:
    if Access(call, cluster).may(Operation.ALTER, ResourceType.CLUSTER):
        return handle(call, cluster)
    return _OF_BROKERS(call, cluster, handle)
