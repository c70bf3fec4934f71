"""A member's decisions without its client: as a member, and as the leader."""

import logging
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_log import own_log

from loadwise.assignor.algorithms.optimal import Optimal
from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.errors import BadGroupError, UnknownAssignorError
from loadwise.assignor.load.lag import LagLoad
from loadwise.assignor.load.source import FixedLoad, LoadSnapshot
from loadwise.assignor.model import Assignment as Owners
from loadwise.assignor.participant import Participant
from loadwise.assignor.strategy import Cooperative, strategies
from loadwise.assignor.subscription import JoinedMember, read_joined_members
from loadwise.protocol.consumer import Assignment, Subscription


@dataclass
class FakeCluster:
    counts: dict
    racks: dict = field(default_factory=dict)

    def partition_count(self, topic):
        return self.counts.get(topic)

    def replica_racks(self, topic):
        return self.racks.get(topic, [])


@dataclass
class FakeLoad:
    """A load source whose answer a test sets."""

    answer: LoadSnapshot | None = None
    asked: list = field(default_factory=list)

    def snapshot(self, topics):
        self.asked.append(set(topics))
        return self.answer


def rebalance(leader, members, cluster, generation, topics=("t",)):
    """One rebalance of Participants by their ids, as the clients drive it; who has what afterwards."""
    joined = [
        JoinedMember(id=id_, subscription=Subscription.decode(member.subscription(topics)))
        for id_, member in members.items()
    ]
    answer = leader.assign(joined, cluster)
    assert answer.keys() == members.keys(), "a member without an entry would be without an answer"
    owned = {}
    for id_, member in members.items():
        given_to = Assignment.decode(answer[id_]).partitions
        member.assigned(given_to, generation)
        owned[id_] = {(topic, number) for topic, numbers in given_to.items() for number in numbers}
    everything = [partition for partitions in owned.values() for partition in partitions]
    assert len(everything) == len(set(everything)), "a partition was given to two"
    return owned


T = FakeCluster({"t": 6})


@pytest.mark.parametrize("name", strategies())
def test_a_group_from_the_first_member_to_the_second(name):
    first, second = Participant(name), Participant(name)
    alone = rebalance(first, {"a": first}, T, 1)
    assert len(alone["a"]) == 6
    both = rebalance(first, {"a": first, "b": second}, T, 2)
    if first.strategy.cooperative:
        assert both["b"] == set(), "what a still holds must wait for the next rebalance"
        assert both["a"] < alone["a"]
        both = rebalance(first, {"a": first, "b": second}, T, 3)
    assert [len(both["a"]), len(both["b"])] == [3, 3]
    if name not in ("range", "roundrobin"):
        assert both["a"] < alone["a"], "a sticky member keeps what it had"
    assert first.led == (3 if first.strategy.cooperative else 2)


def test_a_topic_without_metadata_waits_and_every_member_gets_an_answer():
    leader = Participant("range")
    owned = rebalance(leader, {"a": leader, "b": Participant("range")}, FakeCluster({}), 1)
    assert owned == {"a": set(), "b": set()}


def test_unrelated_topics_are_not_looked_at():
    class OnlyT(FakeCluster):
        def partition_count(self, topic):
            assert topic == "t"
            return 2

    leader = Participant("sticky")
    assert len(rebalance(leader, {"a": leader}, OnlyT({}), 1)["a"]) == 2


def test_load_decides_for_weighted():
    heavy = FixedLoad(load={"t": [5, 1, 1, 1, 1, 1]})
    leader = Participant("weighted", load=heavy)
    owned = rebalance(leader, {"a": leader, "b": Participant("weighted")}, T, 1)
    assert sorted(map(len, owned.values())) == [1, 5]
    assert leader.targets.fallbacks == 0


def test_capacity_travels_to_the_leader():
    flat = FixedLoad(load={"t": [1] * 6})
    leader = Participant("weighted", load=flat)
    owned = rebalance(leader, {"a": leader, "b": Participant("weighted", capacity=2.0)}, T, 1)
    assert (len(owned["a"]), len(owned["b"])) == (2, 4)


@pytest.mark.parametrize(("floor", "share"), [(0.0, 1), (0.5, 2), (0.9, 3)])  # nobody is left empty
def test_an_algorithm_with_parameters_of_its_own_decides(floor, share):
    flat = FixedLoad(load={"t": [1] * 6})
    leader = Participant(Weighted(trigger=9.0, floor=floor), load=flat)
    alone = rebalance(leader, {"a": leader}, T, 1)
    owned = rebalance(leader, {"a": leader, "b": Participant("weighted")}, T, 2)
    assert len(owned["b"]) == share
    assert owned["a"] <= alone["a"]


@pytest.mark.parametrize("assignor", ["cooperative-weighted", Cooperative(Weighted(epsilon=0.02))])
def test_the_cooperative_form_is_asked_for(assignor):
    assert Participant(assignor).strategy == strategies()["cooperative-weighted"]


def test_what_has_no_cooperative_form_is_refused():
    with pytest.raises(UnknownAssignorError, match=r"'cooperative-range'.*; choose from range"):
        Participant("cooperative-range")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "there is no reading yet"),
        (LoadSnapshot(load={"t": [5, 1, 1, 1, 1, 1]}, unit="records", age_s=31.0, max_age_s=30.0), "31 s old"),
        (LoadSnapshot(load={"t": [None]}, unit="records"), "none of these partitions"),
        (LoadSnapshot(load={}, unit="records"), "none of these partitions"),
        (
            LoadSnapshot(load={topic: [1] for topic in "abcde"}, unit="records"),
            "the group reads t, but the load source has only a, b, c and 2 more",
        ),
        (LoadSnapshot(load={"t": ["many"]}, unit="records"), "the load of t is ['many']; it must be a list"),
        (LoadSnapshot(load={"t": [-1]}, unit="records"), "the load of t-0 is -1.0"),
    ],
)
def test_without_usable_load_the_answer_is_balanced_sticky_with_one_warning(answer, reason, caplog):
    load = FakeLoad(answer)
    leader, second = Participant("weighted", load=load), Participant("weighted")
    with caplog.at_level(logging.WARNING):
        first = rebalance(leader, {"a": leader}, T, 1)
        owned = rebalance(leader, {"a": leader, "b": second}, T, 2)
        again = rebalance(leader, {"a": leader, "b": second}, T, 3)
    assert [len(owned["a"]), len(owned["b"])] == [3, 3]
    assert owned["a"] < first["a"]
    assert again == owned
    assert len(own_log(caplog)) == 1, "one warning, not one a rebalance"
    assert reason in caplog.text
    assert (leader.targets.fallbacks, leader.led) == (3, 3)
    assert load.asked[0] == {"t"}


def test_the_warning_comes_again_after_the_load_was_back(caplog):
    load = FakeLoad(None)
    leader = Participant("weighted", load=load)
    good = LoadSnapshot(load={"t": [1] * 6}, unit="records")
    with caplog.at_level(logging.WARNING):
        for load.answer in (None, None, good, None):
            rebalance(leader, {"a": leader}, T, 1)
    assert len(own_log(caplog)) == 2
    assert leader.targets.fallbacks == 3


def test_strategies_that_have_no_use_for_load_do_not_ask_for_it():
    load = FakeLoad(None)
    leader = Participant("sticky", load=load)
    rebalance(leader, {"a": leader}, T, 1)
    assert (load.asked, leader.targets.fallbacks) == ([], 0)


def test_racks_reach_the_algorithm():
    cluster = FakeCluster({"t": 2}, {"t": [["east"], ["west"]]})
    leader = Participant("range", rack="west")
    owned = rebalance(leader, {"a": leader, "b": Participant("range", rack="east")}, cluster, 1)
    assert owned == {"a": {("t", 1)}, "b": {("t", 0)}}


def test_what_the_client_still_holds_is_believed_before_what_it_was_given():
    """After a lost session a cooperative member holds nothing: what it was given is others' by now."""
    member = Participant("cooperative-sticky")
    member.assigned({"t": [0, 1]}, 5)
    assert Subscription.decode(member.subscription(["t"])).owned == {"t": [0, 1]}
    assert Subscription.decode(member.subscription(["t"], owned={})).owned == {}


@given(st.lists(st.binary(max_size=40), max_size=4), st.sampled_from(sorted(strategies())))
def test_nothing_that_peers_send_as_user_data_stops_the_leader(user_data, name):
    leader = Participant(name)
    joined = [JoinedMember(id="a", subscription=Subscription.decode(leader.subscription(["t"])))]
    joined += [
        JoinedMember(id=f"b{i}", subscription=Subscription(topics=["t"], user_data=data))
        for i, data in enumerate(user_data)
    ]
    answer = leader.assign(joined, T)
    given_out = [p for data in answer.values() for p in Assignment.decode(data).partitions.get("t", [])]
    assert sorted(given_out) == list(range(6))


@pytest.mark.parametrize("capacity", [0, -1.0, float("nan"), float("inf"), 1e100, 1e-100])
def test_an_impossible_capacity_is_refused_at_once(capacity):
    with pytest.raises(BadGroupError, match="above 0"):
        Participant("weighted", capacity=capacity)


@pytest.mark.parametrize("capacity", [0, -1.0, float("nan"), float("inf")])
def test_a_capacity_that_is_changed_is_checked_at_once_and_counts_from_the_next_join_on(capacity):
    member = Participant("weighted")
    member.assigned({"t": [0]}, 3)
    with pytest.raises(BadGroupError, match=f"capacity is {capacity}"):
        member.capacity = capacity
    with pytest.raises(TypeError, match="capacity is '2'; it must be a number"):
        member.capacity = "2"
    member.capacity = np.float64(2.0)
    leader = Participant("weighted", load=FixedLoad(load={"t": [1] * 6}))
    owned = rebalance(leader, {"a": leader, "b": member}, T, 4)
    assert (len(owned["a"]), len(owned["b"])) == (2, 4)


def test_an_unknown_strategy_is_refused_at_once():
    with pytest.raises(UnknownAssignorError, match=r"'wieghted' \(did you mean 'weighted'\?\); choose from range"):
        Participant("wieghted")
    with pytest.raises(UnknownAssignorError, match="assignor is an empty list"):
        Participant([])
    with pytest.raises(UnknownAssignorError, match="assignor names 'weighted' twice"):
        Participant(["weighted", Weighted(epsilon=0.01)])
    for wrong in (5, ["weighted", None], {"weighted": 1.0}):
        with pytest.raises(TypeError, match=r"assignor is .*; it must be the name of an assignor"):
            Participant(wrong)
    with pytest.raises(TypeError, match="the assignor 'own' has no traits; give its class a line like"):
        Participant(SimpleNamespace(name="own", assign=None))
    with pytest.raises(UnknownAssignorError, match="'optimal' has no cooperative form"):
        Participant(Cooperative(Optimal()))


class Raises:
    """A source and an algorithm of somebody's that fails."""

    name = "weighted"
    traits = Weighted.traits

    def __init__(self, error=None):
        self.error = error or RuntimeError("the database is gone")

    def snapshot(self, topics):  # noqa: ARG002
        raise self.error

    def assign(self, group):  # noqa: ARG002
        raise self.error


class AnswersText:
    def snapshot(self, topics):  # noqa: ARG002
        return "5 records"


class Broken:
    """An algorithm with a bug: it answers what ``broken`` makes of the group."""

    name = "weighted"
    traits = Weighted.traits

    def __init__(self, broken):
        self.broken = broken

    def assign(self, group):
        return self.broken(group)


FAILING = {
    "a source raises": {"load": Raises()},
    "a source answers text": {"load": AnswersText()},
    "an algorithm raises": {"assignor": Raises()},
    "an algorithm is too large for the group": {"assignor": "optimal"},
    "a library is not installed": {"assignor": Raises(ImportError("No module named 'networkx'"))},
    "an algorithm answers nothing": {"assignor": Broken(lambda _: None)},
    "an algorithm answers too few owners": {"assignor": Broken(lambda group: Owners(group, np.zeros(1, np.int32)))},
    "an algorithm answers a member that there is not": {
        "assignor": Broken(lambda group: Owners(group, np.full(group.size, 7, np.int32)))
    },
}


@pytest.mark.parametrize("how", FAILING)
def test_whatever_fails_on_the_leader_the_group_gets_the_balanced_sticky_answer(how, caplog):
    """Else SyncGroup is never sent, and nobody in the group ever gets a partition."""
    cluster = FakeCluster({"t": 60_000 if how == "an algorithm is too large for the group" else 6})
    share = cluster.counts["t"] // 2
    given_to = {"assignor": "weighted"} | FAILING[how]
    leader, second = Participant(**given_to), Participant(leader_name(given_to))
    first = rebalance(leader, {"a": leader}, cluster, 1)
    owned = rebalance(leader, {"a": leader, "b": second}, cluster, 2)
    again = rebalance(leader, {"a": leader, "b": second}, cluster, 3)
    assert [len(owned["a"]), len(owned["b"])] == [share, share]
    assert owned["a"] < first["a"]
    assert again == owned
    tracebacks = [record for record in own_log(caplog) if record.exc_info]
    assert len(tracebacks) == 1, "the traceback is logged once, not once a rebalance"
    assert leader.targets.failures == 3


def leader_name(given_to):
    return given_to["assignor"] if isinstance(given_to["assignor"], str) else given_to["assignor"].name


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_what_is_no_exception_passes(error):
    leader = Participant(Raises(error))
    with pytest.raises(type(error)):
        rebalance(leader, {"a": leader}, T, 1)


def test_a_partition_for_somebody_who_does_not_read_its_topic_is_never_handed_out(caplog):
    """kafka-python's consumers rejoin for ever when they are given one."""
    leader = Participant(Broken(lambda group: Owners(group, np.zeros(group.size, np.int32))))
    joined = [
        JoinedMember(id=id_, subscription=Subscription.decode(leader.subscription([topic])))
        for id_, topic in (("a", "s"), ("b", "t"))
    ]
    answer = leader.assign(joined, FakeCluster({"s": 1, "t": 1}))
    assert {id_: Assignment.decode(data).partitions for id_, data in answer.items()} == {
        "a": {"s": [0]},
        "b": {"t": [0]},
    }
    assert "partition t-0 is given to a, which does not subscribe to it" in caplog.text


def test_without_load_nothing_moves_between_owners_and_the_log_tells_so(caplog):
    """A group balanced by load has unequal counts. Making them equal would undo what is best known."""
    heavy = LoadSnapshot(load={"t": [1.0] * 35 + [20.0]}, unit="records")
    load = FakeLoad(heavy)
    cluster = FakeCluster({"t": 36})
    leader, *others = (Participant("weighted", load=load) for _ in range(3))
    members = dict(zip("abc", [leader, *others], strict=True))
    by_load = rebalance(leader, members, cluster, 1)
    assert len(set(map(len, by_load.values()))) > 1, "the counts differ, so that there is something to undo"
    load.answer = None
    assert rebalance(leader, members, cluster, 2) == by_load
    assert "members keep their partitions" in caplog.text

    grown = rebalance(leader, members | {"d": Participant("weighted")}, cluster, 3)
    assert all(grown[id_] <= by_load[id_] for id_ in "abc"), "only the newcomer gets anything"
    assert 6 <= len(grown["d"]) <= 12

    del members["c"]
    left = rebalance(leader, members | {"d": Participant("weighted")}, cluster, 4)
    assert all(left[id_] >= grown[id_] for id_ in "ab")
    assert set().union(*left.values()) == {("t", number) for number in range(36)}


def test_a_list_of_strategies_is_eager_as_soon_as_one_of_them_is():
    assert Participant(["cooperative-weighted", "cooperative-sticky"]).cooperative
    assert Participant([Cooperative(Weighted())]).cooperative
    upgrading = Participant(["cooperative-weighted", "range"])
    assert not upgrading.cooperative
    upgrading.assigned({"t": [0, 1]}, 5, "range")
    assert upgrading.strategy == strategies()["range"]
    joined = Subscription.decode(upgrading.subscription(["t"], protocol="cooperative-weighted"))
    assert joined.owned == {}, "it has revoked everything before it joins"
    with pytest.raises(UnknownAssignorError, match=r"elected 'sticky'.*offers cooperative-weighted, range"):
        upgrading.assign([], T, protocol="sticky")


def test_what_range_gave_is_kept_by_weighted_when_the_group_elects_it():
    """The partitions are remembered for all names of the list, so that an upgrade moves little."""
    flat = FixedLoad(load={"t": [1] * 6})
    leader, second = (Participant(["weighted", "range"], load=flat) for _ in range(2))
    members = {"a": leader, "b": second}

    def elected(name, generation):
        joined = [
            JoinedMember(id=id_, subscription=Subscription.decode(each.subscription(["t"], protocol=name)))
            for id_, each in members.items()
        ]
        answer = leader.assign(joined, T, protocol=name)
        given_to = {id_: Assignment.decode(answer[id_]).partitions for id_ in members}
        for id_, each in members.items():
            each.assigned(given_to[id_], generation, name)
        return given_to

    assert elected("range", 1) == elected("weighted", 2) == {"a": {"t": [0, 1, 2]}, "b": {"t": [3, 4, 5]}}


@pytest.mark.parametrize(("sizes", "fits"), [([400_000] * 2, True), ([500_000] * 3, False), ([1_200_000], False)])
def test_a_group_whose_record_a_broker_will_not_take_is_told_before_it_is_refused(sizes, fits, caplog):
    """What Apache Kafka 4.3.1 takes and refuses: SyncGroup answered UNKNOWN_SERVER_ERROR to the last two groups."""
    leader = Participant("range")
    listed = [
        (f"member-{index}", None, Subscription(topics=["t"], user_data=bytes(size)).encode())
        for index, size in enumerate(sizes)
    ]
    for _ in range(2):
        leader.assign(read_joined_members(listed), T)
    assert caplog.text.count("Raise max.message.bytes of the topic __consumer_offsets") == (0 if fits else 1)


@pytest.mark.parametrize("method", ["equip", "lead"])
def test_what_fails_in_watching_the_load_does_not_stop_the_group(method, monkeypatch):
    leader = Participant("weighted")
    leader.lead_by(LagLoad(), live=True, slack_s=1.0)

    def fail(*_):
        raise RuntimeError("out of order")

    monkeypatch.setattr(type(leader.leader), method, fail)
    owned = rebalance(leader, {"a": leader, "b": Participant("weighted")}, T, 1)
    assert sorted(map(len, owned.values())) == [3, 3]
    assert leader.targets.failures == 1
