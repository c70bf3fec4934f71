"""Heartbeat (12, v0 to v4): keeps a member alive, and reports a rebalance.

v1 throttle time; v3 static members (KIP-345); v4 flexible.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call, GroupRequest
from loadwise.coordinator.groups.effects import HeartbeatReply
from loadwise.coordinator.groups.events import Heartbeat
from loadwise.coordinator.handling.access import OF_GROUP_MEMBERS
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import HeartbeatRequest, HeartbeatResponse


def handle(call: Call[HeartbeatRequest], cluster: Cluster) -> GroupRequest:
    """Pass the event to the group."""
    body = call.body
    event = Heartbeat(
        token=call.token,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id,
    )
    return GroupRequest(body.group_id, event, _respond)


def response(error: ErrorCode) -> HeartbeatResponse:
    """Return the response for an error; repeated heartbeats are answered with it too."""
    return HeartbeatResponse(error_code=error)


def _respond(call: Call[HeartbeatRequest], reply: HeartbeatReply) -> HeartbeatResponse:
    return response(reply.error)


guard = OF_GROUP_MEMBERS
