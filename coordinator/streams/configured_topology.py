"""Compares a topology with the existing topics: number of tasks, and topics to create.

Mirrors Kafka's ``InternalTopicManager``, ``RepartitionTopics``, ``CopartitionedTopicsEnforcer`` and
``ChangelogTopics``. All source topics must exist. A repartition topic gets as many partitions as its writer's largest
source topic, unless the application or its copartition group sets another number. A changelog gets one partition for
each task.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from loadwise.coordinator.errors import InvalidTopologyError
from loadwise.coordinator.groups.topic_view import TopicView
from loadwise.coordinator.streams.topology import (
    CopartitionGroup,
    InternalTopic,
    Status,
    StatusCode,
    Subtopology,
    Tasks,
    Topology,
)

_MOST_NAMED = 3
"""Maximum number of topics that a status names; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredTopology:
    """A topology with the existing topics."""

    subtopologies: tuple[Subtopology, ...] = ()
    """With the partition counts of internal topics; empty while these are unknown."""
    num_tasks: Mapping[str, int]
    """The number of tasks of each subtopology by id; empty like `subtopologies`."""
    missing: tuple[InternalTopic, ...] = ()
    """The internal topics to create."""
    problem: Status | None = None
    """Why no tasks can be assigned; None if they can."""

    @property
    def is_ready(self) -> bool:
        """Return whether all topics exist with the right number of partitions."""
        return self.problem is None

    def problem_of(self, owned: Tasks) -> str | None:
        """Return what is wrong with the tasks that a member reports."""
        for subtopology, partition in (task for of_role in owned for task in sorted(of_role)):
            count = self.num_tasks.get(subtopology)
            if count is None:
                return f"Subtopology {subtopology} does not exist in the topology."
            if not 0 <= partition < count:
                return (
                    f"Task {partition} for subtopology {subtopology} is invalid. "
                    f"Number of tasks for this subtopology: {count}"
                )
        return None


class _ProblemError(Exception):
    """The existing topics do not match the topology."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = Status(code, detail)


def configure(topology: Topology, topics: TopicView) -> ConfiguredTopology:
    """Configure a topology. Raises `InvalidTopologyError` if no topics could match it."""
    try:
        return _Configuration(topology, topics).result()
    except _ProblemError as problem:
        return ConfiguredTopology(num_tasks={}, problem=problem.status)


class _Configuration:
    def __init__(self, topology: Topology, topics: TopicView) -> None:
        self._subtopologies = topology.subtopologies
        self._topology = topology
        found = ((name, topics.get(name)) for name in topology.required_topics())
        self._existing = {name: len(topic.partitions) for name, topic in found if topic is not None}
        self._decided: dict[str, int] = {}
        """Computed partition counts of internal topics, by name."""

    def result(self) -> ConfiguredTopology:
        sources = {name for each in self._subtopologies for name in each.source_topics}
        absent = sorted(sources - self._existing.keys())
        if absent:
            detail = f"Source topics {_summary(absent)} are missing."
            raise _ProblemError(StatusCode.MISSING_SOURCE_TOPICS, detail)
        self._decided.update(self._repartition_counts())
        self._enforce_copartitioning()
        num_tasks = {each.id: self._num_tasks(each) for each in self._subtopologies}
        for each in self._subtopologies:
            self._decided.update((topic.name, num_tasks[each.id]) for topic in each.state_changelog_topics)
        configured = tuple(map(self._configured, self._subtopologies))
        missing = self._missing(configured)
        problem = None
        if missing:
            detail = f"Internal topics are missing: {_summary([topic.name for topic in missing])}"
            problem = Status(StatusCode.MISSING_INTERNAL_TOPICS, detail)
        return ConfiguredTopology(subtopologies=configured, num_tasks=num_tasks, missing=missing, problem=problem)

    def _count(self, name: str) -> int:
        """Return the current or future partition count of a topic."""
        return self._existing[name] if name in self._existing else self._decided[name]

    def _num_tasks(self, subtopology: Subtopology) -> int:
        counts = list(map(self._count, subtopology.inputs()))
        if not counts:
            raise InvalidTopologyError(f"No source topics found for subtopology {subtopology.id}")
        return max(counts)

    # ---- repartition topics ----

    def _repartition_counts(self) -> dict[str, int]:
        sources = [topic for each in self._subtopologies for topic in each.repartition_source_topics]
        counts = {topic.name: topic.partitions for topic in sources if topic.partitions}
        open_sinks = [(each, name) for each in self._subtopologies for name in each.repartition_sink_topics]
        while open_sinks := [(each, name) for each, name in open_sinks if name not in counts]:
            before = len(counts)
            for each, name in open_sinks:
                known = [counts[topic.name] for topic in each.repartition_source_topics if topic.name in counts]
                known += [self._existing[source] for source in each.source_topics]
                if known:
                    counts[name] = max(known)
            if len(counts) == before:
                raise InvalidTopologyError(
                    "Failed to compute number of partitions for all repartition topics. "
                    "There may be loops in the topology that cannot be resolved."
                )
        if any(topic.name not in counts for topic in sources):
            raise InvalidTopologyError(
                "Failed to compute number of partitions for all repartition topics, because "
                "a repartition source topic is never used as a sink topic."
            )
        return counts

    def _enforce_copartitioning(self) -> None:
        sources = [topic for each in self._subtopologies for topic in each.repartition_source_topics]
        fixed = {topic.name for topic in sources if topic.partitions}
        flexible = {topic.name for topic in sources if not topic.partitions}
        for each in self._subtopologies:
            for group in each.copartition_groups:
                self._decided.update(self._copartitioned(_names(each, group), fixed, flexible))

    def _copartitioned(self, names: Collection[str], fixed: set[str], flexible: set[str]) -> dict[str, int]:
        """Return the partition counts of a group's internal topics."""
        counts = {name: self._count(name) for name in names}
        internal = {name: count for name, count in counts.items() if name in fixed or name in flexible}
        external = {name: count for name, count in counts.items() if name not in internal}
        if not counts:
            return {}
        if external:
            number = _same(external.values(), external)
        elif fixed:
            # Like Kafka, count all topics with a fixed number, also those of other groups.
            number = _same([self._count(name) for name in sorted(fixed)], internal)
        else:
            number = max(internal.values())
        for name, count in internal.items():
            if name in fixed and count != number:
                detail = (
                    f"Number of partitions [{count}] of repartition topic [{name}] "
                    f"doesn't match number of partitions [{number}] of the source topic."
                )
                raise _ProblemError(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
        return dict.fromkeys(internal, number)

    # ---- results ----

    def _configured(self, subtopology: Subtopology) -> Subtopology:
        return replace(
            subtopology,
            repartition_source_topics=tuple(map(self._with_partitions, subtopology.repartition_source_topics)),
            state_changelog_topics=tuple(map(self._with_partitions, subtopology.state_changelog_topics)),
        )

    def _with_partitions(self, topic: InternalTopic) -> InternalTopic:
        return topic if topic.partitions else replace(topic, partitions=self._decided[topic.name])

    def _missing(self, configured: Iterable[Subtopology]) -> tuple[InternalTopic, ...]:
        internal = {
            topic.name: topic
            for each in configured
            for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
        }
        for name, topic in sorted(internal.items()):
            found = self._existing.get(name, topic.partitions)
            if found != topic.partitions:
                detail = (
                    f"Existing topic {name} has different number of partitions: "
                    f"expected {topic.partitions}, found {found}"
                )
                raise _ProblemError(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
        return tuple(topic for name, topic in sorted(internal.items()) if name not in self._existing)


def _names(subtopology: Subtopology, group: CopartitionGroup) -> set[str]:
    return {
        *(subtopology.source_topics[index] for index in group.source_topics),
        *(subtopology.repartition_source_topics[index].name for index in group.repartition_source_topics),
    }


def _same(counts: Iterable[int], told: Mapping[str, int]) -> int:
    numbers = set(counts)
    if len(numbers) > 1:
        topics = ", ".join(f"{name}={count}" for name, count in sorted(told.items()))
        detail = f"Following topics do not have the same number of partitions: [{{{topics}}}]"
        raise _ProblemError(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return numbers.pop()


def _summary(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} additional topics" if more > 0 else shown
