"""Members of a group that keep its load even: what they tell each other, and what the leader does about it."""

import logging
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.load.lag import LagLoad, PartitionOffsets
from loadwise.assignor.model import Member
from loadwise.assignor.participant import Participant
from loadwise.assignor.subscription import JoinedMember
from loadwise.protocol.consumer import Assignment, Subscription
from loadwise.protocol.live_notes import CommitNote, MemberNotes, Memory, checksum
from loadwise.protocol.user_data import MemberTerms, StickyUserData

PARTITIONS = 12
SPEED = 900.0


class Cluster:
    def partition_count(self, _):
        return PARTITIONS

    def replica_racks(self, _):
        return []


class Group:
    """Members whose readings and rebalances a test makes by hand, on a clock of its own."""

    def __init__(self, *names, strategy="weighted", live=True, settings=None, interval_s=5.0, max_poll_s=300.0):
        self.now_s, self.generation = 1000.0, 0
        self.strategy, self.settings, self.interval_s = strategy, settings or {}, interval_s
        self.max_poll_s = max_poll_s
        self.end, self.done = np.zeros(PARTITIONS), np.zeros(PARTITIONS)
        self.members, self.asked, self.metadata, self.hanging = {}, [], {}, ""
        self.away, self.beyond = set(), np.zeros(PARTITIONS)
        for name in names:
            self.add(name, self.settings.get(name, live))
        self.leader = names[0]

    def add(self, name, live=True):
        member = Participant(self.strategy)
        lag = LagLoad(auto_offset_reset="earliest", interval_s=self.interval_s, clock=lambda: self.now_s)
        member.lead_by(lag, live, slack_s=1.0, max_poll_s=self.max_poll_s)
        member.leader._clock = lambda: self.now_s
        member.leader.name = name

        def ask():
            self.asked.append(self.now_s)
            return True

        member.leader.ask = ask
        self.members[name] = member

    def rebalance(self, *, rounds=1, topics=("t",)):
        """As the clients drive it; how many partitions moved between members that were there before."""
        for _ in range(rounds):
            owned = {name: self.owned(name) for name in self.members}
            joined = [
                JoinedMember(id=name, subscription=Subscription.decode(member.subscription(topics)))
                for name, member in self.members.items()
            ]
            self.now_s += 1
            answer = self.members[self.leader].assign(joined, Cluster())
            self.generation += 1
            for name, member in self.members.items():
                given = Assignment.decode(answer[name])
                member.assigned(given.partitions, self.generation, user_data=given.user_data)
        return sum(len(owned[name] - self.owned(name)) for name in self.members)

    def owned(self, name):
        return set((self.members[name]._owned or {}).get("t", ()))

    def run(self, rates, seconds, *, step_s=5):
        """Records arrive, members process as many as they can, and the leader reads; ends where it asks."""
        before = len(self.asked)
        for _ in range(seconds // step_s):
            self.now_s += step_s
            self.end += np.array(rates) * step_s
            for name in self.members:
                mine = sorted(self.owned(name))
                waiting = self.end[mine] - self.done[mine]
                if waiting.sum() and name != self.hanging:
                    self.done[mine] += waiting * min(SPEED * step_s / waiting.sum(), 1.0)
            self.read()
            if len(self.asked) > before:
                return

    def hang(self, name):
        """This member processes nothing from now on; none where the name is empty."""
        self.hanging = name

    def read(self):
        offsets = {
            ("t", number): PartitionOffsets(
                0,
                int(self.end[number] + self.beyond[number]),  # beyond what can be processed
                int(self.done[number]),
                self.metadata.get(number, ""),
            )
            for number in range(PARTITIONS)
            if number not in self.away
        }
        self.members[self.leader].leader.lag.update(offsets)

    def hot(self, name):
        """Rates under which all records come to one member, half as many again as it can process."""
        mine = self.owned(name)
        return [1350 / len(mine) if number in mine else 0.0 for number in range(PARTITIONS)]


def test_a_shift_is_answered_by_one_request_and_the_rebalance_mends_it():
    group = Group("a", "b", "c")
    group.rebalance()
    group.run([112.5] * PARTITIONS, 60)
    assert group.asked == []
    hot = group.hot("b")
    group.run(hot, 60)
    assert len(group.asked) == 1
    group.rebalance()
    group.run(hot, 120)
    assert len(group.asked) == 1
    demand = group.members["a"].explain().judgement.demand
    assert max(demand) <= 0.55 * sum(demand), "of the four hot partitions one member has two"


@pytest.mark.parametrize(("live", "told"), [(False, False), (LiveSettings(dry_run=True), True)])
def test_it_can_be_switched_off_and_tried_dry(live, told, caplog):
    group = Group("a", "b", "c", live=live)
    group.rebalance()
    group.run([112.5] * PARTITIONS, 60)
    with caplog.at_level(logging.INFO):
        group.run(group.hot("b"), 120)
    assert group.asked == []
    assert ("a rebalance would help" in caplog.text) is told


def test_a_client_that_is_joining_already_is_not_told_to_have_been_asked(caplog):
    """As where it waits for ever to commit partitions of a topic that was deleted."""
    group = Group("a", "b", "c")
    group.rebalance()
    group.run([112.5] * PARTITIONS, 60)
    group.members["a"].leader.ask = lambda: False
    with caplog.at_level(logging.INFO):
        group.run(group.hot("b"), 120)
    assert "asking for a rebalance" not in caplog.text
    assert not group.members["a"].leader._watch.restraint.memory(round(group.now_s * 1000)).ages_ms


@pytest.mark.parametrize("costs", [{}, {"t": 3.0}])
def test_the_leader_learns_from_members_what_records_cost(caplog, costs):
    """From their notes, and from what they join with, unless the costs are stated."""
    caplog.set_level(logging.INFO)
    group = Group("a", "b", live=LiveSettings(cost=costs))
    group.rebalance(topics=["t", "u"])
    [number, *_] = group.owned("b")
    took_s = {checksum("t"): 0.001, checksum("u"): 0.01, checksum("another"): 5.0}
    group.metadata[number] = CommitNote(member="b", at_ms=20, measured_per_s=300.0, took_s=took_s).encode()
    group.run([50.0] * PARTITIONS, 10)
    watch = group.members["a"].leader._watch
    if costs:
        assert watch.knowledge.costs == costs
        return
    assert watch.knowledge.costs["u"] / watch.knowledge.costs["t"] == pytest.approx(10, rel=0.2)
    assert "Estimated record costs" in caplog.text
    group.members["b"].leader.busy = Mock(per_s=300.0, each_s={"t": 0.001, "u": 0.04})
    group.rebalance(topics=["t", "u"])
    assert watch.knowledge.costs["u"] / watch.knowledge.costs["t"] == pytest.approx(40, rel=0.2)


def test_a_note_of_a_member_that_was_restarted_hides_none_of_its_newer_ones():
    """Clocks begin anew with a machine, and the old note stays beside the offset of an idle partition."""
    group = Group("a", "b", "c")
    group.rebalance()
    idle, busy, *_ = group.owned("b")
    rates = [0.0 if number == idle else 10.0 for number in range(PARTITIONS)]
    group.metadata[idle] = CommitNote(member="b", at_ms=900_000_000, measured_per_s=2000.0).encode()
    for second in range(0, 60, 5):
        group.metadata[busy] = CommitNote(member="b", at_ms=second, measured_per_s=400.0).encode()
        group.run(rates, 5)
    leader = group.members["a"].leader
    assert leader.equip([(Member(id="b", topics=["t"]), None)])[0].capacity == 400

    before = group.metadata.pop(idle)
    group.run(rates, 5)
    group.metadata[idle] = before  # a reading has lacked it
    group.run(rates, 5)
    group.rebalance()
    group.run(rates, 5)
    assert leader.equip([(Member(id="b", topics=["t"]), None)])[0].capacity == 400


def test_one_member_that_does_not_want_it_is_enough():
    group = Group("a", "b", "c", settings={"c": False})
    group.rebalance()
    group.run(group.hot("b"), 120)
    assert group.asked == []


def test_only_the_leader_reads():
    group = Group("a", "b", "c")
    group.rebalance()
    intervals = {name: member.leader.lag.interval_s for name, member in group.members.items()}
    assert intervals == {"a": 5.0, "b": float("inf"), "c": float("inf")}
    group.leader = "c"
    group.rebalance()
    intervals = {name: member.leader.lag.interval_s for name, member in group.members.items()}
    assert intervals == {"a": float("inf"), "b": float("inf"), "c": 5.0}


def test_the_next_leader_knows_what_the_last_one_asked_for_and_learned():
    group = Group("a", "b", "c")
    group.rebalance()
    group.run([112.5] * PARTITIONS, 60)
    group.run(group.hot("b"), 60)
    group.run(group.hot("b"), 20)
    group.rebalance()
    del group.members["a"]
    group.leader = "c"
    group.rebalance()
    watch = group.members["c"].leader._watch
    memory = watch.restraint.memory(round(group.now_s * 1000))
    assert len(memory.ages_ms) == 2
    assert watch.knowledge.estimates.known_of(["b"])["b"] == pytest.approx(SPEED, rel=0.2)


def test_a_leader_that_has_asked_and_then_follows_joins_with_what_it_knows():
    """No assignment has told another member of its last request."""
    group = Group("a", "b", "c")
    group.rebalance()
    group.run([112.5] * PARTITIONS, 60)
    group.run(group.hot("a"), 60)
    group.run(group.hot("a"), 20)
    group.rebalance()  # a learns its own capacity
    group.run([112.5] * PARTITIONS, 60)
    group.run(group.hot("a"), 60)
    asked = [round((group.now_s - at) * 1000) for at in group.asked]
    assert asked[-1] == 0
    group.now_s += 10
    notes = group.members["a"].leader.joining(capacity_given=False)
    group.now_s += 10
    again = group.members["a"].leader.joining(capacity_given=False)  # there was no answer
    assert [list(each.memory.ages_ms) for each in (notes, again)] == [
        [age + ms for age in asked] for ms in (10_000, 20_000)
    ]
    assert notes.learned_per_s == again.learned_per_s == pytest.approx(SPEED, rel=0.2)
    group.leader = "c"
    group.rebalance()
    watch = group.members["c"].leader._watch
    assert len(watch.restraint.memory(round(group.now_s * 1000)).ages_ms) == len(asked)
    assert watch.knowledge.estimates.known_of(["a"])["a"] == pytest.approx(SPEED, rel=0.2)


def test_requests_of_a_dry_run_count_for_the_next_leader_too():
    group = Group("a", "b", "c", live=LiveSettings(dry_run=True))
    group.rebalance()
    group.run([112.5] * PARTITIONS, 60)
    group.run(group.hot("b"), 60)
    group.leader = "c"
    group.rebalance()
    assert group.members["c"].leader._watch.restraint.memory(round(group.now_s * 1000)).ages_ms


def test_topics_that_the_group_has_given_up_leave_no_notes():
    group = Group("a", "b")
    group.rebalance()
    for number in range(PARTITIONS):
        group.metadata[number] = CommitNote(member="b", at_ms=20, measured_per_s=300.0).encode()
    group.run([10.0] * PARTITIONS, 10)
    notes = group.members["a"].leader._notes
    assert len(notes._read) == PARTITIONS
    group.rebalance(topics=["u"])
    assert notes._read == {}


def test_a_group_that_loses_its_leader_with_every_rebalance_stops_asking():
    group = Group(*(f"m{number}" for number in range(8)))
    group.rebalance()
    for _ in range(15):
        before = len(group.asked)
        group.run(group.hot(max(group.members, key=lambda name: len(group.owned(name)))), 120)
        if len(group.asked) == before:
            break
        group.rebalance()
        del group.members[group.leader]
        group.leader = next(iter(group.members))
        group.rebalance()
    assert 1 <= len(group.asked) <= 8, "what ten minutes save up, and what comes in since"


def test_a_member_from_before_may_be_in_the_group_and_lead_it():
    """It joins with version 0 of the terms, and answers without notes."""
    group = Group("a", "b")
    old = Participant("weighted", capacity=2.0)
    old._notes = lambda: None
    group.members["old"] = old
    group.rebalance()
    assert group.owned("old")
    group.leader = "old"
    group.rebalance()
    assert set().union(*map(group.owned, group.members)) == set(range(PARTITIONS))
    assert not group.members["a"].leader.leads


def test_the_second_round_of_a_cooperative_rebalance_keeps_the_target_of_the_first():
    group = Group("a", "b", "c", strategy="cooperative-weighted")
    group.rebalance(rounds=2)
    group.run([112.5] * PARTITIONS, 60)
    group.run(group.hot("b"), 60)
    group.rebalance()
    assert set().union(*map(group.owned, group.members)) < set(range(PARTITIONS))  # what moves belongs to nobody yet
    group.end[:] += np.arange(PARTITIONS) * 5000  # the load has nothing in common any more with that of a moment ago
    group.now_s += 5
    group.read()
    group.rebalance()
    assert set().union(*map(group.owned, group.members)) == set(range(PARTITIONS))
    assert sum(len(group.owned(name)) for name in group.members) == PARTITIONS
    leader = group.members["a"].leader
    assert group.members["a"]._unfinished is None
    assert leader.rebalances == {"other": 2, "load": 1, "second_round": 1}, "the first of all moved nothing"
    assert str(leader.decision).startswith("Generation 4: second round of the same rebalance")


def test_notes_that_cannot_be_read_stop_nobody(caplog):
    group = Group("a", "b")
    group.rebalance()
    group.members["b"].assigned({"t": [0]}, 9, user_data=b"\xff")
    assert "cannot be read" in caplog.text


def test_an_answer_that_never_came_into_force_is_not_watched():
    """The leader's SyncGroup is refused, because it was put out of the group meanwhile; it comes back as a follower."""
    group = Group("a", "b", "c")
    group.rebalance()
    joined = [
        JoinedMember(id=name, subscription=Subscription.decode(member.subscription(["t"])))
        for name, member in group.members.items()
    ]
    group.members["a"].assign(joined, Cluster())
    group.leader = "b"
    group.rebalance()
    assert [member.leader.leads for member in group.members.values()] == [False, True, False]


def test_an_algorithm_that_raises_while_it_is_asked_what_would_help_does_not_stop_the_reading(caplog):
    group = Group("a", "b", "c")
    group.rebalance()
    group.members["a"].leader._watch._algorithm = None
    group.run(group.hot("b"), 60)
    assert group.asked == []
    assert caplog.text.count("The assignor failed while watching the group's load") == 1


def test_a_watch_that_fails_when_a_join_ends_does_not_stop_the_member(monkeypatch):
    group = Group("a", "b", "c")
    monkeypatch.setattr(group.members["a"].leader._watch, "_assigned", None)
    group.rebalance()
    assert group.members["a"].targets.failures == 1
    assert sum(len(group.owned(name)) for name in group.members) == PARTITIONS


TELLS = st.builds(
    MemberTerms,
    capacity=st.floats(),
    notes=st.none()
    | st.builds(
        MemberNotes,
        capacity_given=st.booleans(),
        measured_per_s=st.floats(),
        learned_per_s=st.floats(),
        memory=st.builds(
            Memory,
            ages_ms=st.lists(st.integers(0, 2**31 - 1), max_size=3).map(tuple),
        ),
    ),
)


@given(st.lists(TELLS, min_size=1, max_size=4))
def test_no_numbers_that_peers_tell_stop_the_leader(told):
    group = Group("a")
    leader = group.members["a"]
    joined = [JoinedMember(id="a", subscription=Subscription.decode(leader.subscription(["t"])))]
    joined += [
        JoinedMember(
            id=f"b{number}", subscription=Subscription(topics=["t"], user_data=StickyUserData(terms=terms).encode())
        )
        for number, terms in enumerate(told)
    ]
    answer = {name: Assignment.decode(data) for name, data in leader.assign(joined, Cluster()).items()}
    assert sorted(row for given in answer.values() for row in given.partitions.get("t", ())) == list(range(PARTITIONS))
    leader.assigned(answer["a"].partitions, 1, user_data=answer["a"].user_data)
    group.run([100.0] * PARTITIONS, 20)
    assert leader.explain() is not None
    assert leader.targets.failures == 0
    assert not leader.leader._warnings.troubles._lasting & {"The assignor"}
    leader.subscription(["t"])  # what it tells the next leader can be written


def test_what_is_no_setting_is_refused():
    with pytest.raises(TypeError, match="live is 'yes'"):
        Participant("weighted").lead_by(LagLoad(), "yes", slack_s=1.0)
    with pytest.raises(BadGroupError, match="healthy is -1"):
        LiveSettings(healthy=-1)


@pytest.mark.parametrize("strategy", ["weighted", "cooperative-weighted"])
def test_a_static_leader_that_is_back_resumes_by_what_the_broker_tells(strategy):
    group = Group("a", "b", "c", strategy=strategy)
    group.rebalance()
    group.run([112.5] * PARTITIONS, 60)
    described = [
        (
            JoinedMember(id=name, subscription=Subscription.decode(member.subscription(["t"]))),
            {"t": sorted(group.owned(name))},
        )
        for name, member in group.members.items()
    ]
    told = group.members["a"].assign([member for member, _ in described], Cluster())["a"]
    group.add("a")  # its state is lost, and no rebalance comes
    back, given = group.members["a"], Assignment.decode(told)
    assert not back.to_resume
    back.assigned(given.partitions, group.generation, user_data=given.user_data)
    assert back.to_resume
    back.resume(described, Cluster())
    assert not back.to_resume
    assert back.explain().generation == group.generation
    group.run(group.hot("b"), 60)
    assert len(group.asked) == 1
    assert back.explain().moved


def test_a_static_leader_that_is_back_knows_what_it_asked_for():
    """Only its assignment says so: its join has lost the request, and the others joined without it."""
    group = Group("a", "b", "c")
    group.rebalance()
    group.run([112.5] * PARTITIONS, 60)
    group.run(group.hot("b"), 60)
    joined = {name: Subscription.decode(member.subscription(["t"])) for name, member in group.members.items()}
    told = group.members["a"].assign(
        [JoinedMember(id=name, subscription=each) for name, each in joined.items()], Cluster()
    )
    group.add("a")
    joined["a"] = Subscription.decode(group.members["a"].subscription(["t"]))
    given = {name: Assignment.decode(data) for name, data in told.items()}
    back = group.members["a"]
    back.assigned(given["a"].partitions, group.generation, user_data=given["a"].user_data)
    back.resume(
        [(JoinedMember(id=name, subscription=each), given[name].partitions) for name, each in joined.items()], Cluster()
    )
    group.now_s += 100
    assert back.leader._watch.restraint.memory(round(group.now_s * 1000)).ages_ms == (100_000,)


def test_who_follows_another_has_nothing_to_resume():
    group = Group("a", "b")
    group.rebalance()
    assert [member.to_resume for member in group.members.values()] == [False, False]


def test_who_leads_again_believes_the_leader_that_led_in_between():
    """It has learned hours ago that a member is as fast as it is itself. Since then that one has become slow."""
    group = Group("a", "b", live=LiveSettings())
    members = [(Member(id=name, topics=["t"]), MemberNotes(measured_per_s=SPEED)) for name in group.members]
    leader = group.members["a"].leader
    leader.joining(capacity_given=False)
    assert [member.capacity for member in leader.equip(members)] == [SPEED, SPEED]
    group.rebalance()
    group.leader = "b"
    group.rebalance()
    group.now_s += 3 * 3600
    leader.joining(capacity_given=False)
    again = [
        (member, MemberNotes(learned_per_s=per_s)) for (member, _), per_s in zip(members, (SPEED, 90.0), strict=True)
    ]
    fast, slow = leader.equip(again)
    assert slow.capacity < fast.capacity / 4


def test_who_leads_again_shares_out_at_once_what_waits_now():
    """When it led last, hours ago, nothing waited: that is no second reading of now."""
    group = Group("a", "b", live=LiveSettings())
    group.rebalance()
    group.run([50.0] * PARTITIONS, 30)
    leader = group.members["a"].leader
    leader.joining(capacity_given=False)
    group.now_s += 3 * 3600
    group.end += 50.0 * 3 * 3600
    group.done = group.end.copy()
    group.done[3] -= 30_000
    leader._on_prior({("t", number): int(end) - 3000 for number, end in enumerate(group.end)})
    group.read()
    assert leader.snapshot(["t"]).load["t"][3] > 500


def test_nobody_is_made_to_wait_for_a_member_that_stands_still(caplog):
    """Its program hangs for a while: in a rebalance, all would wait until it polls. It is relieved when it goes on."""
    group = Group("a", "b", "c")
    group.members["a"].leader.busy = Mock(per_s=SPEED, each_s={})
    group.rebalance()
    group.run([112.5] * PARTITIONS, 60)
    group.hang("b")
    group.run([112.5] * PARTITIONS, 120)
    assert group.asked == []
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    waits = "would wait for a member that processes nothing of its backlog: b for"
    assert len([line for line in told if waits in line]) == 1
    group.hang("")
    group.run([112.5] * PARTITIONS, 15)
    assert len(group.asked) == 1


@pytest.mark.parametrize("max_poll_s", [150, 300])
def test_a_member_that_processes_nothing_for_longer_than_clients_may_not_poll_is_not_waited_for(max_poll_s):
    group = Group("a", "b", "c", max_poll_s=max_poll_s)
    group.members["a"].leader.busy = Mock(per_s=SPEED, each_s={})
    group.rebalance()
    group.run([112.5] * PARTITIONS, 60)
    group.hang("b")
    group.run([112.5] * PARTITIONS, max_poll_s - 10)
    assert group.asked == []
    group.run([112.5] * PARTITIONS, 30)
    assert len(group.asked) == 1


def test_a_member_left_empty_because_of_its_speed_is_logged_once(caplog):
    group = Group("a", "b", "c")
    for name, capacity in (("a", 1.0), ("b", 1.0), ("c", 0.05)):
        group.members[name].capacity = capacity
    with caplog.at_level(logging.INFO):
        group.rebalance()
        group.run([112.5] * 12, 60)
        group.rebalance()
    assert group.owned("c") == set(), "one of 12 partitions would keep it busier than 6 keep the others"
    told = [record for record in caplog.records if record.message.startswith("These members get no partition")]
    assert [(record.levelname, record.message[-3:]) for record in told] == [("INFO", ": c")]
    assert group.members["a"].explain().too_slow == ("c",)
    group.members["c"].capacity = 1.0
    group.rebalance()
    assert group.owned("c")
    assert group.members["a"].explain().too_slow == ()


@pytest.mark.parametrize("minutes", [20, pytest.param(120, marks=pytest.mark.long)])
@pytest.mark.parametrize("per_s", [0.0, SPEED])
def test_who_keeps_up_with_all_partitions_but_one_that_is_stuck_is_not_taken_for_slow(per_s, minutes):
    """A record in it is tried again and again, whoever has it: to move partitions about would help nobody."""
    group = Group("a", "b", "c")
    group.rebalance()
    stuck, *_ = group.owned("b")
    group.members["a"].leader.busy = Mock(per_s=per_s, each_s={})
    rates = [0.0 if number == stuck else 110.0 for number in range(PARTITIONS)]
    group.run(rates, 60)
    group.beyond[stuck] = 4000
    for _ in range(minutes):
        group.run(rates, 60)
    assert len(group.asked) <= 1
    assert len(group.owned("b")) >= 3


def test_who_has_a_backlog_that_nobody_can_read_is_not_taken_for_slow(caplog):
    """The broker of one partition is away. Its member keeps up with all others, and its program does not hang."""
    group = Group("a", "b", "c")
    group.rebalance()
    gone, *others = sorted(group.owned("b"))
    group.members["a"].leader.busy = Mock(per_s=SPEED, each_s={})
    rates = np.full(PARTITIONS, 110.0)
    rates[gone] = 0.0
    group.run(rates, 60)
    group.end[gone] += 14_000
    group.run(rates, 10)
    assert group.end[gone] - group.done[gone] > 4000
    group.away = {gone}
    group.done[gone] = group.end[gone]  # what it cannot read keeps it from nothing
    group.run(rates, 300)
    assert group.asked == []
    rates[others] = 0.0  # now nothing shows that it goes on
    group.run(rates, 60)
    group.run(group.hot("c"), 60)
    assert len(group.asked) == 1
    assert "would wait for" not in caplog.text


@pytest.mark.parametrize("interval_s", [5, 150, 300])
def test_a_group_whose_offsets_are_read_seldom_is_balanced_too(interval_s):
    """Readings are far apart then, but no history is lacked: it would stand for the reading before."""
    group = Group("a", "b", "c", interval_s=interval_s)
    group.rebalance()
    group.run([50.0] * PARTITIONS, 2 * interval_s, step_s=interval_s)
    hot = group.hot("b")
    for _ in range(4):
        group.run(hot, interval_s, step_s=interval_s)
        lag = group.members["a"].leader.lag
        group.now_s += interval_s
        assert not lag.lacks_history
        group.now_s -= interval_s
    assert group.asked


def test_a_leader_notes_what_it_saves_while_it_leads():
    group = Group("a", "b")
    group.rebalance()
    group.run([20.0] * PARTITIONS, 20)
    for name, member in group.members.items():
        leader = member.leader
        leader.decision = replace(group.members["a"].leader.decision, lag_s=0.5, saved_s=3.25)
        noted = CommitNote.decode(leader.note(name), name).compared
        assert noted == ((0.5, 3.25) if name == "a" else None)
