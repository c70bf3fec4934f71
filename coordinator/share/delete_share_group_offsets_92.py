"""DeleteShareGroupOffsets (92, v0): deletes a share group's state of topics (KIP-932).

The group must have no members.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.handling.access import Access, Need, needs
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.share.administration import refusal
from loadwise.coordinator.share.feature import ShareGroups
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse

_Topic = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


def handle(call: Call[DeleteShareGroupOffsetsRequest], cluster: Cluster) -> Turns[DeleteShareGroupOffsetsResponse]:
    """Delete each topic's state separately; the group then starts as if it had never read it."""
    error, message = refusal(call, cluster)
    if error is not ErrorCode.NONE:
        return DeleteShareGroupOffsetsResponse(error_code=error, error_message=message, responses=[])
    access = Access(call, cluster)
    topics = []
    for name in dict.fromkeys(asked.topic_name for asked in call.body.topics):
        yield
        may = access.may(Operation.READ, ResourceType.TOPIC, name)
        topic = cluster.topics.get(name) if may else None
        outcome, problem = ErrorCode.NONE, None
        if not may:
            outcome, problem = ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."
        elif topic is None:
            outcome, problem = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        elif not ShareGroups.of(cluster).shares.delete(call.body.group_id, topic.id):
            outcome, problem = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete."
        topics.append(
            _Topic(
                topic_name=name,
                topic_id=None if topic is None else topic.id,
                error_code=outcome,
                error_message=problem,
            )
        )
    return DeleteShareGroupOffsetsResponse(error_code=ErrorCode.NONE, error_message=None, responses=topics)


guard = needs(Need(Operation.DELETE, ResourceType.GROUP, "group_id"))
