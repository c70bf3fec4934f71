"""ListPartitionReassignments (46, v0): always empty, since reassignments complete at once."""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse


def handle(call: Call[ListPartitionReassignmentsRequest], _: Cluster) -> ListPartitionReassignmentsResponse:
    """Return an empty list."""
    return ListPartitionReassignmentsResponse(error_code=ErrorCode.NONE, error_message=None, topics=[])


guard = of_cluster(Operation.DESCRIBE)
