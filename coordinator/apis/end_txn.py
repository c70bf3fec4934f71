"""EndTxn (26): commits or aborts a producer's transaction.

v1 throttled after the response; v2 PRODUCER_FENCED, which was INVALID_PRODUCER_EPOCH before; v3 flexible; v4
TRANSACTION_ABORTABLE; v5 an epoch for each transaction (KIP-890), with the next id and epoch in the response.
"""

from __future__ import annotations

from loadwise.coordinator.apis.access import Need, needs
from loadwise.coordinator.authorization.acls import Operation, ResourceType
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.transactions.outcomes import Outcome, ProducerAt
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import EndTxnRequest, EndTxnResponse
from loadwise.protocol.messages import Api

_FENCED = 2
_BUMPS_EPOCH = 5


def handle(call: Call, cluster: Cluster) -> Message:
    """End the transaction, and write its markers before the response."""
    body = call.body
    if cluster.coordinates_transactions(call, body.transactional_id):
        outcome = cluster.transactions.end(
            body.transactional_id,
            ProducerAt(body.producer_id, body.producer_epoch),
            committed=body.committed,
            bumps_epoch=call.version >= _BUMPS_EPOCH,
            now_ms=cluster.now_ms,
        )
    else:
        outcome = Outcome(error=ErrorCode.NOT_COORDINATOR)
    if outcome.markers is not None:
        cluster.write_markers(outcome.markers)
    error = outcome.error
    if error is ErrorCode.PRODUCER_FENCED and call.version < _FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    producer_id, epoch = outcome.producer
    return call.response(throttle_time_ms=0, error_code=error, producer_id=producer_id, producer_epoch=epoch)


SERVICE = Service(
    Api.of(EndTxnRequest, EndTxnResponse),
    handle,
    needs(Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id")),
)
