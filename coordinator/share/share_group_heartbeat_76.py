"""ShareGroupHeartbeat (76, v1): keeps a member alive and returns its assignment (KIP-932)."""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call, GroupRequest
from loadwise.coordinator.handling.member_heartbeats import GUARD, blank
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.share.heartbeat import ShareHeartbeat, ShareHeartbeatReply
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

_Assignment = ShareGroupHeartbeatResponse.Assignment
_JOIN, _LEAVE = 0, -1


def handle(
    call: Call[ShareGroupHeartbeatRequest], cluster: Cluster
) -> Turns[ShareGroupHeartbeatResponse | GroupRequest]:
    """Check what does not depend on the group, then pass the event to it."""
    body = call.body
    problem = _problem(body)
    if problem is not None:
        return (yield from _response(call, ShareHeartbeatReply(error=ErrorCode.INVALID_REQUEST, message=problem)))
    event = ShareHeartbeat(
        token=call.token,
        member_id=body.member_id,
        epoch=body.member_epoch,
        rack=body.rack_id,
        topics=body.subscribed_topic_names,
        client_id=call.request.client_id or "",
        client_host=call.client_host,
    )
    return GroupRequest(body.group_id, event, _response)


def _problem(body: ShareGroupHeartbeatRequest) -> str | None:
    """Return what is wrong with the request. Mirrors ``throwIfShareGroupHeartbeatRequestIsInvalid``."""
    if problem := blank({"MemberId": body.member_id, "GroupId": body.group_id, "RackId": body.rack_id}):
        return problem
    if body.member_epoch == _JOIN and not body.subscribed_topic_names:
        return "SubscribedTopicNames must be set in first request."
    if body.member_epoch < _LEAVE:
        return "MemberEpoch is invalid."
    return None


def _response(call: Call[ShareGroupHeartbeatRequest], reply: ShareHeartbeatReply) -> Turns[ShareGroupHeartbeatResponse]:
    assignment = None
    if reply.assigned is not None:
        row = _Assignment.TopicPartitions
        topics = yield from listed(
            row(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in reply.assigned.items()
        )
        assignment = _Assignment(topic_partitions=topics)
    return ShareGroupHeartbeatResponse(
        error_code=reply.error,
        error_message=reply.message,
        member_id=reply.member_id,
        member_epoch=reply.epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        assignment=assignment,
    )


guard = GUARD
