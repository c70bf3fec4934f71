"""AddOffsetsToTxn (25, v0 to v4): a producer will commit offsets of a group in its transaction.

v1 throttled after the response; v2 PRODUCER_FENCED, which was INVALID_PRODUCER_EPOCH before; v3 flexible; v4
TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.brokers import CONSUMER_OFFSETS, coordinator_partition
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.handling.access import Need, needs
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.transactions.feature import ClusterTransactions
from loadwise.coordinator.transactions.outcomes import ProducerAt
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_FENCED = 2


def handle(call: Call[AddOffsetsToTxnRequest], cluster: Cluster) -> AddOffsetsToTxnResponse:
    """Add the partition of ``__consumer_offsets`` that the group's offsets are in."""
    body = call.body
    if ClusterTransactions.of(cluster).is_coordinator(call, body.transactional_id):
        partition = Partition(CONSUMER_OFFSETS, coordinator_partition(body.group_id))
        producer = ProducerAt(body.producer_id, body.producer_epoch)
        error = ClusterTransactions.of(cluster).ids.add_partitions(
            body.transactional_id, producer, {partition}, cluster.now_ms
        )
    else:
        error = ErrorCode.NOT_COORDINATOR
    if error is ErrorCode.PRODUCER_FENCED and call.version < _FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=error)


guard = needs(
    Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id"),
    Need(Operation.READ, ResourceType.GROUP, "group_id"),
)
