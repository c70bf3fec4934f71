"""LeaveGroup (13, v0 to v5): members leave, or an administrator removes them.

v1 throttle time; v3 several members at once, also by instance id (KIP-345); v4 flexible; v5 reason (KIP-800).
"""

from __future__ import annotations

from collections.abc import Sequence

from loadwise.coordinator.access import OF_GROUP_MEMBERS
from loadwise.coordinator.calls import Call
from loadwise.coordinator.groups.effects import LeaveReply
from loadwise.coordinator.groups.events import Leave, Leaver
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import ROWS_IN_A_TURN, Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import LeaveGroupRequest, LeaveGroupResponse

_MANY = 3


def handle(call: Call[LeaveGroupRequest], cluster: Cluster) -> Turns[LeaveGroupResponse]:
    """Pass the event to the group; members beyond those of one turn leave in the next."""
    body = call.body
    if call.version < _MANY:
        # The request names one member, whose error is the response's error.
        reply = _left(call, cluster, [Leaver(body.member_id, None)])
        return LeaveGroupResponse(error_code=reply.leavers[0].error if reply.leavers else reply.error)
    row = LeaveGroupResponse.MemberResponse
    members: list[LeaveGroupResponse.MemberResponse] = []
    for start in range(0, max(len(body.members), 1), ROWS_IN_A_TURN):
        some = body.members[start : start + ROWS_IN_A_TURN]
        reply = _left(call, cluster, [Leaver(each.member_id, each.group_instance_id) for each in some])
        members += [
            row(member_id=left.member_id, group_instance_id=left.instance_id, error_code=left.error)
            for left in reply.leavers
        ]
        if reply.error is not ErrorCode.NONE:
            return LeaveGroupResponse(error_code=reply.error, members=members)
        yield len(some)
    return LeaveGroupResponse(error_code=ErrorCode.NONE, members=members)


def _left(call: Call[LeaveGroupRequest], cluster: Cluster, leavers: Sequence[Leaver]) -> LeaveReply:
    reply: LeaveReply = cluster.ask_group(call, call.body.group_id, Leave(token=call.token, leavers=leavers))
    return reply


guard = OF_GROUP_MEMBERS
