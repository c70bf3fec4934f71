"""InitProducerId (22): an id for an idempotent producer.

v1 throttled after the response; v2 flexible; v3 the producer's present id and epoch (KIP-360); v4, v5 further errors.
v6 (two-phase commit) is not served. Transactions are refused: a transactional id gets INVALID_REQUEST.
"""

from __future__ import annotations

from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api


def handle(call: Call, cluster: Cluster) -> Message:
    """Give out the next id."""
    if call.body.transactional_id is not None:
        return call.response(
            throttle_time_ms=0, error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1
        )
    producer_id = next(cluster.producer_ids)
    return call.response(throttle_time_ms=0, error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0)


SERVICE = Service(Api.of(InitProducerIdRequest, InitProducerIdResponse, max_version=5), handle)
