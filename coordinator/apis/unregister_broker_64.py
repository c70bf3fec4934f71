"""UnregisterBroker (64, v0): removes a broker from the cluster. The brokers here stay."""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(call: Call[UnregisterBrokerRequest], cluster: Cluster) -> UnregisterBrokerResponse:
    """Return an error: the broker does not exist, or stays registered."""
    number = call.body.broker_id
    error, message = ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {number} is not currently registered"
    if any(node.id == number for node in cluster.brokers.nodes):
        error, message = ErrorCode.INVALID_REQUEST, f"Broker {number} stays registered: this cluster keeps its brokers"
    return UnregisterBrokerResponse(error_code=error, error_message=message)


guard = of_cluster(Operation.ALTER)
