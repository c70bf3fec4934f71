"""Which topics an application needs, and how many partitions they get; the numbers are worked out by hand."""

from __future__ import annotations

import pytest
from consumer_groups import FakeTopics
from streams_groups import internal, part, topology

from loadwise.coordinator.errors import InvalidTopologyError
from loadwise.coordinator.streams.configured_topology import ConfiguredTopology, configure
from loadwise.coordinator.streams.topology import StatusCode, Subtopology


def configured(*parts: Subtopology, **topics: int) -> ConfiguredTopology:
    return configure(topology(*parts), FakeTopics(**topics))


def missing(found: ConfiguredTopology) -> dict[str, int]:
    return {topic.name: topic.partitions for topic in found.missing}


def problem(found: ConfiguredTopology) -> tuple[StatusCode, str]:
    assert found.problem is not None
    assert (found.is_ready, found.missing) == (False, ())
    return found.problem


def test_a_changelog_has_a_partition_for_each_task() -> None:
    found = configured(part("0", "t", "u", changelogs=("c",)), t=3, u=5)
    assert (found.num_tasks, missing(found)) == ({"0": 5}, {"c": 5})
    assert configured(part("0", "t", changelogs=("c",)), t=3, c=3).is_ready
    _, detail = problem(configured(part("0", "t", changelogs=("c",)), t=3, c=4))
    assert detail == "Existing topic c has different number of partitions: expected 3, found 4"


def test_repartitioning_goes_on_through_several_subtopologies() -> None:
    parts = (
        part("0", "t", sinks=("r",)),
        part("1", repartitioned=(internal("r"),), sinks=("s",)),
        part("2", "u", repartitioned=(internal("s"),), changelogs=("c",)),
    )
    found = configured(*parts, t=4, u=2)
    assert found.num_tasks == {"0": 4, "1": 4, "2": 4}
    assert missing(found) == {"r": 4, "s": 4, "c": 4}
    fixed = (parts[0], part("1", repartitioned=(internal("r", 7),), sinks=("s",)), parts[2])
    assert configured(*fixed, t=4, u=2).num_tasks == {"0": 4, "1": 7, "2": 7}


def test_topics_that_are_joined_need_the_same_number_of_partitions() -> None:
    code, detail = problem(configured(part("0", "t", "u", together=(0, 1)), t=3, u=2))
    assert code is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert detail == "Following topics do not have the same number of partitions: [{t=3, u=2}]"
    joined = part("1", "u", repartitioned=(internal("r"),), together=(0,), together_with=(0,))
    assert missing(configured(part("0", "t", sinks=("r",)), joined, t=5, u=2)) == {"r": 2}
    fixed = part("1", "u", repartitioned=(internal("r", 3),), together=(0,), together_with=(0,))
    _, detail = problem(configured(part("0", "t", sinks=("r",)), fixed, t=5, u=2))
    assert detail == (
        "Number of partitions [3] of repartition topic [r] doesn't match number of partitions [2] of the source topic."
    )
    both = part("2", repartitioned=(internal("r"), internal("s")), together_with=(0, 1))
    assert missing(configured(part("0", "t", sinks=("r",)), part("1", "u", sinks=("s",)), both, t=5, u=2)) == {
        "r": 5,
        "s": 5,
    }


def test_sources_have_to_be_there() -> None:
    code, detail = problem(configured(part("0", "t", "a", "b", "c", "d", changelogs=("x",)), t=1))
    assert code is StatusCode.MISSING_SOURCE_TOPICS
    assert detail == "Source topics a, b, c and 1 additional topics are missing."


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((part("0", "t", repartitioned=(internal("r"),)),), "never used as a sink"),
        ((part("0", repartitioned=(internal("r"),), sinks=("r",)),), "loops"),
        ((part("0", changelogs=("c",)),), "No source topics"),
    ],
)
def test_what_no_topics_can_do_for_is_refused(parts: tuple[Subtopology, ...], message: str) -> None:
    with pytest.raises(InvalidTopologyError, match=message):
        configured(*parts, t=1)
