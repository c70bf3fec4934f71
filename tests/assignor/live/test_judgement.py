"""What a rebalance would change: the utilisation of members, and what no rebalance can mend."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from loadwise.assignor.live.capacity import Capacities
from loadwise.assignor.live.judgement import compare, judge, overfull, too_slow
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.model import NOBODY, RECORDS_PER_S, Assignment, GroupSnapshot, Member

SETTINGS = LiveSettings(healthy=0.5, least_gain=0.25)
SMALL = 0.125
"""Records/s may be few."""


def group_of(owner, *, partitions=None, members=None):
    """Members ``a``, ``b``, ... of one topic; ``owner`` has the owner of each partition."""
    members = members or [Member(id=name, topics=["t"]) for name in "abc"[: max(owner) + 1]]
    group = GroupSnapshot.of(members, partitions or {"t": len(owner)})
    return replace(group, owner=np.array(owner, np.int32))


def capacities(*per_s, known=True, reliable=True):
    of_all = np.ones(len(per_s), bool)
    return Capacities(np.array(per_s, float), known=known, proven=of_all, reliable=of_all & reliable)


class Called:
    """An assignor that keeps what it was given, and returns a fixed target."""

    def __init__(self, *target):
        self.target, self.groups = np.array(target, np.int32), []

    def assign(self, group):
        self.groups.append(group)
        return Assignment(group, self.target)


def test_a_judgement_compares_utilisation_before_and_after():
    group = group_of([0, 0, 0, 1, NOBODY])
    group = replace(group, load=np.array([10.0, 20.0, 30.0, 40.0, 5.0]))
    judged = compare(group, np.array([0, 1, 0, 1, 1], np.int32), capacities(100, 50))
    assert judged.demand.tolist() == [60, 40]
    assert judged.before.tolist() == [0.6, 0.8]
    assert judged.after.tolist() == [0.4, 1.3]
    assert (judged.worst, judged.best) == (0.8, 1.3)
    assert judged.moved.tolist() == [1], "a partition without an owner does not move"
    assert judged.moved_share == pytest.approx(20 / 105)
    assert judged.needed == pytest.approx(105 / 150)


def test_a_group_without_load_is_idle_and_one_without_known_capacity_has_no_need():
    group = group_of([0, 1])
    judged = compare(group, group.owner[::-1], capacities(1, 1, known=False))
    assert (judged.worst, judged.best, judged.moved_share) == (0.0, 0.0, 0.0)
    assert math.isnan(judged.needed)


@pytest.mark.parametrize(
    ("load", "per_s", "known", "called"),
    [
        ([1.5, 1.5, 0], (1, 1), True, True),  # 3.0 now, and 1.5 is possible
        ([0.5, 0.25, 0], (1, 1), True, True),  # exactly 0.25 above the healthy level
        ([0.5, 0.24, 0], (1, 1), True, False),
        ([1.5, 1.5, 0], (1, 1), False, False),
        ([0.5, 0.7, 0.8], (1, 1), True, False),  # 0.2 above the mean of all members
        ([1.25, 0.24, 0], (1, 1), True, False),  # 0.24 above what the heaviest partition needs
        ([1.25, 0.25, 0], (1, 1), True, True),
        ([1.25, 0.25, 0], (1, 4), True, True),  # the heaviest partition fits the faster member
    ],
)
def test_the_assignor_is_called_only_if_enough_can_be_gained(load, per_s, known, called):
    algorithm = Called(0, 1, 1)
    judged = judge(
        group_of([0, 0, 1]),
        np.array(load) * SMALL,
        capacities(*np.array(per_s) * SMALL, known=known),
        algorithm,
        SETTINGS,
    )
    assert bool(algorithm.groups) is called
    assert judged.moved.tolist() == ([1] if called else [])
    assert called or judged.after.tolist() == judged.before.tolist()


def test_the_assignor_gets_demand_and_capacities():
    algorithm = Called(0, 1, 1)
    group = group_of([0, 0, 1])
    of_users = replace(group, capacity_known=np.array([False, True]))
    of_readings = capacities(100, 200, reliable=np.array([True, False]))
    judge(of_users, np.array([90.0, math.nan, 60.0]), of_readings, algorithm, SETTINGS)
    [given] = algorithm.groups
    assert given.load.tolist() == [90, 75, 60], "an unknown load is presumed as the mean of its topic"
    assert given.capacity.tolist() == [100, 200]
    assert given.capacity_known.tolist() == [True, True]
    assert given.load_unit == RECORDS_PER_S


@pytest.mark.parametrize("partitions", [0, 2])
def test_a_group_without_any_known_load_is_idle(partitions):
    group = GroupSnapshot.of([Member(id=name, topics=["t"]) for name in "ab"], {"t": partitions})
    assert judge(group, np.full(partitions, math.nan), capacities(1, 1), Called(), SETTINGS).worst == 0


@pytest.mark.parametrize(
    ("owner", "capacity", "known", "found"),
    [
        ([0, 0, 1], (100, 100, 10), (True, True, True), [2]),
        ([0, 0, 1], (100, 100, 100), (True, True, True), []),  # as fast as the fastest
        ([0, 0, 1], (100, 100, 10), (True, True, False), []),  # its capacity is a guess
        ([0, 1, 2], (100, 100, 10), (True, True, True), []),  # it has a partition
        ([0, 1], (100, 100, 10), (True, True, True), []),  # there is one partition for each other member
    ],
)
def test_a_member_without_a_partition_is_too_slow_if_another_could_spare_one(owner, capacity, known, found):
    group = group_of(owner, members=[Member(id=name, topics=["t"]) for name in "abc"])
    group = replace(group, capacity=SMALL * np.array(capacity) / 100, capacity_known=np.array(known))
    assert too_slow(group).tolist() == found


def test_a_member_that_may_not_read_what_others_could_spare_is_not_too_slow():
    members = [Member(id="a", topics=["t"]), Member(id="b", topics=["u"]), Member(id="c", topics=["u"])]
    group = group_of([0, 0, 1], members=members, partitions={"t": 2, "u": 1})
    group = replace(group, capacity=np.array([100.0, 100.0, 10.0]), capacity_known=np.ones(3, bool))
    assert too_slow(group).tolist() == []


@pytest.mark.parametrize(
    ("rate", "waiting", "known", "found"),
    [
        ([2.5, 1.5], [0.9, 0.9], True, (("t", 0), 2.5)),
        ([2.5, 1.5], [0, 0.9], True, (("t", 1), 1.5)),  # without a backlog, its member is faster than it seems
        ([2.5, 1.5], [0, math.nan], True, None),
        ([1.0, math.nan], [0.9, 0.9], True, None),  # as many as the fastest member can process
        ([2.5, 1.5], [0.9, 0.9], False, None),
        ([0, 0], [0.9, 0.9], True, None),
    ],
)
def test_a_partition_is_overfull_if_it_has_a_backlog_and_more_arrivals_than_any_member_can_process(
    rate, waiting, known, found
):
    arrays = SMALL * np.array(rate), np.array(waiting)
    assert overfull(group_of([0, 1]), *arrays, capacities(SMALL, SMALL / 2, known=known)) == found


def test_no_partition_is_overfull_without_members():
    group = SimpleNamespace(name_of=None)
    assert overfull(group, np.empty(0), np.empty(0), capacities()) is None
