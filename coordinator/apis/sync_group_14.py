"""SyncGroup (14, v0 to v5): the leader sends all assignments, and each member gets its own.

v1 throttle time; v3 static members (KIP-345); v4 flexible; v5 protocol type and name, checked (KIP-559).
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call, GroupRequest, Outcome
from loadwise.coordinator.groups.effects import SyncReply
from loadwise.coordinator.groups.events import Sync
from loadwise.coordinator.handling.access import OF_GROUP_MEMBERS
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_REQUIRED = 5


def handle(call: Call[SyncGroupRequest], cluster: Cluster) -> SyncGroupResponse | GroupRequest:
    """Pass the event to the group; the response follows with the leader's assignment."""
    body = call.body
    if _lacks_protocol(call):
        return _respond(call, SyncReply(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    event = Sync(
        token=call.token,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id,
        protocol_type=body.protocol_type,
        protocol_name=body.protocol_name,
        assignments=[(each.member_id, each.assignment) for each in body.assignments],
    )
    return GroupRequest(body.group_id, event, _respond)


def _respond(call: Call[SyncGroupRequest], reply: SyncReply) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=reply.error,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        assignment=reply.assignment,
    )


def _lacks_protocol(call: Call[SyncGroupRequest]) -> bool:
    """Return whether a client that must send the protocol of its join does not. Kafka checks this before the rights."""
    body = call.body
    return call.version >= _PROTOCOL_REQUIRED and (body.protocol_type is None or body.protocol_name is None)


def guard(call: Call[SyncGroupRequest], cluster: Cluster, handle: Handler) -> Outcome:
    return handle(call, cluster) if _lacks_protocol(call) else OF_GROUP_MEMBERS(call, cluster, handle)
