"""DeleteGroups (42): deletes groups without members, and their offsets.

v1 throttled after the response; v2 flexible.
"""

from __future__ import annotations

from loadwise.coordinator.apis.access import names, per_item
from loadwise.coordinator.authorization.acls import Operation, ResourceType
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.kafka_messages import DeleteGroupsRequest, DeleteGroupsResponse
from loadwise.protocol.messages import Api


def handle(call: Call, cluster: Cluster) -> Message:
    """Delete each group separately."""
    row = DeleteGroupsResponse.DeletableGroupResult
    results = [
        row(
            group_id=group_id,
            error_code=cluster.delete_group(call, group_id),
        )
        for group_id in call.body.groups_names
    ]
    return call.response(throttle_time_ms=0, results=results)


SERVICE = Service(
    Api.of(DeleteGroupsRequest, DeleteGroupsResponse), handle, per_item(names(Operation.DELETE, ResourceType.GROUP))
)
