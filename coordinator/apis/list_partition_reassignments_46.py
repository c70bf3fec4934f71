"""ListPartitionReassignments (46, v0): always empty, since reassignments complete at once."""

from __future__ import annotations

from loadwise.coordinator.access import of_cluster
from loadwise.coordinator.calls import Call
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.rights import Operation
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse


def handle(call: Call[ListPartitionReassignmentsRequest], _: Cluster) -> ListPartitionReassignmentsResponse:
    """Return an empty list."""
    return ListPartitionReassignmentsResponse(error_code=ErrorCode.NONE, error_message=None, topics=[])


guard = of_cluster(Operation.DESCRIBE)
