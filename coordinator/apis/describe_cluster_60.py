"""DescribeCluster (60, v0 to v2): lists the brokers.

v1 endpoint type (KIP-919); v2 fenced brokers.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.handling.access import Access, cluster_operations, open_to_all
from loadwise.coordinator.handling.refusals import refusal
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DescribeClusterRequest, DescribeClusterResponse

_ENDPOINT_TYPE = 1
_BROKERS, _CONTROLLERS = 1, 2


def handle(call: Call[DescribeClusterRequest], cluster: Cluster) -> DescribeClusterResponse:
    """Describe every broker; controllers have no endpoints here."""
    if call.version >= _ENDPOINT_TYPE and call.body.endpoint_type != _BROKERS:
        is_known = call.body.endpoint_type == _CONTROLLERS
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE if is_known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        refused = refusal(call, error, "The request was sent to an endpoint of brokers.")
        assert isinstance(refused, DescribeClusterResponse)
        return refused
    row = DescribeClusterResponse.DescribeClusterBroker
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        endpoint_type=_BROKERS,
        cluster_id=cluster.brokers.cluster_id,
        controller_id=cluster.brokers.controller.id,
        brokers=[
            row(broker_id=node.id, host=node.host, port=node.port, rack=node.rack, is_fenced=False)
            for node in cluster.brokers.running
        ],
        cluster_authorized_operations=_operations(call, cluster),
    )


def _operations(call: Call[DescribeClusterRequest], cluster: Cluster) -> frozenset[Operation] | None:
    if not call.body.include_cluster_authorized_operations:
        return None
    return cluster_operations(Access(call, cluster))


guard = open_to_all
