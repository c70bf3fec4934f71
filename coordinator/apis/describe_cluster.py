"""DescribeCluster (60): the one broker.

v1 endpoint type (KIP-919); v2 fenced brokers.
"""

from __future__ import annotations

from kafka.protocol.admin import DescribeClusterRequest, DescribeClusterResponse

from loadwise.coordinator.broker import NODE_ID, Broker
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api


def handle(call: Call, broker: Broker) -> Message:
    """Describe this broker."""
    row = DescribeClusterResponse.DescribeClusterBroker
    return call.response(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        error_message=None,
        endpoint_type=1,
        cluster_id=broker.cluster_id,
        controller_id=NODE_ID,
        brokers=[row(broker_id=NODE_ID, host=broker.host, port=broker.port, rack=None, is_fenced=False)],
        authorized_operations=None,
    )


SERVICE = Service(Api.of(DescribeClusterRequest, DescribeClusterResponse), handle)
