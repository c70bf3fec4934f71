"""DescribeGroups (15, v0 to v6): describes groups and their members.

v1 throttle time; v3 authorized operations; v4 instance ids; v5 flexible; v6 GROUP_ID_NOT_FOUND for a missing group,
which had the state Dead and no error before. Consumer groups are not found here: ConsumerGroupDescribe returns them.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.groups.classic.states import GroupState
from loadwise.coordinator.handling.access import Access
from loadwise.coordinator.handling.group_descriptions import DESCRIBES_GROUPS, described
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DescribeGroupsRequest, DescribeGroupsResponse

_OPERATIONS = 3
_NAMES_MISSING_GROUPS = 6
_Group = DescribeGroupsResponse.DescribedGroup


def handle(call: Call[DescribeGroupsRequest], cluster: Cluster) -> Turns[DescribeGroupsResponse]:
    """Describe each group separately.

    A response can contain the maximum number of members once. Groups that are named again beyond that get an error, so
    that a small request cannot ask for gigabytes.
    """
    access = Access(call, cluster) if call.version >= _OPERATIONS and call.body.include_authorized_operations else None
    groups = yield from described(
        call.body.groups,
        lambda group_id: _describe(call, cluster, group_id),
        _repeated,
        max_members=cluster.settings.groups.max_members,
        access=access,
    )
    return DescribeGroupsResponse(groups=groups)


def _repeated(group_id: str) -> _Group:
    message = f"Group {group_id} is named too often in one request."
    return _without_members(group_id, ErrorCode.INVALID_REQUEST, message)


def _without_members(group_id: str, error: ErrorCode, message: str | None, *, state: str = "") -> _Group:
    return _Group(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=[],
        authorized_operations=None,
    )


def _describe(call: Call[DescribeGroupsRequest], cluster: Cluster, group_id: str) -> _Group:
    if not cluster.coordinates(call, group_id):
        return _without_members(group_id, ErrorCode.NOT_COORDINATOR, None)
    group = cluster.groups.classic_group(group_id)
    if group is None:
        error, message = ErrorCode.NONE, None
        if call.version >= _NAMES_MISSING_GROUPS:
            error, message = ErrorCode.GROUP_ID_NOT_FOUND, _missing(cluster, group_id)
        return _without_members(group_id, error, message, state=GroupState.DEAD.value)
    # Only a stable group returns subscriptions and protocol, because they may change before that.
    protocol = group.protocol_name if group.state is GroupState.STABLE else None
    members = [
        _Group.DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=b"" if protocol is None else member.metadata(protocol),
            member_assignment=member.assignment,
        )
        for member in group.members.values()
    ]
    return _Group(
        error_code=ErrorCode.NONE,
        error_message=None,
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=members,
        authorized_operations=None,
    )


def _missing(cluster: Cluster, group_id: str) -> str:
    is_there = cluster.groups.get(group_id) is not None
    return f"Group {group_id} not found." if not is_there else f"Group {group_id} is not a classic group."


guard = DESCRIBES_GROUPS
