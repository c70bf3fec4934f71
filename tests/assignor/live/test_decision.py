"""The decisions after readings of a small group, with exact rates."""

import math
from dataclasses import replace

import numpy as np
import pytest

from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.live.events import Assigned, Rebalancing, Said
from loadwise.assignor.live.reading import Position
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import CapacityTuning
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.model import Assignment, GroupSnapshot, Member

HEAVY = (600, 300, 0, 0)
"""Records/s of the partitions: member ``a`` has the first two."""


class Group:
    """Two members with two partitions each, and readings every five seconds."""

    def __init__(self, *, measured=(1000.0, 1000.0), names="ab", slack_s=1.0, **settings):
        self.watch = GroupWatch(LiveSettings(**settings), Weighted(), slack_s=slack_s, max_poll_s=300.0)
        group = GroupSnapshot.of([Member(id=name, topics=["t"]) for name in names], {"t": 4})
        owner = np.repeat(np.arange(len(names)), 4 // len(names)).astype(np.int32)
        self.target, self.now_s = Assignment(group, owner), 0
        self.watch.handle(Assigned(target=self.target, generation=3, at_ms=0, duration_ms=0))
        self.watch.knowledge.listen({name: Said(per_s=each) for name, each in zip(names, measured, strict=False)}, 0)
        self.end, self.done = np.zeros(4), np.zeros(4)

    def read(self, rates=HEAVY, processed=None, seconds=5):
        """A reading; all that arrives is processed unless other rates are given. Return the decision."""
        self.now_s += seconds
        self.end += np.array(rates) * seconds
        self.done += np.array(rates if processed is None else processed) * seconds
        positions = {("t", n): Position(int(self.end[n]), int(self.end[n] - self.done[n])) for n in range(4)}
        self.watch.knowledge.read(positions, self.now_s * 1000)
        return self.watch.decide(self.now_s * 1000)

    def reads(self, count, *args):
        return [self.read(*args) for _ in range(count)][-1]


def test_a_rebalance_is_requested_once_the_imbalance_has_cost_enough():
    group = Group()
    assert group.read() is None, "one reading shows no rate"
    decisions = [group.read() for _ in range(3)]
    assert [(each.ask, each.soon) for each in decisions] == [(False, True), (False, True), (True, False)]
    costs = "the imbalance has cost {} s of a member's work, a rebalance costs 2.0 s"
    assert [each.reason for each in decisions] == [costs.format("0.0"), costs.format("1.0"), "asking for a rebalance"]
    assert str(decisions[2]) == (
        "Generation 3: asking for a rebalance; 2 partitions move, 33% of the demand;"
        " a 900/s 90% -> 60%, b 0/s 0% -> 30%"
    )
    assert decisions[2].moved == [("t", 1), ("t", 2)]
    assert (decisions[2].generation, decisions[2].now_ms, decisions[2].members) == (3, 20_000, ("a", "b"))


@pytest.mark.parametrize(("gain", "asks"), [(0.2, True), (0.25, False)])
def test_the_gain_must_be_large_enough(gain, asks):
    assert Group(least_gain=gain).reads(8).ask is asks


def test_a_dry_run_only_says_so():
    assert Group(dry_run=True).reads(4).reason == "a rebalance would help"


def test_without_a_measured_capacity_there_is_no_utilisation():
    decision = Group(measured=()).reads(5)
    assert decision.reason.startswith("the capacity of members is not known")
    assert (decision.ask, decision.soon, decision.wanted, decision.missing) == (False, False, None, 0)
    assert str(decision).endswith("; a 900/s, b 0/s")


def test_the_effect_of_a_rebalance_is_that_on_the_loads_of_its_assignment():
    group = Group()
    moved = Assignment(
        replace(group.target.group, owner=group.target.owner, load=np.array([600.0, 300, math.nan, 0])),
        np.array([0, 1, 1, 1], np.int32),
    )
    decision = group.watch.handle(Assigned(target=moved, generation=4, at_ms=0, duration_ms=3000))
    assert decision.judgement.before.tolist() == pytest.approx([0.9, 0])
    assert decision.judgement.after.tolist() == pytest.approx([0.6, 0.3])
    assert "a rebalance costs 5.0 s" in group.reads(2, (0, 600, 300, 0)).reason, "its duration counts"


def test_the_imbalance_costs_from_the_reading_before_the_first_that_shows_utilisation():
    group = Group(measured=())
    group.reads(3)
    group.watch.knowledge.listen({name: Said(per_s=1000.0) for name in "ab"}, 15_000)
    assert "has cost 1.0 s" in group.read().reason


@pytest.mark.parametrize(("half_lives", "standstill", "asks"), [(0.999, 0.1, False), (1, 0.1, True), (1, 0, False)])
def test_a_member_that_an_old_measurement_leaves_empty_is_tried_within_the_budget(half_lives, standstill, asks):
    half_life_ms = CapacityTuning().half_life_ms
    watch = GroupWatch(LiveSettings(standstill=standstill), Weighted())
    members = [Member(id=name, topics=["t"]) for name in "abc"]
    group = GroupSnapshot.of(members, {"t": 4})
    group = replace(group, capacity=np.array([1000.0, 1000.0, 100.0]), capacity_known=np.ones(3, bool))
    watch.handle(
        Assigned(
            target=Assignment(group, np.array([0, 0, 1, 1], np.int32)),
            generation=1,
            at_ms=1000,
            duration_ms=0,
        )
    )
    watch.knowledge.listen(
        {name: Said(per_s=each) for name, each in (("a", 1000.0), ("b", 1000.0), ("c", 100.0))}, 1000
    )
    now_ms = round(1000 + half_lives * half_life_ms)
    for at_ms in (1000, now_ms):
        watch.knowledge.read({("t", number): Position(at_ms // 10, 0) for number in range(4)}, at_ms)
    decision = watch.decide(now_ms)
    assert decision.too_slow == ("c",)
    assert decision.ask is asks
    assert decision.reason.endswith("show their speed: c") is asks


def test_a_large_group_is_not_listed_in_full():
    group = GroupSnapshot.of([Member(id=f"m{number:02}", topics=["t"]) for number in range(14)], {"t": 2000})
    owner = np.arange(2000, dtype=np.int32) % 13
    watch = GroupWatch(LiveSettings(), Weighted())
    decision = watch.handle(
        Assigned(target=Assignment(group, owner), generation=1, at_ms=0, duration_ms=0, cause="cause")
    )
    assert str(decision).startswith("Generation 1: cause; m00 0/s, m01 0/s, ")
    assert str(decision).endswith("m11 0/s, and 2 more")
    assert (decision.ask, decision.exhausted, decision.waiting, decision.soon) == (False,) * 4


def test_one_reading_of_a_shift_is_not_enough_for_a_rebalance_but_for_an_early_reading():
    group = Group()
    group.reads(8, (100, 100, 100, 100))
    first, second = group.read((900, 900, 100, 100)), group.read((900, 900, 100, 100))
    assert (first.ask, first.soon, first.reason) == (False, True, "only one reading has shown it yet")
    assert second.ask


@pytest.mark.parametrize(
    ("rates", "measured", "missing", "wanted"),
    [
        ((250, 250, 250, 250), (1000.0, 1000.0), 0, 2),
        ((700, 700, 250, 250), (1000.0, 1000.0), 0, 3),  # it keeps up, but three members are healthy
        ((600, 600, 600, 600), (1000.0, 1000.0), 2, 4),
        ((600, 600, 600, 600), (1000.0,), 0, 4),  # the capacity of b is only presumed
    ],
)
def test_missing_members_are_counted_if_more_arrives_than_all_can_process(rates, measured, missing, wanted):
    group = Group(measured=measured, standstill=0)
    early = group.reads(4, rates)
    assert (early.missing, early.wanted) == (0, wanted), "a burst is over within half a minute"
    assert group.reads(5, rates).missing == missing


def test_the_log_line_of_a_small_group_has_its_load_and_what_it_lacks():
    line = Group().reads(9, (600, 600, 600, 600)).too_small
    assert "its load is 120% of the members' capacity, and 2 more" in line
    assert line.endswith("below 70%")


@pytest.mark.parametrize(
    ("processed", "overfull"),
    [
        ((1000, 0, 0, 0), (("t", 0), 1.5)),
        ((0, 0, 0, 0), None),  # the member stands still: its backlog says nothing
        ((1500, 0, 0, 0), None),
    ],
)
def test_a_partition_is_overfull_while_its_member_goes_on(processed, overfull):
    decision = Group().reads(6, (1500, 0, 0, 0), processed)
    assert decision.overfull == overfull
    assert decision.lag.tolist() == [30 * (1500 - processed[0]), 0]
    assert decision.too_heavy.startswith("t-0 alone gets 1.50 times" if overfull else "") is True
    assert bool(decision.too_heavy) is bool(overfull)


def test_a_member_that_stands_still_is_waited_for():
    group = Group()
    group.reads(3, (100, 100, 100, 100))
    decisions = [group.read((800, 800, 100, 100), (0, 0, 100, 100)) for _ in range(4)]
    assert decisions[-1].waiting
    assert "a for 15 s" in decisions[-1].reason
    assert not decisions[-1].ask


@pytest.mark.parametrize(("took_ms", "waiting"), [(1000, False), (6000, True)])
def test_a_member_that_stood_still_and_joined_at_once_is_not_waited_for(took_ms, waiting):
    group = Group()
    group.reads(3, (100, 100, 100, 100))
    group.reads(4, (800, 800, 100, 100), (0, 0, 100, 100))
    group.watch.handle(Rebalancing(at_ms=35_000))
    at_ms = 35_000 + took_ms
    group.watch.handle(Assigned(target=group.target, generation=4, at_ms=at_ms, duration_ms=took_ms))
    assert group.reads(6, (800, 800, 100, 100), (0, 0, 100, 100)).waiting is waiting


def test_a_used_up_budget_is_reported_once():
    group = Group(standstill=0)
    group.read()
    assert [group.read().exhausted for _ in range(5)] == [False, False, True, False, False]


def test_nothing_is_decided_while_the_group_rebalances():
    group = Group()
    group.reads(5)
    group.watch.handle(Rebalancing(at_ms=0))
    assert group.read() is None
    assert not group.watch.knowledge.leads
    assert group.watch.loads()["t"].tolist() == [600, 300, 0, 0]


def test_the_demand_of_an_assignment_has_the_backlog():
    """1,000 records/s are more than the group can process: its backlog is worked off in 30 s, or as soon as it can."""
    group = Group()
    group.reads(3, (600, 300, 0, 0), (500, 300, 0, 0))
    assert group.watch.loads()["t"].tolist() == pytest.approx([600 + 400 / 30, 300, 0, 0])


def test_members_get_their_learned_capacities():
    members = [Member(id="a", topics=["t"]), Member(id="b-1", instance_id="b", topics=["t"]), Member(id="c", topics=[])]
    watch = Group(measured=(1000.0, 300.0)).watch
    found = watch.knowledge.capacities(members, {"a": 0.0, "b-1": 0.0, "c": 0.5}, 0)
    assert [each.capacity for each in found[:2]] == [1000, 300]
    assert [each.capacity_known for each in found] == [True, True, True]
    unknown = watch.knowledge.capacities([Member(id="d", topics=["t"])], {"d": 0.0}, 0)
    assert (unknown[0].capacity, unknown[0].capacity_known) == (1.0, False)
    assert math.isfinite(found[2].capacity)
