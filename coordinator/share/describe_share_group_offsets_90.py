"""DescribeShareGroupOffsets (90, v0 to v1): share groups' offsets (KIP-932). v1 lag (KIP-1226)."""

from __future__ import annotations

from collections.abc import Sequence

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.handling.access import Access, allowed, open_to_all
from loadwise.coordinator.handling.named_twice import Repeats
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.share.administration import fails
from loadwise.coordinator.share.feature import ShareGroups
from loadwise.coordinator.share.records import NO_START_OFFSET
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse

_Asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
_Group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
_Topic = _Group.DescribeShareGroupOffsetsResponseTopic
_Partition = _Topic.DescribeShareGroupOffsetsResponsePartition
_UNKNOWN = -1
_MAX_LAG = 2**63 - 1
"""The field's maximum, because an administrator may set any offset, even the smallest."""


def handle(call: Call[DescribeShareGroupOffsetsRequest], cluster: Cluster) -> Turns[DescribeShareGroupOffsetsResponse]:
    """Describe each group separately: the named partitions, or all with a state.

    As in Kafka, a missing group has no state and no error.
    """
    rows = []
    repeats = Repeats()
    for asked in call.body.groups:
        group = ShareGroups.of(cluster).shares.group(asked.group_id)
        yield
        partitions = 0
        if asked.topics is None and group is not None:
            state = group.hard_state
            partitions = sum(len(state.known(topic_id)) for topic_id in state.known_topics)
        if repeats.allow(asked.group_id, partitions):
            rows.append((yield from _describe(call, cluster, asked)))
        else:
            message = f"Group {asked.group_id} is named too often in one request."
            rows.append(
                _Group(group_id=asked.group_id, topics=[], error_code=ErrorCode.INVALID_REQUEST, error_message=message)
            )
    return DescribeShareGroupOffsetsResponse(groups=rows)


def _describe(call: Call[DescribeShareGroupOffsetsRequest], cluster: Cluster, asked: _Asked) -> Turns[_Group]:
    group = ShareGroups.of(cluster).shares.group(asked.group_id)
    access = Access(call, cluster)
    error = allowed(access, Operation.DESCRIBE, ResourceType.GROUP, asked.group_id)
    topics: list[_Topic] = []
    if error is not ErrorCode.NONE:
        pass
    elif not cluster.coordinates(call, asked.group_id):
        error = ErrorCode.NOT_COORDINATOR
    else:
        known: dict[str, Sequence[int]] = {}
        unknown: list[tuple[str, Sequence[int]]] = []
        for topic_id in sorted(group.hard_state.known_topics) if group is not None else ():
            topic = cluster.topics.get_by_id(topic_id)
            if (
                group is not None
                and topic is not None
                and access.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
            ):
                known[topic.name] = sorted(group.hard_state.known(topic_id))
        if asked.topics is not None:
            named: dict[str, dict[int, None]] = {}
            for each in asked.topics:
                yield
                if cluster.topics.get(each.topic_name) is None:
                    unknown.append((each.topic_name, each.partitions))
                else:
                    named.setdefault(each.topic_name, {}).update(dict.fromkeys(each.partitions))
            known = {name: list(numbers) for name, numbers in named.items()}
        for name, numbers in (*unknown, *known.items()):
            yield
            refused = allowed(access, Operation.DESCRIBE, ResourceType.TOPIC, name)
            if refused is ErrorCode.NONE and fails(cluster, asked.group_id, name, numbers):
                error = ErrorCode.UNKNOWN_SERVER_ERROR
                return _Group(group_id=asked.group_id, topics=[], error_code=error, error_message=None)
            topics.append((yield from _topic(cluster, asked.group_id, name, numbers, refused)))
    return _Group(group_id=asked.group_id, topics=topics, error_code=error, error_message=None)


def _topic(cluster: Cluster, group_id: str, name: str, numbers: Sequence[int], error: ErrorCode) -> Turns[_Topic]:
    topic = cluster.topics.get(name) if error is ErrorCode.NONE else None  # a forbidden topic is not described
    rows = []
    for number in numbers:
        yield
        start, lag, epoch = _UNKNOWN, _UNKNOWN, 0
        partition = cluster.topics.partition(name, number)
        state = None if topic is None else ShareGroups.of(cluster).shares.state(group_id, topic.id, number)
        if partition is not None and state is not None and state.start_offset != NO_START_OFFSET:
            start, epoch = state.start_offset, partition.leader_epoch
            lag = min(max(partition.log.end_offset - start - state.delivered, 0), _MAX_LAG)
        rows.append(
            _Partition(
                partition_index=number,
                start_offset=start,
                leader_epoch=epoch,
                lag=lag,
                error_code=error,
                error_message=None if error is ErrorCode.NONE else "Topic authorization failed.",
            )
        )
    return _Topic(topic_name=name, topic_id=None if topic is None else topic.id, partitions=rows)


guard = open_to_all
