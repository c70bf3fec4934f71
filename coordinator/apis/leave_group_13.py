"""LeaveGroup (13, v0 to v5): members leave, or an administrator removes them.

v1 throttle time; v3 several members at once, also by instance id (KIP-345); v4 flexible; v5 reason (KIP-800).
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call, GroupRequest
from loadwise.coordinator.groups.effects import LeaveReply
from loadwise.coordinator.groups.events import Leave, Leaver
from loadwise.coordinator.handling.access import OF_GROUP_MEMBERS
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import ROWS_IN_A_TURN, Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import LeaveGroupRequest, LeaveGroupResponse

_MANY = 3
_Row = LeaveGroupResponse.MemberResponse


def handle(call: Call[LeaveGroupRequest], cluster: Cluster) -> GroupRequest:
    """Pass the event to the group; members beyond those of one turn leave in the next."""
    body = call.body
    if call.version < _MANY:
        return GroupRequest(body.group_id, Leave(token=call.token, leavers=[Leaver(body.member_id, None)]), _alone)
    return _leave(call, [])


def _alone(_: Call[LeaveGroupRequest], reply: LeaveReply) -> LeaveGroupResponse:
    # The request names one member, whose error is the response's error.
    return LeaveGroupResponse(error_code=reply.leavers[0].error if reply.leavers else reply.error)


def _leave(call: Call[LeaveGroupRequest], left: list[_Row]) -> GroupRequest:
    """Let the next members leave, after those that have left."""
    some = call.body.members[len(left) : len(left) + ROWS_IN_A_TURN]
    leavers = [Leaver(each.member_id, each.group_instance_id) for each in some]

    def respond(call: Call[LeaveGroupRequest], reply: LeaveReply) -> Turns[LeaveGroupResponse | GroupRequest]:
        rows = yield from listed(
            _Row(member_id=each.member_id, group_instance_id=each.instance_id, error_code=each.error)
            for each in reply.leavers
        )
        members = left + rows
        if reply.error is ErrorCode.NONE and len(members) < len(call.body.members):
            return _leave(call, members)
        return LeaveGroupResponse(error_code=reply.error, members=members)

    return GroupRequest(call.body.group_id, Leave(token=call.token, leavers=leavers), respond)


guard = OF_GROUP_MEMBERS
