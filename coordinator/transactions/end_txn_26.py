"""EndTxn (26, v0 to v5): commits or aborts a producer's transaction.

v1 throttled after the response; v2 PRODUCER_FENCED, which was INVALID_PRODUCER_EPOCH before; v3 flexible; v4
TRANSACTION_ABORTABLE; v5 an epoch for each transaction (KIP-890), with the next id and epoch in the response.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call, Later
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.handling.access import Need, needs
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.transactions.feature import ClusterTransactions
from loadwise.coordinator.transactions.outcomes import ProducerAt, TransactionOutcome
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import EndTxnRequest, EndTxnResponse

_FENCED = 2
_BUMPS_EPOCH = 5


def handle(call: Call[EndTxnRequest], cluster: Cluster) -> EndTxnResponse | Later:
    """End the transaction, and write its markers before the response."""
    body = call.body
    if ClusterTransactions.of(cluster).is_coordinator(call, body.transactional_id):
        outcome = ClusterTransactions.of(cluster).ids.end(
            body.transactional_id,
            ProducerAt(body.producer_id, body.producer_epoch),
            committed=body.committed,
            bumps_epoch=call.version >= _BUMPS_EPOCH,
            now_ms=cluster.now_ms,
        )
    else:
        outcome = TransactionOutcome(error=ErrorCode.NOT_COORDINATOR)
    error = outcome.error
    if error is ErrorCode.PRODUCER_FENCED and call.version < _FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    producer_id, epoch = outcome.producer
    response = EndTxnResponse(error_code=error, producer_id=producer_id, producer_epoch=epoch)
    return ClusterTransactions.of(cluster).ended(call, outcome.markers, response)


guard = needs(Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id"))
