"""DeleteGroups (42, v0 to v2): deletes groups without members, and their offsets.

v1 throttled after the response; v2 flexible.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call, Outcome
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.handling.access import names, per_item, with_body
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.coordinator.turns import ROWS_IN_A_TURN, Turns, counted
from loadwise.protocol.kafka_messages import DeleteGroupsRequest, DeleteGroupsResponse


def handle(call: Call[DeleteGroupsRequest], cluster: Cluster) -> Turns[DeleteGroupsResponse]:
    """Delete each group separately, and once if it is named twice."""
    row = DeleteGroupsResponse.DeletableGroupResult
    results = []
    for group_id in (yield from counted(call.body.groups_names)):
        while cluster.groups.is_busy(group_id):
            yield ROWS_IN_A_TURN
        results.append(row(group_id=group_id, error_code=cluster.delete_group(call, group_id)))
        yield
    return DeleteGroupsResponse(results=results)


_OF_GROUPS = per_item(names(Operation.DELETE, ResourceType.GROUP))


def guard(call: Call[DeleteGroupsRequest], cluster: Cluster, handle: Handler) -> Outcome:
    """Refuse groups that the client may not delete, once each."""
    named = list(dict.fromkeys(call.body.groups_names))
    return _OF_GROUPS(with_body(call, {"groups_names": named}), cluster, handle)
