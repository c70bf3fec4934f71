"""StreamsGroupDescribe (89, v0): streams groups with epochs, topology, members, tasks and targets (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.handling.group_descriptions import DESCRIBES_GROUPS, described_with_rights
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.streams.feature import StreamsGroups
from loadwise.coordinator.streams.group import StreamsGroup
from loadwise.coordinator.streams.state import StreamsMember
from loadwise.coordinator.streams.topology import NO_TASKS, InternalTopic, Subtopology, Task, Tasks, by_subtopology
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

_Group = StreamsGroupDescribeResponse.DescribedGroup
_Topology = _Group.Topology
_Subtopology = _Topology.Subtopology
_Member = _Group.Member
_HIDDEN = "The described group uses topics that the client is not authorized to describe."


def handle(call: Call[StreamsGroupDescribeRequest], cluster: Cluster) -> Turns[StreamsGroupDescribeResponse]:
    """Describe each group separately; one of another kind is not found."""
    find = StreamsGroups.of(cluster).group
    groups = yield from described_with_rights(
        call, cluster, _Group, kind="streams", find=find, describe=_describe, topics=_topics, hidden=_HIDDEN
    )
    return StreamsGroupDescribeResponse(groups=groups)


def _describe(_cluster: Cluster, group: StreamsGroup) -> Turns[_Group]:
    members = yield from listed(_member(group, member) for member in list(group.members.values()))
    state = group.hard_state
    return _Group(
        error_code=ErrorCode.NONE,
        error_message=None,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.generation,
        assignment_epoch=state.target.epoch,
        topology=_topology(group),
        members=members,
    )


def _topology(group: StreamsGroup) -> _Topology | None:
    topology, configured = group.hard_state.topology, group.configured
    if topology is None:
        return None
    is_ready = configured is not None and configured.is_ready
    rows = configured.subtopologies if configured is not None and is_ready else topology.subtopologies
    return _Topology(epoch=topology.epoch, subtopologies=[_subtopology(each) for each in rows])


def _subtopology(subtopology: Subtopology) -> _Subtopology:
    return _Subtopology(
        subtopology_id=subtopology.id,
        source_topics=sorted(set(subtopology.source_topics)),
        repartition_sink_topics=sorted(set(subtopology.repartition_sink_topics)),
        state_changelog_topics=_internal_topics(subtopology.state_changelog_topics),
        repartition_source_topics=_internal_topics(subtopology.repartition_source_topics),
    )


def _internal_topics(topics: Iterable[InternalTopic]) -> list[_Subtopology.TopicInfo]:
    row = _Subtopology.TopicInfo
    return [
        row(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[row.KeyValue(key=key, value=value) for key, value in topic.configs.items()],
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _member(group: StreamsGroup, member: StreamsMember) -> _Member:
    metadata = member.metadata
    endpoint = metadata.endpoint
    return _Member(
        member_id=member.member_id,
        member_epoch=member.current.epoch,
        instance_id=None,
        rack_id=metadata.rack,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        topology_epoch=metadata.topology_epoch,
        process_id=metadata.process_id,
        user_endpoint=None if endpoint is None else _Member.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[_Member.KeyValue(key=key, value=value) for key, value in metadata.tags.items()],
        task_offsets=[],
        task_end_offsets=[],
        assignment=_assignment(member.current.assigned),
        target_assignment=_assignment(group.hard_state.target.tasks.get(member.member_id, NO_TASKS)),
        is_classic=False,
    )


def _assignment(tasks: Tasks) -> _Member.Assignment:
    active, standby, warmup = map(_task_rows, tasks)
    return _Member.Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)


def _task_rows(tasks: Iterable[Task]) -> list[_Member.Assignment.TaskIds]:
    row = _Member.Assignment.TaskIds
    return [row(subtopology_id=each, partitions=numbers) for each, numbers in by_subtopology(tasks).items()]


def _topics(group: _Group) -> Iterable[str]:
    for each in () if group.topology is None else group.topology.subtopologies or ():
        yield from each.source_topics
        yield from each.repartition_sink_topics
        yield from (topic.name for topic in (*each.repartition_source_topics, *each.state_changelog_topics))


guard = DESCRIBES_GROUPS
