"""OffsetFetch (9, v1 to v10): returns groups' committed offsets.

v2 null: all partitions; v3 throttle time; v5 leader epoch; v6 flexible; v7 require_stable (KIP-447):
UNSTABLE_OFFSET_COMMIT if an open transaction may change the offset; v8 several groups at once (KIP-709); v9 member and
epoch, KIP-848; v10 topics by id (KIP-516).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from loadwise.coordinator.calls.call import Call, Outcome
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.handling.access import Access, with_body
from loadwise.coordinator.handling.named_twice import Repeats
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import OffsetFetchRequest, OffsetFetchResponse

_ERROR_OF_ALL = 2
_REQUIRE_STABLE = 7
_MANY_GROUPS = 8
_MEMBERS = 9
_BY_ID = 10
_NOTHING = CommittedOffset(-1, -1, "")
_Topic = OffsetFetchResponse.OffsetFetchResponseTopic
_Group = OffsetFetchResponse.OffsetFetchResponseGroup
_GroupTopic = _Group.OffsetFetchResponseTopics
_AskedGroup = OffsetFetchRequest.OffsetFetchRequestGroup
_Answered = TypeVar("_Answered", _Topic, _GroupTopic)
_Row = TypeVar("_Row")


class _Offsets(NamedTuple):
    committed: Mapping[Partition, CommittedOffset]
    unstable: Container[Partition]
    """Partitions without a result, because an open transaction may change the offset."""

    @classmethod
    def of(cls, call: Call[OffsetFetchRequest], cluster: Cluster, group_id: str) -> _Offsets:
        """Return the offsets that this call may see."""
        wants_stable = call.version >= _REQUIRE_STABLE and call.body.require_stable
        unstable = cluster.groups.pending_offsets.of(group_id) if wants_stable else ()
        return cls(cluster.groups.offsets.of(group_id), unstable)


def handle(call: Call[OffsetFetchRequest], cluster: Cluster) -> Turns[OffsetFetchResponse]:
    """Look up each group's partitions; one without a commit, or in a missing group, has offset -1."""
    body = call.body
    if call.version < _MANY_GROUPS:
        if not cluster.coordinates(call, body.group_id):
            return _refused(call, ErrorCode.NOT_COORDINATOR)
        topics = yield from _of_one_group(call, cluster)
        return OffsetFetchResponse(topics=topics, error_code=ErrorCode.NONE)
    groups = yield from _answered_groups(call, cluster)
    return OffsetFetchResponse(groups=groups)


def _answered_groups(call: Call[OffsetFetchRequest], cluster: Cluster) -> Turns[list[_Group]]:
    """Return a row for each named group."""
    rows = []
    repeats = Repeats()
    for group in call.body.groups:
        partitions = 0 if group.topics is not None else len(cluster.groups.offsets.of(group.group_id))
        if repeats.allow(group.group_id, partitions):
            rows.append((yield from _answered(call, cluster, group)))
        else:
            rows.append(_Group(group_id=group.group_id, topics=[], error_code=ErrorCode.INVALID_REQUEST))
        yield
    return rows


def _answered(call: Call[OffsetFetchRequest], cluster: Cluster, group: _AskedGroup) -> Turns[_Group]:
    error = ErrorCode.NONE
    if not cluster.coordinates(call, group.group_id):
        error = ErrorCode.NOT_COORDINATOR
    elif call.version >= _MEMBERS:
        error = cluster.groups.fetch_error(group.group_id, group.member_id, group.member_epoch)
    topics: list[_GroupTopic] = []
    if error is ErrorCode.NONE:
        topics = yield from _of_group(call, cluster, group)
    return _Group(group_id=group.group_id, topics=topics, error_code=error)


def _refused(call: Call[OffsetFetchRequest], error: ErrorCode) -> OffsetFetchResponse:
    """Return the error of a request for one group, which before v2 is in each partition."""
    topics = []
    nothing = _Offsets({}, ())
    if call.version < _ERROR_OF_ALL:
        row = _Topic.OffsetFetchResponsePartition
        topics = [
            _Topic(
                name=topic.name,
                partitions=list(_partitions(row, nothing, topic.name, topic.partition_indexes, error)),
            )
            for topic in call.body.topics or ()
        ]
    return OffsetFetchResponse(topics=topics, error_code=error)


def _of_one_group(call: Call[OffsetFetchRequest], cluster: Cluster) -> Turns[list[_Topic]]:
    body = call.body
    offsets = _Offsets.of(call, cluster, body.group_id)
    row = _Topic.OffsetFetchResponsePartition
    if body.topics is None:
        wanted = yield from _by_topic(offsets.committed)
    else:
        wanted = [(topic.name, topic.partition_indexes) for topic in body.topics]
    topics = []
    for name, numbers in wanted:
        partitions = yield from listed(_partitions(row, offsets, name, numbers))
        topics.append(_Topic(name=name, partitions=partitions))
        yield
    return topics


def _of_group(call: Call[OffsetFetchRequest], cluster: Cluster, group: _AskedGroup) -> Turns[list[_GroupTopic]]:
    offsets = _Offsets.of(call, cluster, group.group_id)
    row = _GroupTopic.OffsetFetchResponsePartitions
    topics = []
    if group.topics is None:
        for name, numbers in (yield from _by_topic(offsets.committed)):
            yield
            found = cluster.topics.get(name)
            if found is not None:
                partitions = yield from listed(_partitions(row, offsets, name, numbers))
                topics.append(_GroupTopic(name=name, topic_id=found.id, partitions=partitions))
        return topics
    for topic in group.topics:
        error = ErrorCode.NONE
        name = topic.name
        if call.version >= _BY_ID:
            found = cluster.topics.get_by_id(topic.topic_id)
            error = ErrorCode.UNKNOWN_TOPIC_ID if found is None else ErrorCode.NONE
            name = "" if found is None else found.name
        partitions = yield from listed(_partitions(row, offsets, name, topic.partition_indexes, error))
        topics.append(_GroupTopic(name=name, topic_id=topic.topic_id, partitions=partitions))
        yield
    return topics


def _by_topic(committed: Mapping[Partition, CommittedOffset]) -> Turns[list[tuple[str, Sequence[int]]]]:
    by_topic: dict[str, list[int]] = {}
    for partition in list(committed):
        by_topic.setdefault(partition.topic, []).append(partition.number)
        yield
    return list(by_topic.items())


def _partitions(
    row: Callable[..., _Row],
    offsets: _Offsets,
    topic: str,
    numbers: Iterable[int],
    error: ErrorCode = ErrorCode.NONE,
) -> Iterator[_Row]:
    for number in numbers:
        partition = Partition(topic, number)
        is_unstable = error is ErrorCode.NONE and partition in offsets.unstable
        found = _NOTHING if is_unstable else offsets.committed.get(partition, _NOTHING)
        yield row(
            partition_index=number,
            committed_offset=found.offset,
            committed_leader_epoch=found.leader_epoch,
            metadata=found.metadata,
            error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT if is_unstable else error,
        )


def guard(call: Call[OffsetFetchRequest], cluster: Cluster, _: Handler) -> Turns[Outcome]:
    """Refuse groups that the client may not describe, and such topics in the others."""
    access = Access(call, cluster)
    if call.version < _MANY_GROUPS:
        if not access.may(Operation.DESCRIBE, ResourceType.GROUP, call.body.group_id):
            return _refused(call, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        response = yield from handle(call, cluster)
        if response.error_code is ErrorCode.NONE:
            response.topics = yield from _visible(access, call.body.topics, response.topics)
        return response
    forbidden = yield from listed(
        not access.may(Operation.DESCRIBE, ResourceType.GROUP, each.group_id) for each in call.body.groups
    )
    allowed = [each for each, is_forbidden in zip(call.body.groups, forbidden, strict=True) if not is_forbidden]
    response = yield from handle(with_body(call, {"groups": allowed}), cluster)
    answered = iter(response.groups)
    response.groups = []
    for each, is_forbidden in zip(call.body.groups, forbidden, strict=True):
        yield
        if is_forbidden:
            group = _Group(group_id=each.group_id, topics=[], error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        else:
            group = next(answered)
            if group.error_code is ErrorCode.NONE:
                group.topics = yield from _visible(access, each.topics, group.topics)
        response.groups.append(group)
    return response


def _visible(access: Access, asked: Sequence[object] | None, topics: Sequence[_Answered]) -> Turns[list[_Answered]]:
    """Return the rows of topics that the client may describe; other named ones get an error."""
    visible = []
    for topic in topics:
        yield
        # Without a name the id was unknown, and already has its error.
        if not topic.name or access.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            visible.append(topic)
        elif asked is not None:
            for each in topic.partitions:
                each.committed_offset = each.committed_leader_epoch = _NOTHING.offset
                each.metadata = ""
                each.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            visible.append(topic)
    return visible
