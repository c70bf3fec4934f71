"""Sticky spreads every topic, where that costs neither balance nor racks nor what is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from group_strategies import Group, groups, value
from hypothesis import example, given

from loadwise.assignor.algorithms.sticky import Sticky, assignor
from loadwise.assignor.algorithms.sticky.transport import Transport
from loadwise.assignor.model import Assignment, Member


def unevenness(answer: Assignment) -> int:
    """Over all topics, the sum of the squared numbers that members have of it."""
    group = answer.group
    cell = group.topic_of * len(group.members) + answer.owner
    return int((np.bincount(cell[answer.owner >= 0]) ** 2).sum())


def test_as_kafka_asks_of_its_sticky_assignors() -> None:
    """``AbstractStickyAssignorTest``: two topics of 12 partitions with one member, then two, then three."""
    group = Group((), {"t1": 12, "t2": 12})
    for number in range(1, 4):
        group = replace(group, members=(*group.members, Member(id=f"m{number}", topics=["t1", "t2"])))
        answer = Sticky().assign(group.snapshot())
        for topics in answer.by_member().values():
            assert {topic: len(partitions) for topic, partitions in topics.items()} == dict.fromkeys(
                ("t1", "t2"), 12 // number
            )
        group = group.owning(answer)


def test_what_moves_is_spread_by_topic_where_subscriptions_differ() -> None:
    readers = tuple(Member(id=f"m{number}", topics=["a", "b", "c"]) for number in range(3))
    other = Member(id="other", topics=["d"])
    owned = {"a": range(6), "b": range(6), "c": range(6)}
    before = (replace(readers[0], owned=owned, generation=1), *readers[1:], other)
    answer = Sticky().assign(Group(before, {"a": 6, "b": 6, "c": 6, "d": 6}).snapshot()).by_member()
    for member in readers:
        assert {topic: len(partitions) for topic, partitions in answer[member.id].items()} == {"a": 2, "b": 2, "c": 2}


# Two partitions of a topic are on another rack: of the others alone, the topic would be uneven as a whole.
ON_TWO_RACKS = Group(
    tuple(Member(id=f"m{number}", topics=["a", "b"], rack=f"r{number}") for number in range(2)),
    {"a": 5, "b": 6},
    racks={"a": [[]] * 5, "b": [[], [], [], [], ["r0"], ["r0"]]},
)


@given(group=groups())
@example(group=ON_TWO_RACKS)
def test_no_topic_is_less_even_for_it_and_nothing_else_is_worse(group: Group) -> None:
    snapshot = group.snapshot()
    spread = Sticky().assign(snapshot)
    swap, assignor.spread_topics = assignor.spread_topics, lambda *_: None
    try:
        plain = Sticky().assign(snapshot)
    finally:
        assignor.spread_topics = swap
    assert value(spread) == value(plain)
    assert unevenness(spread) <= unevenness(plain)


@pytest.mark.parametrize(
    ("have", "owned", "pushed"),
    [
        ((5, 1), (0, 3), 2),  # the taker gets two of its own back; a third would be somebody else's
        ((5, 1), (4, 9), 1),  # the giver has one that was not its own
        ((5, 1), (5, 0), 5),  # all that it has are its own, and each costs the same
        ((3, 1), (0, 9), 3),
    ],
)
def test_a_cycle_is_cancelled_as_far_as_each_unit_costs_the_same(
    have: tuple[int, int], owned: tuple[int, int], pushed: int
) -> None:
    both = np.ones((1, 2), bool)
    problem = Transport(np.zeros(6, np.int32), np.array([6]), np.array([owned]), both, ~both)
    x = np.array([have])
    problem._cancel(x, [(0, 0, 1)])
    assert x.tolist() == [[have[0] - pushed, have[1] + pushed]]
