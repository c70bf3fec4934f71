"""ConsumerGroupHeartbeat (68, v0 to v1): keeps a member alive and returns its assignment (KIP-848).

v1 regular expressions; member ids from the consumers (KIP-1082).
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from threading import Thread
from uuid import UUID

from loadwise.coordinator.calls.call import Call, GroupRequest
from loadwise.coordinator.groups.effects import ConsumerHeartbeatReply
from loadwise.coordinator.groups.events import ConsumerHeartbeat
from loadwise.coordinator.handling.access import describable_topics
from loadwise.coordinator.handling.member_heartbeats import GUARD, blank
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import ROWS_IN_A_TURN, Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

_OWN_MEMBER_IDS = 1
_Assignment = ConsumerGroupHeartbeatResponse.Assignment
NO_TOPIC = UUID(int=0)
_JOIN, _LEAVE, _LEAVE_FOR_NOW = 0, -1, -2


def handle(
    call: Call[ConsumerGroupHeartbeatRequest], cluster: Cluster
) -> Turns[ConsumerGroupHeartbeatResponse | GroupRequest]:
    """Check what does not depend on the group, then pass the event to it."""
    body = call.body
    problem = _problem(call)
    if problem is not None:
        return (yield from _response(call, ConsumerHeartbeatReply(error=ErrorCode.INVALID_REQUEST, message=problem)))
    assignors = cluster.settings.consumer_groups.assignors
    if body.server_assignor is not None and body.server_assignor not in assignors:
        message = f"there is no assignor {body.server_assignor!r}; choose from {', '.join(assignors)}"
        reply = ConsumerHeartbeatReply(error=ErrorCode.UNSUPPORTED_ASSIGNOR, message=message)
        return (yield from _response(call, reply))
    owned = body.topic_partitions
    event = ConsumerHeartbeat(
        token=call.token,
        member_id=body.member_id or str(cluster.new_uuid()),
        epoch=body.member_epoch,
        instance_id=body.instance_id,
        rack=body.rack_id,
        rebalance_timeout_ms=None if body.rebalance_timeout_ms == -1 else body.rebalance_timeout_ms,
        topics=body.subscribed_topic_names,
        regex=body.subscribed_topic_regex,
        assignor=body.server_assignor,
        owned=None if owned is None else {topic.topic_id or NO_TOPIC: topic.partitions for topic in owned},
        may_describe=describable_topics(call, cluster),
        client_id=call.request.client_id or "",
        client_host=call.client_host,
    )
    importing = _import_of_the_assignors()
    while importing.is_alive():
        yield ROWS_IN_A_TURN
    return GroupRequest(body.group_id, event, _response)


@cache
def _import_of_the_assignors() -> Thread:
    """Import what computes targets on a thread, since numpy takes longer than a turn. A group raises its errors."""
    importing = Thread(target=_import, name="loadwise-import")
    importing.start()
    return importing


def _import() -> None:
    with suppress(ImportError):
        import_module("loadwise.coordinator.groups.consumer.target")


def _problem(call: Call[ConsumerGroupHeartbeatRequest]) -> str | None:
    """Return what is wrong with the request.

    Mirrors ``throwIfConsumerGroupHeartbeatRequestIsInvalid``.
    """
    body = call.body
    epoch = body.member_epoch
    needs_id = call.version >= _OWN_MEMBER_IDS or epoch > 0 or epoch == _LEAVE
    ids = {
        "MemberId": body.member_id if needs_id else None,
        "GroupId": body.group_id,
        "InstanceId": body.instance_id,
        "RackId": body.rack_id,
    }
    if problem := blank(ids):
        return problem
    if epoch == _JOIN:
        if body.rebalance_timeout_ms == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        if body.topic_partitions is None or body.topic_partitions:
            return "TopicPartitions must be empty when (re-)joining."
        if body.subscribed_topic_names is None and body.subscribed_topic_regex is None:
            return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    elif epoch == _LEAVE_FOR_NOW and body.instance_id is None:
        return "InstanceId can't be null."
    elif epoch < _LEAVE_FOR_NOW:
        return "MemberEpoch is invalid."
    return None


def _response(
    call: Call[ConsumerGroupHeartbeatRequest], reply: ConsumerHeartbeatReply
) -> Turns[ConsumerGroupHeartbeatResponse]:
    assignment = None
    if reply.assigned is not None:
        row = _Assignment.TopicPartitions
        topics = yield from listed(
            row(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in reply.assigned.items()
        )
        assignment = _Assignment(topic_partitions=topics)
    return ConsumerGroupHeartbeatResponse(
        error_code=reply.error,
        error_message=reply.message,
        member_id=reply.member_id,
        member_epoch=reply.epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        assignment=assignment,
    )


guard = GUARD
