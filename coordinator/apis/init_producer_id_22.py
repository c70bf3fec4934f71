"""InitProducerId (22, v0 to v5): assigns an id to an idempotent producer.

v1 throttled after the response; v2 flexible; v3 the producer's current id and epoch (KIP-360). v6 (two-phase commit,
KIP-939) is not served. Transactions have a module of their own, which replaces this one.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call, Outcome
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.handling.access import Access, refused
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import InitProducerIdRequest, InitProducerIdResponse

_TELLS_WHO = 3
_NONE = -1


def handle(call: Call[InitProducerIdRequest], cluster: Cluster) -> InitProducerIdResponse:
    """Assign the next id. A transactional id needs transactions."""
    body = call.body
    error = ErrorCode.NONE
    if call.version >= _TELLS_WHO and (body.producer_id == _NONE) != (body.producer_epoch == _NONE):
        error = ErrorCode.INVALID_REQUEST
    elif body.transactional_id is not None:
        error = ErrorCode.UNSUPPORTED_VERSION
    if error is not ErrorCode.NONE:
        return InitProducerIdResponse(error_code=error, producer_id=_NONE, producer_epoch=_NONE)
    return InitProducerIdResponse(
        error_code=ErrorCode.NONE,
        producer_id=cluster.new_producer_id(),
        producer_epoch=0,
    )


def guard(call: Call[InitProducerIdRequest], cluster: Cluster, handle: Handler) -> Outcome:
    """Allow idempotent writes to clients that may write to any topic (KIP-679)."""
    access = Access(call, cluster)
    if access.may(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER) or access.may_some(
        Operation.WRITE, ResourceType.TOPIC
    ):
        return handle(call, cluster)
    return refused(call, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
