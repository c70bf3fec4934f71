"""DeleteTopics (20, v1 to v6): deletes topics with their records and committed offsets.

v1 throttle time; v4 flexible; v5 error messages; v6 topics by id (KIP-516).
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from loadwise.coordinator.access import Access, after, item_by_item
from loadwise.coordinator.calls import Call, Outcome, Response
from loadwise.coordinator.cluster.topics import Topic
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.coordinator.rights import Operation, ResourceType
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DeleteTopicsRequest, DeleteTopicsResponse

_TELLS_DISABLED = 3
_BY_ID = 6


def handle(call: Call[DeleteTopicsRequest], cluster: Cluster) -> DeleteTopicsResponse:
    """Delete each topic separately, and answer fetches that wait for it."""
    if call.version < _BY_ID:
        wanted: list[tuple[str | None, UUID | None]] = [(name, None) for name in call.body.topic_names]
    else:
        wanted = [(topic.name, topic.topic_id) for topic in call.body.topics]
    responses = []
    deleted = set()
    if not cluster.settings.delete_topics:
        return _refused(call, wanted)
    for name, topic_id in wanted:
        topic = cluster.topics.get_by_id(topic_id) if name is None else cluster.topics.get(name)
        if topic is not None:
            error = ErrorCode.NONE
            _delete(cluster, topic)
            deleted.add(topic.name)
        else:
            error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        responses.append(
            DeleteTopicsResponse.DeletableTopicResult(
                name=name if topic is None else topic.name,
                topic_id=topic_id if topic is None else topic.id,
                error_code=error,
                error_message=None,
            )
        )
    if deleted:
        cluster.groups.forget_topics(deleted)
    return DeleteTopicsResponse(responses=responses)


def _refused(call: Call[DeleteTopicsRequest], wanted: Sequence[tuple[str | None, UUID | None]]) -> DeleteTopicsResponse:
    """Return the error if deletion is disabled. Clients before v3 do not know its code."""
    error = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= _TELLS_DISABLED else ErrorCode.INVALID_REQUEST
    row = DeleteTopicsResponse.DeletableTopicResult
    rows = [row(name=name, topic_id=topic_id, error_code=error, error_message=None) for name, topic_id in wanted]
    return DeleteTopicsResponse(responses=rows)


def _delete(cluster: Cluster, topic: Topic) -> None:
    cluster.topics.delete(topic)
    cluster.topic_deleted(topic)


def guard(call: Call[DeleteTopicsRequest], cluster: Cluster, handle: Handler) -> Outcome:
    """Hide topics that the client may not describe, and the names of their ids."""
    access = Access(call, cluster)
    if access.may(Operation.DELETE, ResourceType.CLUSTER):
        return handle(call, cluster)

    def check(
        _: Call[DeleteTopicsRequest], __: Cluster, ___: Access, item: DeleteTopicsRequest.DeleteTopicState | str
    ) -> ErrorCode:
        name, topic_id = (item, None) if isinstance(item, str) else (item.name, item.topic_id)
        topic = cluster.topics.get_by_id(topic_id) if name is None else cluster.topics.get(name)
        if topic is None:
            may = name is None or access.may(Operation.DESCRIBE, ResourceType.TOPIC, name)
        else:
            may = access.may(Operation.DELETE, ResourceType.TOPIC, topic.name)
        return ErrorCode.NONE if may else ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def named(response: Response) -> Response:
        assert isinstance(response, DeleteTopicsResponse)
        for row in response.responses:
            topic = cluster.topics.get_by_id(row.topic_id) if row.name is None else None
            if topic is not None and access.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
                row.name = topic.name
        return response

    return after(call, item_by_item(check, call, cluster, handle, message=True), named)
