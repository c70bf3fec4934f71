"""Not an API: how ShareFetch and ShareAcknowledge read and apply acknowledgements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.replication import ReplicatedPartition
from loadwise.coordinator.handling.access import Access
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.share.acknowledgements import Acknowledgement, AcknowledgeRefusal, AcknowledgeType
from loadwise.coordinator.share.feature import ShareGroups
from loadwise.coordinator.share.service import ShareKey
from loadwise.coordinator.share.sessions import NO_TOPIC, SessionKey, TopicIdPartition
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

_Call: TypeAlias = Call[ShareFetchRequest] | Call[ShareAcknowledgeRequest]
_Batch: TypeAlias = (
    ShareFetchRequest.FetchTopic.FetchPartition.AcknowledgementBatch
    | ShareAcknowledgeRequest.AcknowledgeTopic.AcknowledgePartition.AcknowledgementBatch
)
_Response = TypeVar("_Response", ShareFetchResponse, ShareAcknowledgeResponse)

_RENEW = 2
_MAX_MEMBER_ID = 36


def request_problem(call: _Call) -> str | None:
    """Return the problem of the request; None if it is valid."""
    body = call.body
    if not body.member_id or len(body.member_id) > _MAX_MEMBER_ID:
        return "Member id must be 1 to 36 characters long."
    if not body.group_id:
        return "Group id must be given."
    return None


def refused(response: type[_Response], error: ErrorCode, message: str | None) -> _Response:
    """Return the response to a request that had no effect."""
    return response(
        error_code=error,
        error_message=message,
        acquisition_lock_timeout_ms=0,
        responses=[],
        node_endpoints=[],
    )


def session_key(call: _Call) -> SessionKey:
    """Return the session of a valid request."""
    group_id, member_id = call.body.group_id, call.body.member_id
    assert group_id is not None
    assert member_id is not None
    return SessionKey(call.node_id, group_id, member_id)


def told(call: _Call) -> dict[TopicIdPartition, Sequence[_Batch]]:
    """Return the member's acknowledgements by partition, the last of each, without empty ones."""
    last = {
        (topic.topic_id or NO_TOPIC, each.partition_index): each.acknowledgement_batches
        for topic in call.body.topics
        for each in topic.partitions
    }
    return {where: batches for where, batches in last.items() if batches}


def led_here(call: Call, cluster: Cluster, where: TopicIdPartition) -> ReplicatedPartition | ErrorCode:
    """Return the partition if the call's broker leads it, else the error."""
    topic_id, number = where
    topic = cluster.topics.get_by_id(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not Access(call, cluster).may(Operation.READ, ResourceType.TOPIC, topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if not 0 <= number < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partition = topic.partitions[number]
    return partition if partition.leader == call.node_id else ErrorCode.NOT_LEADER_OR_FOLLOWER


def acknowledge(
    call: _Call, cluster: Cluster, where: TopicIdPartition, batches: Sequence[_Batch]
) -> AcknowledgeRefusal | None:
    """Apply a member's acknowledgements in a partition; return why they fail."""
    found = led_here(call, cluster, where)
    if isinstance(found, ErrorCode):
        return AcknowledgeRefusal(found, found.name)
    asking = session_key(call)
    key = ShareKey(asking.group_id, *where)
    limits = ShareGroups.of(cluster).limits(key.group_id)
    renews = call.version >= _RENEW and call.body.is_renew_ack and limits.renews_locks
    most = AcknowledgeType.RENEW if renews else AcknowledgeType.REJECT
    acknowledgements = []
    for problem, batch in _checked(batches, most):
        if problem is not None:
            return AcknowledgeRefusal(ErrorCode.INVALID_REQUEST, problem)
        acknowledgements.append(Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types))
    return ShareGroups.of(cluster).shares.acknowledge(key, asking.member_id, acknowledgements, cluster.now_ms)


def _checked(batches: Sequence[_Batch], most: AcknowledgeType) -> Iterator[tuple[str | None, _Batch]]:
    """Return each batch with its error. Mirrors ``KafkaApis.validateAcknowledgementBatches``."""
    last = -1
    for batch in batches:
        problem = None
        types, count = batch.acknowledge_types, batch.last_offset - batch.first_offset + 1
        if count < 1 or batch.first_offset < last:
            problem = "The batches are not in order."
        elif not types or (len(types) > 1 and len(types) != count):
            problem = "A batch has one acknowledge type, or one for each record."
        elif not all(0 <= each <= most for each in types):
            problem = "An acknowledge type is not known."
        last = batch.last_offset
        yield problem, batch
