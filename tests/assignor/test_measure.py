"""Measuring assignments, and the bound that they are measured against."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from group_strategies import Group, groups
from hypothesis import given

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.measure import measure
from loadwise.assignor.model import Assignment, GroupSnapshot, Member


def test_the_numbers_of_a_small_group() -> None:
    members = [
        Member(id="a", topics=["t"], capacity=2.0, owned={"t": [0, 1]}, generation=1),
        Member(id="b", topics=["t"], owned={"t": [2]}, generation=1),
    ]
    group = GroupSnapshot.of(members, {"t": 4}, load={"t": [4.0, 2.0, 3.0, None]})
    m = measure(Assignment(group, np.array([0, 1, 1, 0], np.int32)))
    assert m.load.tolist() == [4.0, 5.0]
    assert m.count.tolist() == [2, 2]
    assert (m.highest, m.mean, m.bound) == (5.0, 3.0, 3.0)
    assert (m.max_over_mean, m.spread) == (5.0 / 3.0, 0)
    assert (m.moved, m.moved_load) == (1, 2.0)


def test_what_moved_since_an_earlier_round_counts_only_live_owners() -> None:
    def group(*ids: str, topics: tuple[str, ...] = ("t", "u")) -> GroupSnapshot:
        return GroupSnapshot.of([Member(id=id_, topics=topics) for id_ in ids], {"t": 3, "u": 1})

    before = Assignment(group("a", "b", "c"), np.array([0, 1, 2, 0], np.int32))
    after = Assignment(group("b", "c", "d"), np.array([1, 2, 1, 2], np.int32))  # a left; b's partition moves to d
    assert measure(after, previous=before).moved == 1
    narrowed = Assignment(group("a", "b", "c", topics=("u",)), np.array([1], np.int32))
    assert measure(narrowed, previous=before).moved == 1


def test_a_group_without_members_or_load_measures_as_perfect() -> None:
    empty = GroupSnapshot.of([], {"t": 3})
    m = measure(Assignment(empty, empty.owner))
    assert (m.max_over_mean, m.max_over_bound, m.spread, m.moved) == (1.0, 1.0, 0, 0)


@given(group=groups(most=3, racks=False))
def test_nothing_is_below_the_bound(group: Group) -> None:
    snapshot = group.snapshot()
    if snapshot.size > 7:
        snapshot = Group(
            group.members, {t: min(n, 2) for t, n in list(group.partitions.items())[:3]}, group.load
        ).snapshot()
    readers = [snapshot.subscribers(int(t)).tolist() for t in snapshot.topic_of]
    best = (
        min(measure(Assignment(snapshot, np.array(owners, np.int32))).highest for owners in product(*readers))
        if readers
        else 0.0
    )
    bound = measure(algorithm("sticky").assign(snapshot)).bound
    assert bound <= best * (1 + 1e-9)


def test_the_bound_is_reached_where_subscriptions_force_it() -> None:
    members = [
        Member(id="a", topics=["big", "small"]),
        Member(id="b", topics=["big"]),
        Member(id="c", topics=["small"]),
    ]
    load = {"big": [6.0] * 10, "small": [1.0] * 6}
    group = GroupSnapshot.of(members, {"big": 10, "small": 6}, load=load)
    assert measure(algorithm("weighted").assign(group)).bound == pytest.approx(30.0)
