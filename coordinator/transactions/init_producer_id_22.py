"""InitProducerId (22, v0 to v5): assigns an id, or the id and epoch of a transactional producer.

v1 throttled after the response; v2 flexible; v3 the producer's current id and epoch (KIP-360); v4 PRODUCER_FENCED,
which was INVALID_PRODUCER_EPOCH before; v5 TRANSACTION_ABORTABLE. v6 (two-phase commit, KIP-939) is not served.
"""

from __future__ import annotations

from loadwise.coordinator.apis import init_producer_id_22 as idempotent
from loadwise.coordinator.calls.call import Call, Later, Outcome
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.handling.access import Need, refused_without
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.coordinator.transactions.feature import ClusterTransactions
from loadwise.coordinator.transactions.outcomes import (
    NO_EPOCH,
    NO_PRODUCER,
    NO_PRODUCER_ID,
    ProducerAt,
    TransactionOutcome,
)
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import InitProducerIdRequest, InitProducerIdResponse

_TELLS_WHO = 3
_FENCED = 4
_NEED = Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id")


def handle(call: Call[InitProducerIdRequest], cluster: Cluster) -> InitProducerIdResponse | Later:
    """Restart the transactional id with a new epoch; without one, assign the next id."""
    transactional_id = call.body.transactional_id
    if transactional_id is None:
        return idempotent.handle(call, cluster)
    outcome = _initialized(call, cluster, transactional_id)
    error = outcome.error
    if error is ErrorCode.PRODUCER_FENCED and call.version < _FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    producer_id, epoch = outcome.producer
    response = InitProducerIdResponse(error_code=error, producer_id=producer_id, producer_epoch=epoch)
    return ClusterTransactions.of(cluster).ended(call, outcome.markers, response)


def _initialized(call: Call[InitProducerIdRequest], cluster: Cluster, transactional_id: str) -> TransactionOutcome:
    body = call.body
    told = ProducerAt(body.producer_id, body.producer_epoch) if call.version >= _TELLS_WHO else NO_PRODUCER
    if (told.producer_id == NO_PRODUCER_ID) != (told.epoch == NO_EPOCH):
        return TransactionOutcome(error=ErrorCode.INVALID_REQUEST)
    transactions = ClusterTransactions.of(cluster)
    if not transactions.is_coordinator(call, transactional_id):
        return TransactionOutcome(error=ErrorCode.NOT_COORDINATOR)
    expected = None if told == NO_PRODUCER else told
    timeout_ms = body.transaction_timeout_ms
    return transactions.ids.init_producer_id(transactional_id, timeout_ms, expected, cluster.now_ms)


def guard(call: Call[InitProducerIdRequest], cluster: Cluster, handle: Handler) -> Outcome:
    """Check the right to the transactional id, or to idempotent writes."""
    if call.body.transactional_id is None:
        return idempotent.guard(call, cluster, handle)
    return refused_without(call, cluster, _NEED) or handle(call, cluster)
