"""ListPartitionReassignments (46, v0): always empty, since reassignments complete at once."""

from __future__ import annotations

from loadwise.coordinator.access import of_cluster
from loadwise.coordinator.calls import Call, Message
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.rights import Operation
from loadwise.protocol.error_codes import ErrorCode


def handle(call: Call, _: Cluster) -> Message:
    """Return an empty list."""
    return call.response(throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, topics=[])


guard = of_cluster(Operation.DESCRIBE)
