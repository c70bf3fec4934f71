"""What the events of a group make known of its members."""

import numpy as np
import pytest

from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.live.events import Asked, Assigned, Joined, PriorEnds, Read, Rebalancing, Said
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.model import Assignment, GroupSnapshot, Member
from loadwise.protocol.live_notes import Memory

ROWS = [("cheap", 0), ("cheap", 1), ("costly", 0), ("costly", 1)]
TIMES = {"cheap": 0.001, "costly": 0.01}


class Group:
    """Member ``a`` has the partitions of cheap, ``b`` those of costly, each with 100 records/s."""

    def __init__(self, *, by_hand=False, **settings):
        slack_s = None if by_hand else 1.0
        self.watch = GroupWatch(LiveSettings(**settings), Weighted(), slack_s=slack_s, max_poll_s=300.0)
        members = [Member(id=name, topics=["cheap", "costly"]) for name in "ab"]
        group = GroupSnapshot.of(members, {"cheap": 2, "costly": 2})
        self.target = Assignment(group, np.array([0, 0, 1, 1], np.int32))

    def assigned(self, second, duration_ms=0):
        assigned = Assigned(at_ms=second * 1000, target=self.target, generation=1, duration_ms=duration_ms)
        return self.watch.handle(assigned)

    def read(self, second, lag=0, **said):
        lags = np.broadcast_to(lag, 4)
        positions = np.column_stack([np.full(4, 100.0 * second), lags, np.ones(4), np.full(4, np.inf)])
        return self.watch.handle(Read(at_ms=second * 1000, partitions=ROWS, positions=positions, said=said))

    def joined(self, second, *, memory=None, off=False, **said):
        self.watch.handle(Joined(at_ms=second * 1000, said=said, memory=memory, off=off))

    @property
    def known(self):
        return self.watch.knowledge.estimates.known_of(["a", "b"])


def test_reports_count_in_the_unit_of_the_costs_that_they_show():
    group = Group()
    group.assigned(0)
    for second in (5, 10):
        group.read(second)
    group.read(15, a=Said(per_s=1000.0), b=Said(per_s=100.0))
    assert group.known == {"a": 1000, "b": 100}
    group.read(20, a=Said(per_s=700.0, each_s=TIMES))
    assert group.watch.knowledge.costs == pytest.approx({"cheap": 1, "costly": 10})
    assert group.known == pytest.approx({"a": 1000, "b": 1000}), "a by its times, and what b did by its factor"
    group.read(25, b=Said(per_s=90.0))
    assert group.known["b"] == pytest.approx(900), "it reads records of one cost"
    group.read(30, a=Said(each_s=TIMES | {"costly": 0.02}))
    assert group.known["b"] == pytest.approx(1800), "twice as much in the new unit"


def test_a_change_of_costs_changes_the_speeds_of_all_members_that_have_reported_times():
    group = Group()
    group.assigned(0)
    for second in (5, 10):
        group.read(second)
    group.read(15, a=Said(each_s=TIMES), b=Said(each_s=TIMES))
    assert group.known == pytest.approx({"a": 1000, "b": 1000})
    group.read(20, b=Said(each_s=TIMES | {"costly": 0.04}))
    assert group.watch.knowledge.costs == pytest.approx({"cheap": 1, "costly": 20})
    assert group.known == pytest.approx({"a": 21 / 0.011, "b": 21 / 0.041})


def test_a_speed_of_another_assignment_is_dropped_when_costs_change():
    group = Group()
    group.assigned(0)
    group.read(5, a=Said(per_s=1000.0), b=Said(per_s=100.0))
    group.assigned(6)
    for second in (10, 15):
        group.read(second)
    group.read(20, a=Said(each_s=TIMES))
    assert group.known == {"a": pytest.approx(1000), "b": 0}


def test_costs_are_learned_once_and_kept_until_they_change():
    group = Group()
    group.assigned(0)
    for second in (5, 10):
        group.read(second)
    assert group.watch.knowledge.learn_costs() is False
    group.watch.knowledge.took("a", TIMES, 10_000)
    assert group.watch.knowledge.learn_costs() is True
    assert group.watch.knowledge.learn_costs() is False
    group.watch.knowledge.took("b", {"cheap": 0.002, "costly": 0.02}, 10_000)
    assert group.watch.knowledge.learn_costs() is False, "its times have the same ratio"
    assert group.watch.loads()["costly"].tolist() == pytest.approx([1000, 1000])


def test_a_leader_continues_from_the_memory_of_the_last_one():
    group = Group()
    assert not group.watch.off
    group.joined(100, memory=Memory(ages_ms=(50_000,)), off=True, a=Said(learned_per_s=500.0))
    assert group.watch.off
    assert group.watch.restraint.memory(100_000).ages_ms == (50_000,)
    assert group.known == {"a": 500, "b": 0}
    group.joined(200, a=Said(learned_per_s=400.0))
    assert not group.watch.off
    assert group.watch.restraint.memory(200_000).ages_ms == (150_000,)
    assert group.known["a"] == 500
    group.joined(300, memory=Memory(), a=Said(learned_per_s=400.0))
    assert group.watch.restraint.memory(300_000).ages_ms == ()
    assert group.known["a"] == 400, "another member has led meanwhile"


def test_a_report_is_a_sign_of_life():
    for written_ms, silent in ((None, {"a": 24_000, "b": 24_000}), (17_000, {"b": 24_000})):
        group = Group()
        group.assigned(0)
        for second in (5, 10, 15):
            group.read(second, lag=100 * second)
        group.read(20, lag=2000, a=Said(written_ms=written_ms))
        assert group.watch.knowledge.activity.silent_ms(24_000) == silent


@pytest.mark.parametrize(("by_hand", "waiting"), [(False, 2400), (True, 0)])
def test_records_without_a_commit_are_no_backlog_until_it_is_known_when_the_application_commits(by_hand, waiting):
    group = Group(by_hand=by_hand)
    group.assigned(0)
    for second in (5, 10, 15, 20, 25, 30):
        group.read(second, lag=100 * second)
    assert group.watch.knowledge.partitions.state.backlog.waiting.tolist() == [waiting] * 4, "of the reading at 25 s"
    assert bool(group.watch.knowledge.activity.silent_ms(30_000)) is not by_hand
    assert (group.watch.knowledge.activity.refusal(30_000) is None) is by_hand
    assert (
        "a" in group.watch.knowledge.estimates._of and group.watch.knowledge.estimates._of["a"].known.proven
    ) is not by_hand


@pytest.mark.parametrize(("leads", "cost"), [(True, 1.0), (True, 4.0), (False, 1.0)])
def test_notes_beside_commits_show_the_rate_of_a_member_that_falls_behind(leads, cost):
    """30 of 100 records/s are left in each partition of ``a``."""
    group = Group(cost={"cheap": cost})
    group.assigned(0)
    if not leads:
        group.watch.handle(Rebalancing(at_ms=0))
    for second in (5, 10, 15, 20):
        decision = group.read(second, lag=_behind(second), a=Said(per_s=500.0, written_ms=1000 * second))
    assert (decision is not None) is leads
    assert group.known["a"] == pytest.approx(140 * cost if leads else 0)
    if leads:
        for second in (25, 30):
            group.read(second, a=Said(per_s=500.0, written_ms=1000 * second))
        assert group.known["a"] == pytest.approx(500 * cost), "it has processed more than that since"


def test_commits_alone_show_the_rate_of_a_member_with_a_backlog():
    group = Group()
    group.assigned(0)
    for second in (5, 10, 15, 20):
        group.read(second, lag=_behind(second))
    assert group.known == {"a": pytest.approx(140), "b": 0}


def _behind(second):
    return 30 * second, 30 * second, 0, 0


def test_prior_ends_give_rates_to_the_first_assignment():
    group = Group()
    group.watch.handle(PriorEnds(at_ms=-60_000, ends=dict.fromkeys(ROWS, 0)))
    group.read(60)
    assert group.watch.loads()["cheap"].tolist() == [50, 50]
    assert group.watch.knowledge.size == 4
    assert group.watch.knowledge.read_at_ms == 60_000


def test_a_reading_of_the_past_changes_nothing():
    group = Group()
    group.assigned(0)
    for second in (5, 10):
        group.read(second)
    before = group.watch.knowledge.partitions.state
    for second in (10, 7):
        group.read(second, lag=500)
    assert group.watch.knowledge.partitions.state is before


def test_requests_and_rebalances_are_passed_on():
    group = Group()
    group.assigned(0)
    group.watch.handle(Asked(at_ms=1000))
    assert group.watch.restraint.memory(2000).ages_ms == (1000,)
    assert group.watch.knowledge.leads
    group.watch.handle(Rebalancing(at_ms=3000))
    assert not group.watch.knowledge.leads
    decision = group.assigned(4, duration_ms=500)
    assert group.watch.knowledge.leads
    assert (decision.generation, decision.now_ms, decision.ask) == (1, 4000, False)
