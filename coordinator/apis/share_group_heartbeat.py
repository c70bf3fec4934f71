"""ShareGroupHeartbeat (76): a member of a share group is alive, and gets its assignment (KIP-932)."""

from __future__ import annotations

from loadwise.coordinator.apis.access import Access, Need, refused, refused_without
from loadwise.coordinator.authorization.acls import Operation, ResourceType
from loadwise.coordinator.calls import Call, GroupRequest, Handler, Message, Outcome, Service
from loadwise.coordinator.groups.effects import ShareHeartbeatReply
from loadwise.coordinator.groups.events import ShareHeartbeat
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api
from loadwise.protocol.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from loadwise.protocol.structs import struct_class

_Assignment = struct_class(ShareGroupHeartbeatResponse.Assignment)
_JOIN, _LEAVE = 0, -1


def handle(call: Call, cluster: Cluster) -> Message | GroupRequest:
    """Check what does not depend on the group, then ask the group."""
    body = call.body
    problem = _problem(body)
    if problem is not None:
        return _response(call, ShareHeartbeatReply(error=ErrorCode.INVALID_REQUEST, message=problem))
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


def _problem(body: Message) -> str | None:
    """What is wrong with the request itself. Mirrors ``throwIfShareGroupHeartbeatRequestIsInvalid``."""
    if not body.member_id.strip():
        return "MemberId can't be empty."
    if not body.group_id.strip():
        return "GroupId can't be empty."
    if body.rack_id is not None and not body.rack_id.strip():
        return "RackId can't be empty."
    if body.member_epoch == _JOIN and not body.subscribed_topic_names:
        return "SubscribedTopicNames must be set in first request."
    if body.member_epoch < _LEAVE:
        return "MemberEpoch is invalid."
    return None


def _response(call: Call, reply: ShareHeartbeatReply) -> Message:
    row = _Assignment.TopicPartitions
    assignment = None
    if reply.assigned is not None:
        topics = [row(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in reply.assigned.items()]
        assignment = _Assignment(topic_partitions=topics)
    return call.response(
        throttle_time_ms=0,
        error_code=reply.error,
        error_message=reply.message,
        member_id=reply.member_id,
        member_epoch=reply.epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        assignment=assignment,
    )


def _guard(call: Call, cluster: Cluster, handle: Handler) -> Outcome:
    """A member must be allowed to read the group, and to describe every topic that it names."""
    refusal = refused_without(call, cluster, Need(Operation.READ, ResourceType.GROUP, "group_id"))
    if refusal is not None:
        return refusal
    access = Access(call, cluster)
    names = call.body.subscribed_topic_names or ()
    if not all(access.may(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names):
        return refused(call, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return handle(call, cluster)


SERVICE = Service(Api.of(ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse), handle, _guard)
