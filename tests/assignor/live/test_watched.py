"""The assignment under watch: the values of partitions, added up by member."""

import math

import numpy as np
import pytest

from loadwise.assignor.live.events import Assigned
from loadwise.assignor.live.partitions import Partitions
from loadwise.assignor.live.reading import Position
from loadwise.assignor.live.tuning import ActivityTuning, Tuning
from loadwise.assignor.live.watched import Watched, observe
from loadwise.assignor.model import NOBODY, Assignment, GroupSnapshot, Member

SLACK_S = 1.0
B, A, C = range(3)
"""Kafka's order: static members come first."""


class Group:
    """Member ``a`` owns t-0 and t-1, the static ``b`` u-0, ``c`` nothing; u-1 has no owner."""

    def __init__(self):
        members = [
            Member(id="a", topics=["t", "u"]),
            Member(id="b-1", instance_id="b", topics=["t", "u"]),
            Member(id="c", topics=["t", "u"]),
        ]
        group = GroupSnapshot.of(members, {"t": 2, "u": 2})
        self.partitions = Partitions(Tuning(), SLACK_S)
        self.partitions.index.add([("old", 0), ("u", 0)])
        target = Assignment(group, np.array([A, A, B, NOBODY], np.int32))
        event = Assigned(at_ms=1000, target=target, generation=7, duration_ms=0, stated={"b-1": 300.0})
        self.watched = Watched.of(event, self.partitions)

    def read(self, second, **positions):
        """A reading of t-0, t-1 and u-0, given as (end, lag); None if the broker is unreachable."""
        named = {"t0": ("t", 0), "t1": ("t", 1), "u0": ("u", 0)}
        given = {named[name]: Position(*each) for name, each in positions.items() if each is not None}
        columns = np.array(list(given.values()), float).reshape(-1, 4)
        self.partitions.read(given, columns, second * 1000)

    def seen(self, cost=1.0, slack_s=SLACK_S):
        return observe(self.watched, self.partitions.state, cost, slack_s, ActivityTuning())


def test_members_are_known_by_their_instance_ids():
    watched = Group().watched
    assert watched.names == ("b", "a", "c")
    assert watched.stated == {"a": 0.0, "b": 300.0, "c": 0.0}
    assert (watched.generation, watched.since_ms, watched.in_force) == (7, 1000, True)
    assert watched.too_slow == (), "the capacity of c is not known"


@pytest.mark.parametrize(
    ("partition", "owner"),
    [(("t", 0), "a"), (("t", 1), "a"), (("u", 0), "b"), (("u", 1), None), (("t", 2), None), (("old", 0), None)],
)
def test_a_partition_has_the_owner_of_the_assignment(partition, owner):
    assert Group().watched.owner_of(partition) == owner


def test_sums_are_by_member_without_unknown_values_and_other_partitions():
    group = Group()
    by_number = {("old", 0): 1000.0, ("t", 0): 1.0, ("t", 1): math.nan, ("u", 0): 4.0, ("u", 1): 100.0}
    array = group.partitions.index.array(by_number)
    np.testing.assert_equal(group.watched.of_group(array), [1, math.nan, 4, 100])
    assert group.watched.sums(array).tolist() == [4, 1, 0]


def test_processed_records_count_by_their_cost():
    group = Group()
    group.read(0, t0=(100, 60), t1=(100, 50), u0=(10, 10))
    group.read(5, t0=(100, 50), t1=(100, 30), u0=(10, 10))
    cost = group.partitions.index.of_topics({"t": 3.0}, 1.0)
    assert group.seen(cost).processed.tolist() == [0, 90, 0]
    assert group.seen().went_on.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("arrived", "lag", "lags"),
    [
        (0, 10, False),  # few records are no backlog, however slowly they arrive
        (0, 11, True),
        (100, 40, False),  # the arrivals of a commit, and of a second
        (100, 41, True),
        (100, 1000, True),
    ],
)
def test_a_member_lags_if_its_backlog_is_more_than_the_arrivals_of_a_second(arrived, lag, lags):
    group = Group()
    for number in range(3):
        group.read(5 * number, t0=(arrived * number, lag))
    assert group.seen().lagging.tolist() == [False, lags, False]


@pytest.mark.parametrize(
    ("t0_until", "t1_until", "slack_s", "saturated"),
    [
        (15, 15, 1, True),
        (10, 15, 1, True),  # it has stood still for no more than 5 s
        (5, 15, 1, False),
        (5, 15, 5, True),  # for no more than two commits
        (0, 15, 1, False),  # it never went on
        (5, 5, 1, True),  # the whole member stands still
    ],
)
def test_a_member_is_saturated_unless_its_backlog_stands_still_alone(t0_until, t1_until, slack_s, saturated):
    """At second 15; t-0 has a backlog, and both are processed until some second."""
    group = Group()
    for second in range(0, 20, 5):
        t0, t1 = 1000 + min(second, t0_until), min(second, t1_until)
        group.read(second, t0=(t0, 1000), t1=(t1, 0))
    assert group.seen(slack_s=slack_s).lagging[A]
    assert group.seen(slack_s=slack_s).saturated[A] == saturated


def test_the_backlog_of_an_unreachable_broker_says_nothing():
    group = Group()
    for second in (0, 5, 10):
        group.read(second, t0=(1000, 1000), u0=(1000, 1000))
    assert group.seen().lagging.tolist() == [True, True, False]
    group.read(15, t0=(1000, 1000), u0=None)
    assert group.seen().lagging.tolist() == [False, True, False]
