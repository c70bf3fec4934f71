"""The endpoints (``application.server``) of members, for interactive queries.

Mirrors ``EndpointToPartitionsManager``. Each member gets the endpoints of all members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from loadwise.coordinator.groups.topic_view import TopicView
from loadwise.coordinator.streams.configured_topology import ConfiguredTopology
from loadwise.coordinator.streams.heartbeat import EndpointPartitions
from loadwise.coordinator.streams.state import StreamsMember
from loadwise.coordinator.streams.topology import Task, by_subtopology


def endpoint_partitions(
    members: Iterable[StreamsMember], configured: ConfiguredTopology, topics: TopicView
) -> list[EndpointPartitions]:
    """Return members' endpoints with the partitions of their tasks."""
    inputs = {each.id: each.inputs() for each in configured.subtopologies}
    return [
        EndpointPartitions(
            member.metadata.endpoint,
            _partitions(member.current.assigned.active, inputs, topics),
            _partitions(member.current.assigned.standby, inputs, topics),
        )
        for member in members
        if member.metadata.endpoint is not None
    ]


def _partitions(
    tasks: Iterable[Task], inputs: Mapping[str, Sequence[str]], topics: TopicView
) -> list[tuple[str, Sequence[int]]]:
    rows: list[tuple[str, Sequence[int]]] = []
    for subtopology, numbers in by_subtopology(tasks).items():
        for name in sorted(inputs.get(subtopology, ())):
            topic = topics.get(name)
            # As in Kafka, a topic with fewer partitions than the member has tasks is cut by their number.
            rows.append((name, numbers[: 0 if topic is None else len(topic.partitions)]))
    return rows
