"""A Kafka Streams application (KIP-1071): its topology, which members send, and its tasks.

A subtopology has as many tasks as its largest source topic has partitions. Each task has one active owner, and may have
standbys, which keep a copy of its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class Task(NamedTuple):
    """One task: a subtopology on one partition of its source topics."""

    subtopology: str
    """The subtopology's id."""
    partition: int


_NONE: frozenset[Task] = frozenset()


@dataclass(frozen=True, slots=True)
class Tasks:
    """A member's tasks or target, by role."""

    active: frozenset[Task] = _NONE
    standby: frozenset[Task] = _NONE
    warmup: frozenset[Task] = _NONE
    """Tasks whose state it restores before it gets them. Apache Kafka 4.3 assigns none."""

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def __and__(self, other: Tasks) -> Tasks:
        return Tasks(self.active & other.active, self.standby & other.standby, self.warmup & other.warmup)

    def __sub__(self, other: Tasks) -> Tasks:
        return Tasks(self.active - other.active, self.standby - other.standby, self.warmup - other.warmup)

    def __or__(self, other: Tasks) -> Tasks:
        return Tasks(self.active | other.active, self.standby | other.standby, self.warmup | other.warmup)

    def __le__(self, other: Tasks) -> bool:
        return not self - other

    def __iter__(self) -> Iterator[frozenset[Task]]:
        """Return the tasks of each role: active, standby, warm-up."""
        return iter((self.active, self.standby, self.warmup))


NO_TASKS = Tasks()


def by_subtopology(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """Return partitions by subtopology, both sorted."""
    partitions: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        partitions.setdefault(subtopology, []).append(partition)
    return partitions


class Endpoint(NamedTuple):
    """The address for interactive queries of a member (``application.server``)."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """An internal topic of the application, for a changelog or a repartition."""

    name: str
    partitions: int = 0
    """Required number of partitions; 0 if it depends on other topics, as always for changelogs."""
    replication_factor: int = 0
    """Number of replicas; 0 for the broker's default."""
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopartitionGroup:
    """Topics that need the same number of partitions, by their indices within the subtopology."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtopology:
    """A part of the topology with its own tasks."""

    id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    """Always empty, because Apache Kafka 4.3 refuses regular expressions."""
    repartition_sink_topics: tuple[str, ...] = ()
    """Topics that it writes, which another subtopology reads."""
    repartition_source_topics: tuple[InternalTopic, ...] = ()
    state_changelog_topics: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    @property
    def is_stateful(self) -> bool:
        """Return whether its tasks have state, and may have standbys."""
        return bool(self.state_changelog_topics)

    def inputs(self) -> tuple[str, ...]:
        """Return all topics that it reads."""
        return (*self.source_topics, *(each.name for each in self.repartition_source_topics))


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """All subtopologies of an application."""

    epoch: int
    """Grows with changes of the application, which Apache Kafka 4.3 does not accept."""
    subtopologies: tuple[Subtopology, ...]
    """Sorted by id, so that topologies can be compared."""

    def subtopology_of(self) -> Mapping[str, str]:
        """Return the subtopology's id by the name of each topic that it reads."""
        return {name: each.id for each in self.subtopologies for name in each.inputs()}

    def required_topics(self) -> set[str]:
        """Return all topics that must exist, except sinks, which are other subtopologies' sources."""
        changelogs = {topic.name for each in self.subtopologies for topic in each.state_changelog_topics}
        return changelogs.union(*(each.inputs() for each in self.subtopologies))

    def size_bytes(self) -> int:
        """Return the approximate bytes of its texts."""
        internal = (
            topic
            for each in self.subtopologies
            for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
        )
        texts = (
            text for each in self.subtopologies for text in (each.id, *each.inputs(), *each.repartition_sink_topics)
        )
        configs = (text for topic in internal for pair in topic.configs.items() for text in (topic.name, *pair))
        return sum(map(len, texts)) + sum(map(len, configs))

    def has_ids(self) -> bool:
        """Return whether its epoch is valid, and the ids of its parts are unique."""
        ids = [each.id for each in self.subtopologies]
        return self.epoch >= 0 and len(set(ids)) == len(ids)

    def is_sound(self) -> bool:
        """Return whether also its parts have unique names and valid references."""
        return self.has_ids() and all(map(_is_sound, self.subtopologies))


def _is_sound(subtopology: Subtopology) -> bool:
    internal = (subtopology.repartition_source_topics, subtopology.state_changelog_topics)
    sources, repartitions = len(subtopology.source_topics), len(subtopology.repartition_source_topics)
    return (
        all(len({topic.name for topic in topics}) == len(topics) for topics in internal)
        and all(topic.partitions >= 0 for topics in internal for topic in topics)
        and all(
            all(0 <= index < sources for index in group.source_topics)
            and all(0 <= index < repartitions for index in group.repartition_source_topics)
            for group in subtopology.copartition_groups
        )
    )


class StatusCode(IntEnum):
    """A status that members get besides tasks (``StreamsGroupHeartbeatResponse.Status``)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Status(NamedTuple):
    """One status for a member."""

    code: StatusCode
    detail: str
