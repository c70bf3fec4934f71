"""What a Kafka Streams application consists of (KIP-1071): its topology, which members bring, and its tasks.

A subtopology has as many tasks as the largest of its source topics has partitions. Each task has one active owner. It
may have standbys besides, which keep a copy of its state.
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
    """What a member has or should have, by role."""

    active: frozenset[Task] = _NONE
    standby: frozenset[Task] = _NONE
    warmup: frozenset[Task] = _NONE
    """Tasks whose state it prepares before it gets them. Apache Kafka 4.3 assigns none."""

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
        """The tasks of each role: active, standby, warm-up."""
        return iter((self.active, self.standby, self.warmup))


NO_TASKS = Tasks()


def by_subtopology(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """Partitions by subtopology, both in order."""
    partitions: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        partitions.setdefault(subtopology, []).append(partition)
    return partitions


class Endpoint(NamedTuple):
    """Where a member answers interactive queries (``application.server``)."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """A topic that the application has made for itself: a changelog, or one to repartition through."""

    name: str
    partitions: int = 0
    """How many it has to have; 0 where that follows from other topics, as always for changelogs."""
    replication_factor: int = 0
    """How many copies it is to have; 0 for the broker's default."""
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopartitionGroup:
    """Topics that need the same number of partitions, by their indices within the subtopology."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtopology:
    """A part of the topology that has tasks of its own."""

    id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    """Always empty: Apache Kafka 4.3 refuses regular expressions."""
    repartition_sink_topics: tuple[str, ...] = ()
    """Topics that it writes, for another subtopology to read."""
    repartition_source_topics: tuple[InternalTopic, ...] = ()
    state_changelog_topics: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    @property
    def is_stateful(self) -> bool:
        """Whether its tasks have state, and so may have standbys."""
        return bool(self.state_changelog_topics)

    def inputs(self) -> tuple[str, ...]:
        """All topics that it reads."""
        return (*self.source_topics, *(each.name for each in self.repartition_source_topics))


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """All subtopologies of an application."""

    epoch: int
    """Grows when the application is changed. Apache Kafka 4.3 takes no such change."""
    subtopologies: tuple[Subtopology, ...]
    """Sorted by id, so that topologies can be compared."""

    def subtopology_of(self) -> Mapping[str, str]:
        """The id of the subtopology that reads a topic, by the topic's name."""
        return {name: each.id for each in self.subtopologies for name in each.inputs()}

    def required_topics(self) -> set[str]:
        """All topics that have to be there, but for sinks, which are another's sources."""
        changelogs = {topic.name for each in self.subtopologies for topic in each.state_changelog_topics}
        return changelogs.union(*(each.inputs() for each in self.subtopologies))

    def size_bytes(self) -> int:
        """Bytes of all the texts in it, or nearly so."""
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

    def is_sound(self) -> bool:
        """Whether its parts have ids and names of their own, and refer to each other as they can."""
        ids = [each.id for each in self.subtopologies]
        return self.epoch >= 0 and len(set(ids)) == len(ids) and all(map(_is_sound, self.subtopologies))


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
    """What a group can tell its members beside their tasks (``StreamsGroupHeartbeatResponse.Status``)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Status(NamedTuple):
    """One thing that a group tells a member."""

    code: StatusCode
    detail: str
