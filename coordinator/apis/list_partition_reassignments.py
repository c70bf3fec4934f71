"""ListPartitionReassignments (46): always empty, since reassignments complete at once."""

from __future__ import annotations

from loadwise.coordinator.apis.access import of_cluster
from loadwise.coordinator.authorization.acls import Operation
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse
from loadwise.protocol.messages import Api


def handle(call: Call, _: Cluster) -> Message:
    """Return an empty list."""
    return call.response(throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, topics=[])


SERVICE = Service(
    Api.of(ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse),
    handle,
    of_cluster(Operation.DESCRIBE),
)
