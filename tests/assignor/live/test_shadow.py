"""The lag under sticky, from the same arrivals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.algorithms.sticky import Sticky
from loadwise.assignor.live.events import Assigned
from loadwise.assignor.live.partitions import Partitions
from loadwise.assignor.live.shadow import Queues, Shadow, worked_off
from loadwise.assignor.live.tuning import ShadowTuning, Tuning
from loadwise.assignor.live.watched import Watched
from loadwise.assignor.model import NOBODY, Assignment, GroupSnapshot, Member

SPEED = 100.0


class Group:
    """A group that is read every five seconds."""

    def __init__(self, owner=(0, 0, 1, 1), members="ab"):
        self.shadow, self.partitions, self.now_s = Shadow(ShadowTuning()), Partitions(Tuning(), 6.0), 0
        self.end = np.zeros(len(owner))
        self.assign(owner, members)

    def assign(self, owner, members="ab", took_s=0.0, requested=False, topics=None):
        group = GroupSnapshot.of([Member(id=name, topics=["t"]) for name in members], topics or {"t": len(owner)})
        target = Assignment(group, np.array(owner, np.int32))
        event = Assigned(at_ms=self.now_s * 1000, target=target, generation=1, duration_ms=round(took_s * 1000))
        self.watched = Watched.of(event, self.partitions)
        self.shadow.assigned(event.duration_ms, requested=requested)

    def read(self, rates, readings=1, speed=SPEED, cost=1.0):
        for _ in range(readings):
            self.now_s += 5
            self.end = self.end + 5 * np.array(rates, float)
            self.shadow.read(
                self.watched,
                Queues(self.end, np.zeros(len(self.end)), np.full(len(self.end), cost)),
                np.full(len(self.watched.names), speed),
                self.now_s * 1000,
            )
        return self.shadow


def test_a_group_that_keeps_up_has_no_lag():
    shadow = Group().read([40, 40, 40, 40], 30)
    assert (shadow.lag_s, shadow.sticky_lag_s, shadow.saved_s) == (0, 0, 0)


def test_the_lag_of_the_worse_assignment_grows():
    """sticky has the partitions 0 and 2 at one member: 160/s of 100/s, and 60/s of 200/s are 0.3 s a second."""
    group = Group(owner=(0, 1, 1, 0))
    shadow = group.read([80, 0, 80, 40], 30)
    assert Sticky().assign(replace(group.watched.group, owner=np.full(4, NOBODY, np.int32))).owner.tolist() == [
        0,
        1,
        0,
        1,
    ]
    assert shadow.lag_s == pytest.approx(5 * 0.1 * np.mean(np.arange(30)), rel=0.3)
    assert shadow.sticky_lag_s == pytest.approx(5 * 0.3 * np.mean(np.arange(30)), rel=0.3)
    assert shadow.saved_s == shadow.sticky_lag_s - shadow.lag_s > 0
    assert not shadow.loses


def test_what_has_arrived_before_costs_change_is_not_counted_again():
    group = Group(owner=(0, 1, 1, 0))
    before = group.read([80, 0, 80, 40], 30).saved_s
    assert group.read([8, 0, 8, 4], 1, cost=10.0).saved_s == pytest.approx(before, abs=1.0)


def test_a_figure_needs_three_quarters_of_a_minute():
    group = Group()
    figures = [group.read([40, 40, 40, 40]).saved_s for _ in range(12)]
    assert figures == [None] * 9 + [0.0] * 3


def test_a_requested_rebalance_stops_this_group_alone():
    group = Group(owner=(0, 1, 0, 1))
    group.read([45, 45, 45, 45], 20)
    group.assign((0, 1, 0, 1), took_s=4.0, requested=True)
    shadow = group.read([45, 45, 45, 45])
    assert shadow.lag_s > shadow.sticky_lag_s == 0
    group.assign((0, 1, 0, 1), took_s=4.0)
    assert group.read([45, 45, 45, 45]).sticky_lag_s > 0


def test_members_that_come_are_members_of_both():
    group = Group(owner=(0, 0, 0, 0), members="a")
    group.read([60, 60, 60, 60], 10)
    before = group.shadow.sticky_lag_s
    group.assign((0, 1, 2, 3), members="abcd")
    shadow = group.read([60, 60, 60, 60], 200)
    assert shadow.lag_s == pytest.approx(shadow.sticky_lag_s)
    assert shadow.lag_s < before


def test_partitions_that_come_bring_no_lag():
    group = Group(owner=(0, 1))
    group.read([50, 50], 20)
    group.end = np.append(group.end, [10_000.0, 10_000.0])
    group.assign((0, 1, 0, 1))
    assert group.read([50, 50, 0, 0], 20).lag_s == 0


def test_without_capacities_there_is_no_figure():
    group = Group()
    group.read([90, 90, 10, 10], 30)
    group.shadow.forget()
    assert group.shadow.saved_s is None
    assert not group.shadow.loses
    assert group.read([90, 90, 10, 10], 1).saved_s is None


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.integers(-1, 3)), min_size=1, max_size=20),
    st.lists(st.floats(0, 1e6), min_size=4, max_size=4),
)
def test_members_work_off_no_more_than_they_can(partitions, capacity):
    waiting, owner = np.array([each for each, _ in partitions]), np.array([of for _, of in partitions], np.int32)
    left, most = worked_off(waiting, owner, np.array(capacity))
    assert (left >= 0).all()
    assert (left <= waiting).all()
    assert (left[owner == NOBODY] == waiting[owner == NOBODY]).all()
    for member, can in enumerate(capacity):
        mine = owner == member
        assert left[mine].sum() == pytest.approx(max(waiting[mine].sum() - can, 0), abs=1e-3)
        assert left[mine].sum() <= most + 1e-3
