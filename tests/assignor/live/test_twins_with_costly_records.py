"""Identical members that read different mixes of cheap and costly records come out as identical."""

import random
from unittest.mock import Mock

import numpy as np
import pytest
from test_leader import Group

from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.live.events import Assigned
from loadwise.assignor.live.reading import Position
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.live.work import BusyTime
from loadwise.assignor.model import Assignment, GroupSnapshot, Member
from loadwise.protocol.live_notes import MemberNotes, checksum

SECOND_NS = 1_000_000_000
SPEED, COST = 1400.0, 10
RATES = [75.0] * 12 + [45.0] * 2
"""Of the partitions of the topics cheap and costly."""
TIMES = {"cheap": 1 / SPEED, "costly": COST / SPEED}
COSTLY_FIRST = [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0, 2]
COSTLY_LAST = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 2]
"""Who owns each partition: the first member has one of the costly ones and few others, or the second one."""
MIXED = [0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 0, 1]
"""The first two have records of both topics, and the third has cheap ones alone."""
NAMES = ("a", "b", "c")


class Machine:
    """What a member of a group measures on a machine that stands still now and then for a moment."""

    def __init__(self, seed, *, slower=1.0):
        self.busy, self._draw, self._slower = BusyTime(), random.Random(seed), slower
        self._now_ns, self._late_ns = 0, 0

    def work(self, rates, seconds):
        """Polls five times a second, each giving what has come since the last one."""
        end_ns = self._now_ns + seconds * SECOND_NS
        since_ns = self._now_ns
        while self._now_ns < end_ns:
            self.busy.polls(self._now_ns)
            self._now_ns += SECOND_NS // 5
            elapsed_s, since_ns = (self._now_ns - since_ns) / SECOND_NS, self._now_ns
            given = {topic: self._came(rate * elapsed_s) for topic, rate in rates.items()}
            given = {topic: count for topic, count in given.items() if count > 0}
            self.busy.given(given, self._now_ns)
            work_s = self._slower * sum(count * TIMES[topic] for topic, count in given.items())
            stood_s = self._draw.uniform(0.1, 0.3) * (self._draw.random() < work_s / 0.9)
            self._now_ns += round((work_s + stood_s) * SECOND_NS)
        self.busy.polls(self._now_ns)

    def _came(self, mean):
        return max(round(self._draw.gauss(mean, mean**0.5)), 0)


def rates_of(owner, member):
    mine = [rate if each == member else 0.0 for rate, each in zip(RATES, owner, strict=True)]
    return {"cheap": sum(mine[:12]), "costly": sum(mine[12:])}


def assigned(watch, owner, *, generation=1, began_ms=0):
    topics = {"cheap": 12, "costly": 2} if len(owner) == len(RATES) else {"cheap": 12}
    group = GroupSnapshot.of([Member(id=name, topics=list(topics)) for name in NAMES], topics)
    partitions = Assignment(group, np.array(owner, np.int32))
    watch.handle(Assigned(target=partitions, generation=generation, at_ms=began_ms + 1, duration_ms=100))


def read(watch, now_ms):
    ends = [Position(int(rate * now_ms / 1000), 0) for rate in RATES]
    places = [("cheap", number) for number in range(12)] + [("costly", number) for number in range(2)]
    watch.knowledge.read(dict(zip(places, ends, strict=True)), now_ms)


def learning(watch, until_ms):
    """The times of readings, while the second member tells what records of both topics take."""
    for now_ms in range(5000, until_ms, 5000):
        read(watch, now_ms)
        watch.knowledge.took("b", TIMES, now_ms)
        watch.knowledge.learn_costs()
        yield now_ms


def capacities(watch, now_ms):
    return watch.knowledge.estimates.of(dict.fromkeys(NAMES, 0.0), now_ms).per_s


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("slower", [1.0, 2.0])
def test_members_of_stalled_machines_come_out_as_identical_where_costly_partitions_have_moved(seed, slower):
    """And a third one as slow as it is."""
    machines = dict(zip(NAMES, (Machine(seed), Machine(100 + seed), Machine(200 + seed, slower=slower)), strict=True))
    watch = GroupWatch(LiveSettings(), Weighted(), slack_s=1.0)
    told = 0
    for owner, began_s in ((COSTLY_FIRST, 0), (COSTLY_LAST, 40)):
        assigned(watch, owner, began_ms=began_s * 1000)
        for now_s in range(began_s + 5, began_s + 45, 5):
            for number, (name, machine) in enumerate(machines.items()):
                machine.work(rates_of(owner, number), 5)
                if now_s > 40 or name != "b":
                    watch.knowledge.took(name, machine.busy.each_s if now_s > 40 else {}, now_s * 1000)
                    watch.knowledge.measured(name, machine.busy.per_s, now_s * 1000)
            read(watch, now_s * 1000)
            watch.knowledge.learn_costs()
            told += bool(watch.knowledge.costs)
    assert told > 4
    first, second, third = capacities(watch, 80_000).tolist()
    assert first == second
    assert third == (first if slower == 1 else pytest.approx(first / slower, rel=0.25))


def test_what_was_learned_by_other_records_is_forgotten_when_costs_are_learned():
    """One member had the costly records and has told how many of them it processes; then the other one gets them."""
    watch = GroupWatch(LiveSettings(), Weighted(), slack_s=1.0)
    for generation, owner in enumerate((COSTLY_FIRST, COSTLY_LAST)):
        began_ms = 40_000 * generation
        assigned(watch, owner, generation=generation, began_ms=began_ms)
        for now_ms in range(began_ms + 5000, began_ms + 40_000, 5000):
            read(watch, now_ms)
            if generation == 0:
                watch.knowledge.measured("a", 340.0, now_ms)
    watch.knowledge.took("b", TIMES, now_ms)
    watch.knowledge.learn_costs()
    assert watch.knowledge.costs["costly"] > 5 * watch.knowledge.costs["cheap"]
    assert len(set(capacities(watch, now_ms).tolist())) == 1


def test_a_number_of_mixed_records_tells_no_speed_once_costs_are_learned():
    """It changes with what is read, and nobody knows which records were counted. That of cheap ones alone tells it."""
    watch = GroupWatch(LiveSettings(), Weighted(), slack_s=1.0)
    assigned(watch, MIXED)
    for now_ms in learning(watch, 40_000):
        for name, per_s in (("a", 900.0), ("b", 100.0), ("c", SPEED / 4)):
            watch.knowledge.measured(name, per_s, now_ms)
    first, second, slow = capacities(watch, now_ms).tolist()
    assert watch.knowledge.estimates.known_of(NAMES)["a"] == 0.0
    assert first > 1.5 * slow
    assert second > 1.5 * slow


def test_a_group_that_gives_a_topic_up_is_measured_by_the_records_of_the_other():
    watch = GroupWatch(LiveSettings(), Weighted(), slack_s=1.0)
    assigned(watch, MIXED)
    assert list(learning(watch, 60_000))
    assigned(watch, MIXED[:12], generation=2, began_ms=60_000)
    for now_ms in range(65_000, 600_000, 5000):
        read(watch, now_ms)
        for name, per_s in (("a", SPEED), ("b", SPEED), ("c", SPEED / 4)):
            watch.knowledge.took(name, {}, now_ms)
            watch.knowledge.measured(name, per_s, now_ms)
    cheap = watch.knowledge.costs["cheap"]
    assert watch.knowledge.estimates.known_of(NAMES) == pytest.approx(
        {"a": SPEED * cheap, "b": SPEED * cheap, "c": 350 * cheap}, rel=0.01
    )


def test_a_new_leader_believes_no_number_of_records_of_which_it_does_not_know_what_they_cost():
    group = Group("a", "b", live=LiveSettings())
    leader = group.members["a"].leader
    took_s = {checksum("t"): 0.001, checksum("u"): 0.01}
    members = [Member(id=name, topics=["t", "u"]) for name in ("a", "b")]
    leader.joining(capacity_given=False)
    first, second = leader.equip(
        [
            (members[0], MemberNotes(measured_per_s=900.0, took_s=took_s)),
            (members[1], MemberNotes(measured_per_s=100.0)),
        ]
    )
    assert leader._watch.knowledge.costs
    assert first.capacity == second.capacity


def test_members_that_tell_as_they_join_what_records_take_come_out_as_identical():
    """Each of them reads another mix, and one has told a number of records of a costly one."""
    group = Group("a", "b", live=LiveSettings())
    group.rebalance(topics=["t", "u"])
    group.run([50.0] * 12, 10)
    took_s = {checksum("t"): 0.001, checksum("u"): 0.01}
    leader = group.members["a"].leader
    members = [(Member(id=name, topics=["t", "u"]), each) for name, each in (("a", 900.0), ("b", 200.0))]
    notes = [(member, MemberNotes(measured_per_s=per_s, took_s=took_s)) for member, per_s in members]
    leader.joining(capacity_given=False)
    first, second = leader.equip(notes)
    assert first.capacity == second.capacity


def test_the_newest_costs_count_for_what_members_tell_with_the_same_commits():
    group = Group("a", "b", live=LiveSettings())
    group.rebalance(topics=["t", "u"])
    group.members["a"].leader.busy = Mock(per_s=900.0, each_s={"t": 0.001, "u": 0.01})
    group.run([50.0] * 12, 10)
    watch = group.members["a"].leader._watch
    assert watch.knowledge.costs["u"] / watch.knowledge.costs["t"] == pytest.approx(10, rel=0.2)
    speed = (watch.knowledge.costs["t"] + watch.knowledge.costs["u"]) / 0.011  # nothing was known to arrive then
    assert watch.knowledge.estimates.known_of(["a"])["a"] == pytest.approx(speed)


def test_what_a_member_told_hours_ago_is_no_news_when_costs_change():
    """It was slow then, and nothing has confirmed that since: it is tried again."""
    watch = GroupWatch(LiveSettings(), Weighted(), slack_s=1.0)
    assigned(watch, MIXED)
    read(watch, 5000)
    for name, slower in (("a", 1), ("b", 4), ("c", 1)):
        watch.knowledge.took(name, {topic: slower * each_s for topic, each_s in TIMES.items()}, 5000)
    watch.knowledge.learn_costs()
    slow = capacities(watch, 5000)
    assert slow[1] == pytest.approx(slow[0] / 4, rel=0.2)
    hours_later_ms = 3 * 3_600_000
    read(watch, hours_later_ms)
    for name in ("a", "c"):
        watch.knowledge.took(name, TIMES | {"costly": 20 / SPEED}, hours_later_ms)
    assert watch.knowledge.learn_costs()
    assert len(set(capacities(watch, hours_later_ms).tolist())) == 1
