"""DescribeCluster (60, v0 to v2): lists the brokers.

v1 endpoint type (KIP-919); v2 fenced brokers.
"""

from __future__ import annotations

from loadwise.coordinator.access import Access, cluster_operations, open_to_all
from loadwise.coordinator.calls import Call
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.rights import Operation
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DescribeClusterRequest, DescribeClusterResponse


def handle(call: Call[DescribeClusterRequest], cluster: Cluster) -> DescribeClusterResponse:
    """Describe every broker."""
    row = DescribeClusterResponse.DescribeClusterBroker
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        endpoint_type=1,
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
