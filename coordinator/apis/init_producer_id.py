"""InitProducerId (22): assigns an id, or the id and epoch of a transactional producer.

v1 throttled after the response; v2 flexible; v3 the producer's current id and epoch (KIP-360); v4 PRODUCER_FENCED,
which was INVALID_PRODUCER_EPOCH before; v5 TRANSACTION_ABORTABLE. v6 (two-phase commit, KIP-939) is not served.
"""

from __future__ import annotations

from loadwise.coordinator.apis.access import Access, Need, refused, refused_without
from loadwise.coordinator.authorization.acls import Operation, ResourceType
from loadwise.coordinator.calls import Call, Handler, Message, Service
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.transactions.outcomes import (
    NO_EPOCH,
    NO_PRODUCER,
    NO_PRODUCER_ID,
    Outcome,
    ProducerAt,
)
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import InitProducerIdRequest, InitProducerIdResponse
from loadwise.protocol.messages import Api

_TELLS_WHO = 3
_FENCED = 4


def handle(call: Call, cluster: Cluster) -> Message:
    """Assign the next id, or restart the transactional id with a new epoch."""
    outcome = _initialized(call, cluster)
    error = outcome.error
    if error is ErrorCode.PRODUCER_FENCED and call.version < _FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    producer_id, epoch = outcome.producer
    return call.response(throttle_time_ms=0, error_code=error, producer_id=producer_id, producer_epoch=epoch)


def _initialized(call: Call, cluster: Cluster) -> Outcome:
    body = call.body
    told = ProducerAt(body.producer_id, body.producer_epoch) if call.version >= _TELLS_WHO else NO_PRODUCER
    if (told.producer_id == NO_PRODUCER_ID) != (told.epoch == NO_EPOCH):
        return Outcome(error=ErrorCode.INVALID_REQUEST)
    if body.transactional_id is None:
        return Outcome(producer=ProducerAt(cluster.new_producer_id(), 0))
    if not cluster.coordinates_transactions(call, body.transactional_id):
        return Outcome(error=ErrorCode.NOT_COORDINATOR)
    expected = None if told == NO_PRODUCER else told
    timeout_ms = body.transaction_timeout_ms
    outcome = cluster.transactions.init_producer_id(body.transactional_id, timeout_ms, expected, cluster.now_ms)
    if outcome.markers is not None:
        cluster.write_markers(outcome.markers)
    return outcome


def _guard(call: Call, cluster: Cluster, handle: Handler) -> Message:
    """Allow idempotent writes to clients that may write to any topic (KIP-679)."""
    if call.body.transactional_id is not None:
        need = Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id")
        return refused_without(call, cluster, need) or handle(call, cluster)
    access = Access(call, cluster)
    if access.may(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER) or access.may_some(
        Operation.WRITE, ResourceType.TOPIC
    ):
        return handle(call, cluster)
    return refused(call, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


SERVICE = Service(Api.of(InitProducerIdRequest, InitProducerIdResponse, max_version=5), handle, _guard)
