"""Not an API: rights and responses of heartbeats with member epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from loadwise.coordinator.access import Access, Need, refused, refused_without
from loadwise.coordinator.calls import Call, Message, Outcome
from loadwise.coordinator.groups.effects import EpochHeartbeatReply
from loadwise.coordinator.kafka_cluster import Cluster, Guard, Handler
from loadwise.coordinator.rights import Operation, ResourceType
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.structs import Struct

_MEMBER = Need(Operation.READ, ResourceType.GROUP, "group_id")


def answered(
    call: Call, reply: EpochHeartbeatReply, assigned: Mapping[UUID, Iterable[int]] | None, assignment_row: Any
) -> Message:
    """Return the response of a group's reply.

    ``assigned`` are the member's partitions by topic id, and ``assignment_row`` is the class of the assignment.
    """
    row = assignment_row.TopicPartitions
    assignment = None
    if assigned is not None:
        topics = [row(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in assigned.items()]
        assignment = assignment_row(topic_partitions=topics)
    return call.response(
        throttle_time_ms=0,
        error_code=reply.error,
        error_message=reply.message,
        member_id=reply.member_id,
        member_epoch=reply.epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        assignment=assignment,
    )


def guarding(topics: Callable[[Call], Iterable[str] | Message]) -> Guard:
    """Return a guard that requires to read the group and to describe its topics.

    ``topics`` returns those of a request, or the response if they are not valid.
    """

    def guard(call: Call, cluster: Cluster, handle: Handler) -> Outcome:
        refusal = refused_without(call, cluster, _MEMBER)
        if refusal is not None:
            return refusal
        access = Access(call, cluster)
        names = topics(call)
        if isinstance(names, Struct):
            return names
        if not all(access.may(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names):
            return refused(call, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return handle(call, cluster)

    return guard


GUARD = guarding(lambda call: call.body.subscribed_topic_names or ())
"""Guards heartbeats whose members name their topics."""
