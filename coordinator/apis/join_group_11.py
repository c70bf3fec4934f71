"""JoinGroup (11, v0 to v9): joins the next generation of a group.

v1 rebalance timeout; v2 throttle time; v4 MEMBER_ID_REQUIRED (KIP-394); v5 static members (KIP-345); v6 flexible; v7
protocol type in the response (KIP-559); v8 reason (KIP-800); v9 skip assignment (KIP-814).
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call, GroupRequest
from loadwise.coordinator.groups.effects import JoinReply
from loadwise.coordinator.groups.events import Join, Protocol
from loadwise.coordinator.handling.access import OF_GROUP_MEMBERS, describable_topics
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.kafka_messages import JoinGroupRequest, JoinGroupResponse

_REBALANCE_TIMEOUT = 1
_MEMBER_ID_REQUIRED = 4
_NULLABLE_PROTOCOL = 7
_SKIP_ASSIGNMENT = 9


def handle(call: Call[JoinGroupRequest], cluster: Cluster) -> GroupRequest:
    """Pass the event to the group; the response follows when all have joined."""
    body, version = call.body, call.version
    prefix = body.group_instance_id or call.request.client_id or ""
    has_timeout = version >= _REBALANCE_TIMEOUT
    event = Join(
        token=call.token,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        fresh_member_id="" if body.member_id else f"{prefix}-{cluster.new_uuid()}",
        client_id=call.request.client_id or "",
        client_host=call.client_host,
        protocol_type=body.protocol_type,
        protocols=[Protocol(each.name, each.metadata) for each in body.protocols],
        session_timeout_ms=body.session_timeout_ms,
        rebalance_timeout_ms=body.rebalance_timeout_ms if has_timeout else body.session_timeout_ms,
        requires_member_id=version >= _MEMBER_ID_REQUIRED,
        can_skip_assignment=version >= _SKIP_ASSIGNMENT,
        may_describe=describable_topics(call, cluster),
    )
    return GroupRequest(body.group_id, event, _respond)


def _respond(call: Call[JoinGroupRequest], reply: JoinReply) -> JoinGroupResponse:
    no_name = None if call.version >= _NULLABLE_PROTOCOL else ""
    row = JoinGroupResponse.JoinGroupResponseMember
    return JoinGroupResponse(
        error_code=reply.error,
        generation_id=reply.generation,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name or no_name,
        leader=reply.leader,
        skip_assignment=reply.skip_assignment,
        member_id=reply.member_id,
        members=[
            row(member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata)
            for member in reply.members
        ],
    )


guard = OF_GROUP_MEMBERS
