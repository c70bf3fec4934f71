"""ListConfigResources (74, v0 to v1): lists resources with configs.

v0 client metrics subscriptions (it was ListClientMetricsResources); v1 resources of every type (KIP-1142).
"""

from __future__ import annotations

from collections.abc import Iterable

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.configs.resources import ConfigResourceType
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ListConfigResourcesRequest, ListConfigResourcesResponse

_TYPES = 1


def handle(call: Call[ListConfigResourcesRequest], cluster: Cluster) -> Turns[ListConfigResourcesResponse]:
    """List topics and brokers, and the groups and subscriptions with configs."""
    asked = call.body.resource_types if call.version >= _TYPES else [ConfigResourceType.CLIENT_METRICS]
    if not set(asked) <= set(ConfigResourceType):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[])
    row = ListConfigResourcesResponse.ConfigResource
    resources = yield from listed(
        row(resource_name=name, resource_type=kind)
        for kind in ConfigResourceType
        if not asked or kind in asked
        for name in _names(cluster, kind)
    )
    return ListConfigResourcesResponse(error_code=ErrorCode.NONE, config_resources=resources)


def _names(cluster: Cluster, kind: ConfigResourceType) -> Iterable[str]:
    match kind:
        case ConfigResourceType.TOPIC:
            return (topic.name for topic in cluster.topics.in_turns())
        case ConfigResourceType.BROKER | ConfigResourceType.BROKER_LOGGER:
            return [str(node.id) for node in cluster.brokers.nodes]
        case _:
            return cluster.resource_configs.names(kind)


guard = of_cluster(Operation.DESCRIBE_CONFIGS)
