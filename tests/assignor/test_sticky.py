"""Sticky against an exact reference that we did not write: a minimum-cost flow by networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from group_strategies import Group, groups
from hypothesis import given, settings

from loadwise.assignor.algorithms import transport
from loadwise.assignor.algorithms.sticky import Sticky
from loadwise.assignor.model import Assignment, GroupSnapshot, Member


def value(assignment: Assignment) -> tuple[int, int, int]:
    """What sticky keeps low, in this order: squared counts, rack mismatches, partitions taken from their owner."""
    group = assignment.group
    misplaced = 0
    for row, owner in enumerate(assignment.owner.tolist()):
        racks = None if group.partition_racks is None else group.partition_racks[row]
        rack = group.member_rack[owner]
        misplaced += racks is not None and racks.any() and rack >= 0 and not racks[rack]
    taken = (group.owner >= 0) & (group.owner != assignment.owner)
    return int((assignment.counts() ** 2).sum()), int(misplaced), int(taken.sum())


def best_value(group: GroupSnapshot) -> tuple[int, int, int]:
    graph = nx.DiGraph()
    unit = group.size + 1
    for row in range(group.size):
        graph.add_edge("source", ("row", row), capacity=1, weight=0)
        racks = None if group.partition_racks is None else group.partition_racks[row]
        for member in group.subscribers(int(group.topic_of[row])).tolist():
            rack = group.member_rack[member]
            misplaced = racks is not None and racks.any() and rack >= 0 and not racks[rack]
            taken = group.owner[row] not in (-1, member)
            graph.add_edge(("row", row), member, capacity=1, weight=int(misplaced) * unit + int(taken))
    for member in range(len(group.members)):
        for count in range(group.size):
            slot = ("slot", member, count)
            graph.add_edge(member, slot, capacity=1, weight=(2 * count + 1) * unit**2)
            graph.add_edge(slot, "sink", capacity=1, weight=0)
    cost = nx.cost_of_flow(graph, nx.max_flow_min_cost(graph, "source", "sink")) if group.size else 0
    return cost // unit**2, cost % unit**2 // unit, cost % unit


@settings(max_examples=60, deadline=None)
@given(group=groups(most=5))
def test_its_answer_is_the_best_there_is(group: Group) -> None:
    snapshot = group.snapshot()
    assert value(Sticky().assign(snapshot)) == best_value(snapshot)


def members(count: int, topics: list[str]) -> list[Member]:
    return [Member(id=f"m{i:03d}", topics=topics) for i in range(count)]


def test_a_leave_moves_only_what_the_member_owned() -> None:
    group = Group(tuple(members(10, ["t", "u"])), {"t": 53, "u": 40})
    group = group.owning(Sticky().assign(group.snapshot()))
    without = Group(group.members[1:], group.partitions).snapshot()
    answer = Sticky().assign(without)
    assert value(answer)[2] == 0
    assert sorted(answer.counts()) == [10] * 6 + [11] * 3


def test_one_that_owns_all_shares_with_many_newcomers() -> None:
    old = Member(id="m999", topics=["t"], owned={"t": range(1000)}, generation=1)
    answer = Sticky().assign(GroupSnapshot.of([*members(99, ["t"]), old], {"t": 1000}))
    assert answer.counts().tolist() == [10] * 100
    assert value(answer)[2] == 990


def test_the_rest_of_a_topic_is_spread_and_not_left_to_the_first_members() -> None:
    answer = Sticky().assign(GroupSnapshot.of(members(4, ["t"]), {"t": 8}))
    assert answer.by_member()["m000"] == {"t": [0, 4]}


def test_it_says_so_when_it_stops_before_the_proof(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transport, "WORK_LIMIT", 0)
    old = Member(id="m9", topics=["t"], owned={"t": range(100)}, generation=1)
    group = GroupSnapshot.of([*members(3, ["t", "u"]), old], {"t": 100, "u": 1})
    answer = Sticky().assign(group)
    assert "stopped before the assignment was proven best" in caplog.text
    assert (answer.owner >= 0).all()


@pytest.mark.parametrize(
    ("count", "units", "added"),
    [
        ([0, 0, 0], 4, [2, 1, 1]),
        ([5, 0, 3], 4, [0, 4, 0]),
        ([5, 0, 3], 5, [0, 4, 1]),
        ([2], 3, [3]),
        ([7, 7], 0, [0, 0]),
    ],
)
def test_levelling_up(count: list[int], units: int, added: list[int]) -> None:
    assert transport.level_up(np.array(count), units).tolist() == added
