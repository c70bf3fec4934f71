"""LeaveGroup (13, v0 to v5): members leave, or an administrator removes them.

v1 throttle time; v3 several members at once, also by instance id (KIP-345); v4 flexible; v5 reason (KIP-800).
"""

from __future__ import annotations

from loadwise.coordinator.access import OF_GROUP_MEMBERS
from loadwise.coordinator.calls import Call, GroupRequest
from loadwise.coordinator.groups.effects import LeaveReply
from loadwise.coordinator.groups.events import Leave, Leaver
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.kafka_messages import LeaveGroupRequest, LeaveGroupResponse

_MANY = 3


def handle(call: Call[LeaveGroupRequest], cluster: Cluster) -> GroupRequest:
    """Pass the event to the group."""
    body = call.body
    if call.version >= _MANY:
        leavers = [Leaver(each.member_id, each.group_instance_id) for each in body.members]
    else:
        leavers = [Leaver(body.member_id, None)]
    return GroupRequest(body.group_id, Leave(token=call.token, leavers=leavers), _respond)


def _respond(call: Call[LeaveGroupRequest], reply: LeaveReply) -> LeaveGroupResponse:
    if call.version < _MANY:
        # The request names one member, whose error is the response's error.
        error = reply.leavers[0].error if reply.leavers else reply.error
        return LeaveGroupResponse(error_code=error)
    row = LeaveGroupResponse.MemberResponse
    return LeaveGroupResponse(
        error_code=reply.error,
        members=[
            row(member_id=left.member_id, group_instance_id=left.instance_id, error_code=left.error)
            for left in reply.leavers
        ],
    )


guard = OF_GROUP_MEMBERS
