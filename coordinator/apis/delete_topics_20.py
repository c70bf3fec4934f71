"""DeleteTopics (20, v1 to v6): deletes topics with their records and committed offsets.

v1 throttle time; v4 flexible; v5 error messages; v6 topics by id (KIP-516). A topic that is named twice stays. Mirrors
``ControllerApis.deleteTopics``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.topics import Topic
from loadwise.coordinator.handling.access import MESSAGES, Access, open_to_all
from loadwise.coordinator.handling.in_time import in_time
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import ROWS_IN_A_TURN, Turns, counted, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DeleteTopicsRequest, DeleteTopicsResponse

_TELLS_DISABLED = 3
_BY_ID = 6
_TOGETHER = 100
"""So many partitions are deleted in one turn of the loop."""
_Row = DeleteTopicsResponse.DeletableTopicResult


@in_time
def handle(call: Call[DeleteTopicsRequest], cluster: Cluster) -> Turns[DeleteTopicsResponse]:
    """Delete each topic separately, and answer fetches that wait for it."""
    named: Iterable[tuple[str | None, UUID | None]]
    if call.version < _BY_ID:
        named = ((name, None) for name in call.body.topic_names)
    else:
        named = ((topic.name, topic.topic_id) for topic in call.body.topics)
    if not cluster.settings.delete_topics:
        # Clients before v3 do not know the code.
        error = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= _TELLS_DISABLED else ErrorCode.INVALID_REQUEST
        rows = yield from listed(_row(name, topic_id, error) for name, topic_id in named)
        return DeleteTopicsResponse(responses=rows)
    wanted = yield from counted(named)
    rows, deletable = yield from _sorted_out(call, cluster, wanted)
    some: list[Topic] = []
    partitions = 0
    for topic in deletable:
        if cluster.topics.get_by_id(topic.id) is None:  # another request has deleted it meanwhile
            rows.append(_row(topic.name, topic.id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        some.append(topic)
        partitions += len(topic.partitions)
        rows.append(_row(topic.name, topic.id))
        if partitions >= _TOGETHER:
            cluster.delete_topics(some)
            some, partitions = [], 0
            yield ROWS_IN_A_TURN
    if some:
        cluster.delete_topics(some)
    return DeleteTopicsResponse(responses=rows)


def _sorted_out(
    call: Call[DeleteTopicsRequest], cluster: Cluster, wanted: Counter[tuple[str | None, UUID | None]]
) -> Turns[tuple[list[_Row], list[Topic]]]:
    """Return the errors, and the topics to delete.

    A client does not learn the name of an id that it may not describe, nor that a name has an id that it named too.
    """
    rows: list[_Row] = []
    names: list[str] = []
    ids: list[UUID] = []
    twice: set[UUID] = set()
    for (name, topic_id), times in wanted.items():
        yield
        if name is not None and topic_id is not None:
            message = "You may not specify both topic name and topic id."
            rows += [_row(name, topic_id, ErrorCode.INVALID_REQUEST, message)] * times
        elif name is not None and times == 1:
            names.append(name)
        elif name is not None:
            rows.append(_row(name, None, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        elif topic_id is None:
            message = "Neither topic name nor id were specified."
            rows += [_row(None, None, ErrorCode.INVALID_REQUEST, message)] * times
        elif times == 1:
            ids.append(topic_id)
        else:
            twice.add(topic_id)
            rows.append(_row(None, topic_id, ErrorCode.INVALID_REQUEST, "Duplicate topic id."))
    access = Access(call, cluster)
    may_all = access.may(Operation.DELETE, ResourceType.CLUSTER)

    def may(operation: Operation, name: str) -> bool:
        return may_all or access.may(operation, ResourceType.TOPIC, name)

    forbidden = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    deletable: dict[UUID, Topic] = {}
    for topic_id in ids:
        yield
        topic = cluster.topics.get_by_id(topic_id)
        if topic is None:
            rows.append(_row(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID))
        elif not may(Operation.DELETE, topic.name):
            shown = topic.name if may(Operation.DESCRIBE, topic.name) else None
            rows.append(_row(shown, topic_id, forbidden, MESSAGES[forbidden]))
        else:
            deletable[topic_id] = topic
    for name in names:
        yield
        topic = cluster.topics.get(name)
        if not may(Operation.DESCRIBE, name):
            rows.append(_row(name, None, forbidden, MESSAGES[forbidden]))
        elif topic is None:
            rows.append(_row(name, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif not may(Operation.DELETE, name):
            rows.append(_row(name, None, forbidden, MESSAGES[forbidden]))
        elif topic.id in twice or topic.id in deletable:
            twice.add(topic.id)
            deletable.pop(topic.id, None)
            message = "The provided topic name maps to an ID that was already supplied."
            rows.append(_row(name, topic.id, ErrorCode.INVALID_REQUEST, message))
        else:
            deletable[topic.id] = topic
    return rows, list(deletable.values())


def _row(
    name: str | None, topic_id: UUID | None, error: ErrorCode = ErrorCode.NONE, message: str | None = None
) -> _Row:
    return _Row(name=name, topic_id=topic_id, error_code=error, error_message=message)


guard = open_to_all
