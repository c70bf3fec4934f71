"""StreamsGroupHeartbeat (88, v0): keeps a member alive and returns its tasks (KIP-1071).

A group's missing internal topics are created at its client's request, with its rights.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial

from loadwise.coordinator.apis import create_topics_19 as create_topics
from loadwise.coordinator.calls.call import Call, GroupRequest
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.brokers import INTERNAL_TOPICS
from loadwise.coordinator.cluster.topics import is_topic_name
from loadwise.coordinator.handling.access import Access
from loadwise.coordinator.handling.member_heartbeats import blank, guarding
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.streams.feature import StreamsGroups
from loadwise.coordinator.streams.heartbeat import EndpointPartitions, StreamsHeartbeat, StreamsHeartbeatReply
from loadwise.coordinator.streams.topology import (
    CopartitionGroup,
    Endpoint,
    InternalTopic,
    StatusCode,
    Subtopology,
    Task,
    Tasks,
    Topology,
    by_subtopology,
)
from loadwise.coordinator.turns import whole
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import (
    CreateTopicsRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from loadwise.protocol.messages import Api

_Request = StreamsGroupHeartbeatRequest
_Response = StreamsGroupHeartbeatResponse
_CreateTopics = CreateTopicsRequest
_JOIN, _LEAVE_FOR_NOW = 0, -2
_BROKERS_DEFAULT = -1
_PROHIBITED = {*INTERNAL_TOPICS, "__share_group_state"}
"""Kafka's internal topics, including the one that does not exist here."""
_MOST_TOLD = 3
"""Maximum number of failed topics that a status names."""


def handle(call: Call[StreamsGroupHeartbeatRequest], cluster: Cluster) -> StreamsGroupHeartbeatResponse | GroupRequest:
    """Check what does not depend on the group, then pass the event to it."""
    body = call.body
    named = _topics(call)
    if isinstance(named, _Response):
        return named
    problem = _unsupported(body) or _problem(body)
    if problem is not None:
        return _refused(call, ErrorCode.INVALID_REQUEST, problem)
    problem = _topology_problem(body.topology)
    if problem is not None:
        return _refused(call, ErrorCode.STREAMS_INVALID_TOPOLOGY, problem)
    owned = (body.active_tasks, body.standby_tasks, body.warmup_tasks)
    endpoint = body.user_endpoint
    event = StreamsHeartbeat(
        token=call.token,
        member_id=body.member_id,
        epoch=body.member_epoch,
        endpoint_epoch=body.endpoint_information_epoch,
        rack=body.rack_id,
        rebalance_timeout_ms=None if body.rebalance_timeout_ms == -1 else body.rebalance_timeout_ms,
        topology=None if body.topology is None else _topology(body.topology),
        owned=None if None in owned else Tasks(*(_tasks(tasks or ()) for tasks in owned)),
        process_id=body.process_id,
        endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        tags=None if body.client_tags is None else _pairs(body.client_tags),
        repeats_config=body.topology is not None and any(map(_is_any_twice, _all_configs(body.topology))),
        repeats_tag=_is_any_twice(body.client_tags or ()),
        shuts_down=body.shutdown_application,
        client_id=call.request.client_id or "",
        client_host=call.client_host,
    )
    return GroupRequest(body.group_id, event, partial(_respond, cluster))


def _topics(call: Call[StreamsGroupHeartbeatRequest]) -> Iterable[str] | _Response:
    """Return a topology's topics, or the error if it names a forbidden one."""
    if call.body.topology is None:
        return ()
    names = dict.fromkeys(
        name
        for each in call.body.topology.subtopologies
        for name in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(topic.name for topic in (*each.repartition_source_topics, *each.state_changelog_topics)),
        )
    )
    internal = ",".join(name for name in names if name in _PROHIBITED)
    if internal:
        message = f"Use of Kafka internal topics {internal} in a Kafka Streams topology is prohibited."
        return _refused(call, ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    invalid = [name for name in names if not is_topic_name(name)]
    if invalid:
        message = f"Topic names {','.join(invalid)} are not valid topic names."
        return _refused(call, ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    return names


def _unsupported(body: StreamsGroupHeartbeatRequest) -> str | None:
    """Return what Apache Kafka 4.3 does not support yet.

    Mirrors ``throwIf…IsUsingUnsupportedFeatures``.
    """
    if body.instance_id is not None:
        return "Static membership is not yet supported."
    if body.task_offsets is not None:
        return "TaskOffsets are not supported yet."
    if body.task_end_offsets is not None:
        return "TaskEndOffsets are not supported yet."
    if body.warmup_tasks:
        return "WarmupTasks are not supported yet."
    if body.topology is not None and any(each.source_topic_regex for each in body.topology.subtopologies):
        return "Regular expressions for source topics are not supported yet."
    return None


def _problem(body: StreamsGroupHeartbeatRequest) -> str | None:
    """Return what is wrong with the request. Mirrors ``throwIfStreamsGroupHeartbeatRequestIsInvalid``."""
    if problem := blank({"MemberId": body.member_id, "GroupId": body.group_id, "RackId": body.rack_id}):
        return problem
    owned = {"ActiveTasks": body.active_tasks, "StandbyTasks": body.standby_tasks, "WarmupTasks": body.warmup_tasks}
    if body.member_epoch == _JOIN:
        if body.rebalance_timeout_ms == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        for name, tasks in owned.items():
            if tasks is None or tasks:
                return f"{name} must be empty when (re-)joining."
        return "Topology must be non-null when (re-)joining." if body.topology is None else None
    if body.member_epoch == _LEAVE_FOR_NOW:
        return "InstanceId can't be null."
    if body.member_epoch < _LEAVE_FOR_NOW:
        return f"MemberEpoch is {body.member_epoch}, but must be greater than or equal to -2."
    if any(tasks is not None for tasks in owned.values()) and None in owned.values():
        return "If one task-type is non-null, all must be non-null."
    return None if body.topology is None else "Topology can only be provided when (re-)joining."


def _topology_problem(topology: _Request.Topology | None) -> str | None:
    for each in () if topology is None else topology.subtopologies:
        for topic in each.state_changelog_topics:
            if topic.partitions:
                return (
                    f"Changelog topic {topic.name} must have an undefined partition count, "
                    f"but it is set to {topic.partitions}."
                )
    return None


# ---- the group's event ----


def _topology(topology: _Request.Topology) -> Topology:
    subtopologies = sorted(map(_subtopology, topology.subtopologies), key=lambda each: each.id)
    return Topology(epoch=topology.epoch, subtopologies=tuple(subtopologies))


def _subtopology(row: _Request.Topology.Subtopology) -> Subtopology:
    return Subtopology(
        id=row.subtopology_id,
        source_topics=tuple(row.source_topics),
        source_topic_regex=tuple(row.source_topic_regex),
        repartition_sink_topics=tuple(row.repartition_sink_topics),
        repartition_source_topics=tuple(map(_internal_topic, row.repartition_source_topics)),
        state_changelog_topics=tuple(map(_internal_topic, row.state_changelog_topics)),
        copartition_groups=tuple(
            CopartitionGroup(
                source_topics=tuple(each.source_topics),
                source_topic_regex=tuple(each.source_topic_regex),
                repartition_source_topics=tuple(each.repartition_source_topics),
            )
            for each in row.copartition_groups
        ),
    )


def _internal_topic(row: _Request.Topology.Subtopology.TopicInfo) -> InternalTopic:
    return InternalTopic(
        name=row.name,
        partitions=row.partitions,
        replication_factor=row.replication_factor,
        configs=_pairs(row.topic_configs),
    )


def _pairs(rows: Iterable[_Request.KeyValue]) -> dict[str, str]:
    return {row.key: row.value for row in rows}


def _is_any_twice(rows: Collection[_Request.KeyValue]) -> bool:
    return len({row.key for row in rows}) < len(rows)


def _all_configs(topology: _Request.Topology) -> Iterator[Collection[_Request.KeyValue]]:
    for each in topology.subtopologies:
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics):
            yield topic.topic_configs


def _tasks(rows: Iterable[_Request.TaskIds]) -> frozenset[Task]:
    return frozenset(Task(row.subtopology_id, partition) for row in rows for partition in row.partitions)


# ---- the member's response ----


def _respond(cluster: Cluster, call: Call[StreamsGroupHeartbeatRequest], reply: StreamsHeartbeatReply) -> _Response:
    if reply.error is not ErrorCode.NONE:
        return _refused(call, reply.error, reply.message)
    statuses = [_Response.Status(status_code=status.code, status_detail=status.detail) for status in reply.statuses]
    if reply.missing_topics:
        about_them = next(each for each in statuses if each.status_code == StatusCode.MISSING_INTERNAL_TOPICS)
        about_them.status_detail += _make(call, cluster, reply.missing_topics, 2 * reply.heartbeat_interval_ms)
    roles = (None, None, None) if reply.assigned is None else tuple(map(_task_rows, reply.assigned))
    active, standby, warmup = roles
    return StreamsGroupHeartbeatResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        member_id=reply.member_id,
        member_epoch=reply.epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        status=statuses,
        active_tasks=active,
        standby_tasks=standby,
        warmup_tasks=warmup,
        endpoint_information_epoch=reply.endpoint_epoch,
        partitions_by_user_endpoint=None if reply.endpoints is None else list(map(_endpoint_row, reply.endpoints)),
    )


def _refused(call: Call[StreamsGroupHeartbeatRequest], error: ErrorCode, message: str | None) -> _Response:
    return StreamsGroupHeartbeatResponse(error_code=error, error_message=message, member_id="", status=[])


def _task_rows(tasks: Iterable[Task]) -> list[_Response.TaskIds]:
    return [
        _Response.TaskIds(subtopology_id=subtopology, partitions=partitions)
        for subtopology, partitions in by_subtopology(tasks).items()
    ]


def _endpoint_row(endpoint: EndpointPartitions) -> _Response.EndpointToPartitions:
    row = _Response.EndpointToPartitions
    host, port = endpoint.endpoint
    active, standby = (
        [row.TopicPartition(topic=topic, partitions=partitions) for topic, partitions in rows]
        for rows in (endpoint.active, endpoint.standby)
    )
    return row(user_endpoint=row.Endpoint(host=host, port=port), active_partitions=active, standby_partitions=standby)


# ---- internal topics ----


def _make(
    call: Call[StreamsGroupHeartbeatRequest], cluster: Cluster, topics: Sequence[InternalTopic], retry_ms: int
) -> str:
    """Create topics for a group with its client's rights; return the errors of earlier tries.

    As in Kafka, errors appear from the next heartbeat on. A failed topic is tried again after ``retry_ms``.
    """
    access = Access(call, cluster)
    if not access.may(Operation.CREATE, ResourceType.CLUSTER):
        forbidden = [topic.name for topic in topics if not access.may(Operation.CREATE, ResourceType.TOPIC, topic.name)]
        if forbidden:
            return f"; Unauthorized to CREATE on topics {', '.join(forbidden)}."
    failed = StreamsGroups.of(cluster).failed_topics.of((topic.name for topic in topics), cluster.now_ms)
    rows = [_creation(topic) for topic in topics if topic.name not in failed]
    if rows:
        api = Api.of("CreateTopics")
        body = _CreateTopics(topics=rows, timeout_ms=1, validate_only=False)
        request = call.request._replace(api=api, version=api.max_version, body=body)
        creation: Call = call._replace(request=request)
        for topic in whole(create_topics.handle(creation, cluster)).topics:
            if topic.error_code is not ErrorCode.NONE:
                StreamsGroups.of(cluster).failed_topics.add(
                    topic.name, topic.error_message or "", cluster.now_ms + retry_ms
                )
    if not failed:
        return ""
    told = ", ".join(f"{name} ({message})" for name, message in list(failed.items())[:_MOST_TOLD])
    more = len(failed) - _MOST_TOLD
    return f"; Creation failed: {told}{f' and {more} more' if more > 0 else ''}."


def _creation(topic: InternalTopic) -> _CreateTopics.CreatableTopic:
    row = _CreateTopics.CreatableTopic
    return row(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or _BROKERS_DEFAULT,
        assignments=[],
        configs=[row.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


guard = guarding(_topics)
