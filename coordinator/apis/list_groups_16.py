"""ListGroups (16, v0 to v5): lists groups, optionally by state or type.

v1 throttle time; v3 flexible; v4 filter by state (KIP-518); v5 filter by type (KIP-848).
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.handling.access import Access, open_to_all
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ListGroupsRequest, ListGroupsResponse

_FILTERED_AS = {"NotReady": "not_ready"}
"""States whose names in filters differ from the response, as in Kafka."""


def handle(call: Call[ListGroupsRequest], cluster: Cluster) -> Turns[ListGroupsResponse]:
    """List the groups that match the filters, which ignore case, and that the client may describe.

    An empty filter matches all.
    """
    access = Access(call, cluster)
    sees_all = access.may(Operation.DESCRIBE, ResourceType.CLUSTER)
    states = {state.lower() for state in call.body.states_filter}
    types = {name.lower() for name in call.body.types_filter}
    groups = []
    for group_id in list(cluster.groups.all()):
        yield
        group = cluster.groups.get(group_id)
        if (
            group is not None  # it may have been deleted meanwhile
            and cluster.coordinates(call, group_id)
            and (not states or _FILTERED_AS.get(group.state.value, group.state.value.lower()) in states)
            and (not types or group.type in types)
            and (sees_all or access.may(Operation.DESCRIBE, ResourceType.GROUP, group_id))
        ):
            row = ListGroupsResponse.ListedGroup(
                group_id=group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=group.type,
            )
            groups.append(row)
    return ListGroupsResponse(error_code=ErrorCode.NONE, groups=groups)


guard = open_to_all
