"""Defects of the assignors that come with the clients, shown through the clients' own hooks, and that ours have none.

Each test has the stock assignor fail before its eyes: where an update of a client mends one, the test says so by
failing, and can go. Defects that only a running consumer shows are in ``test_joins`` and at the end of this module.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AiokafkaSticky
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor as KafkaPythonCooperativeSticky
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as KafkaPythonRoundRobin
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as KafkaPythonSticky
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from loadwise.assignor.clients import aiokafka, kafka_python
from loadwise.assignor.load.source import FixedLoad
from loadwise.protocol.user_data import StickyUserData

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "kafka-clients-4.3.1.jsonl"


class Cluster:
    """What the clients' metadata tells an assignor: numbers of partitions by topic. It notes what it is asked for."""

    def __init__(self, counts, internal=(), number=int):
        self._partitions = {topic: {number(i): None for i in range(count)} for topic, count in counts.items()}
        self._internal = set(internal)
        self.asked = set()

    def topics(self):
        return self._partitions.keys() - self._internal

    def partitions_for_topic(self, topic):
        self.asked.add(topic)
        return set(self._partitions[topic]) if topic in self._partitions else None


class KafkaPython:
    """Hooks called as kafka-python calls them, its own codec between them."""

    sticky = KafkaPythonSticky

    @staticmethod
    def assigned(plug, partitions, generation):
        """The member is given so much in that generation."""
        plug.on_assignment(ConsumerProtocolAssignment(0, list(partitions.items()), b""), generation)

    @staticmethod
    def lead(plug, cluster, joined, instance_ids=None):
        """What the leader answers to these subscriptions in bytes: who gets what."""
        members = [
            SimpleNamespace(
                member_id=member,
                group_instance_id=(instance_ids or {}).get(member),
                metadata=ConsumerProtocolSubscription.decode(data),
            )
            for member, data in joined.items()
        ]
        answer = plug.assign(cluster, members)
        return {m: partitions(ConsumerProtocolAssignment.decode(in_bytes(said))) for m, said in answer.items()}


class Aiokafka:
    """Hooks called as aiokafka calls them, its own codec between them."""

    sticky = AiokafkaSticky

    @staticmethod
    def assigned(plug, partitions, generation):  # noqa: ARG004  (aiokafka never tells its assignor)
        """The member is given so much in that generation."""
        plug.on_assignment(ConsumerProtocolMemberAssignment(0, list(partitions.items()), b""))

    @staticmethod
    def lead(plug, cluster, joined):
        """What the leader answers to these subscriptions in bytes: who gets what."""
        members = {member: ConsumerProtocolMemberMetadata.decode(data) for member, data in joined.items()}
        answer = plug.assign(cluster, members)
        return {m: partitions(ConsumerProtocolMemberAssignment.decode(in_bytes(said))) for m, said in answer.items()}


CLIENTS = pytest.mark.parametrize(
    ("client", "module"), [(KafkaPython, kafka_python), (Aiokafka, aiokafka)], ids=["kafka-python", "aiokafka"]
)


def in_bytes(said):
    return said if isinstance(said, bytes) else bytes(said.encode())


def partitions(assignment):
    return {(topic, number) for topic, number in assignment.partitions()}


def subscriptions(plug, topics_of):
    """Members that were never assigned anything, by id."""
    return {member: in_bytes(plug.metadata(topics)) for member, topics in topics_of.items()}


def claim(client, plug, owned, *, topics=("t",), generation=1):
    """What a member says that had these partitions."""
    client.assigned(plug, owned, generation)
    return in_bytes(plug.metadata(set(topics)))


def kept(answer, owned):
    return sum(
        (topic, number) in answer[member]
        for member, held in owned.items()
        for topic, numbers in held.items()
        for number in numbers
    )


@pytest.fixture(autouse=True)
def no_state_on_the_class(monkeypatch):
    """aiokafka's sticky assignor keeps a member's state on the class: #1175."""
    monkeypatch.setattr(AiokafkaSticky, "member_assignment", None)
    monkeypatch.setattr(AiokafkaSticky, "generation", AiokafkaSticky.DEFAULT_GENERATION_ID)


@pytest.mark.parametrize(("name", "stock"), [("range", KafkaPythonRange), ("roundrobin", KafkaPythonRoundRobin)])
def test_static_members_among_dynamic_ones(name, stock):
    """kafka-python's range and roundrobin forget the members in front of a static one, who get nothing."""
    cluster = Cluster({"t": 6})
    topics_of = {member: ["t"] for member in ("dynamic-1", "static", "dynamic-2")}

    def counts(plug):
        answer = KafkaPython.lead(plug, cluster, subscriptions(plug, topics_of), instance_ids={"static": "i"})
        return {member: len(given) for member, given in answer.items()}

    assert counts(stock()) == {"dynamic-1": 0, "static": 3, "dynamic-2": 3}
    assert counts(kafka_python.assignor(name)) == {"dynamic-1": 2, "static": 2, "dynamic-2": 2}


def test_roundrobin_with_differing_subscriptions():
    """kafka-python's roundrobin raises `KeyError` as soon as it has to skip a member."""
    cluster = Cluster({"t": 2, "u": 2})
    topics_of = {"a": ["t"], "b": ["t", "u"]}
    with pytest.raises(KeyError, match="'b'"):
        KafkaPython.lead(KafkaPythonRoundRobin(), cluster, subscriptions(KafkaPythonRoundRobin(), topics_of))
    ours = kafka_python.assignor("roundrobin")
    assert KafkaPython.lead(ours, cluster, subscriptions(ours, topics_of)) == {
        "a": {("t", 0)},
        "b": {("t", 1), ("u", 0), ("u", 1)},
    }


@pytest.mark.parametrize(
    ("topics_of", "alone"), [({"a": ["t", "later"], "b": ["later"]}, "a"), ({"a": ["later"], "b": ["t"]}, "b")]
)
def test_a_topic_whose_metadata_is_not_there_yet(topics_of, alone):
    """kafka-python's roundrobin raises `KeyError` where a member subscribes to nothing else: nobody gets anything."""
    cluster = Cluster({"t": 2})
    with pytest.raises(KeyError, match=f"'{alone}'"):
        KafkaPython.lead(KafkaPythonRoundRobin(), cluster, subscriptions(KafkaPythonRoundRobin(), topics_of))
    for client, module in ((KafkaPython, kafka_python), (Aiokafka, aiokafka)):
        for strategy in ("range", "roundrobin", "sticky", "weighted"):
            ours = module.assignor(strategy)
            answer = client.lead(ours, cluster, subscriptions(ours, topics_of))
            assert answer == {member: {("t", 0), ("t", 1)} if member == alone else set() for member in topics_of}


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "cooperative-weighted"])
def test_what_a_narrowed_subscription_gives_up(strategy):
    """kafka-python's cooperative sticky keeps for a member what it no longer subscribes to: nobody gets it.

    Nobody is asked to give anything up, so there is no second round in which it would be handed out.
    """
    cluster = Cluster({"t": 4, "u": 1})
    owned = {"narrowed": {"t": [0, 1], "u": [0]}, "other": {"t": [2, 3]}}
    subscribed = {"narrowed": ["t"], "other": ["t", "u"]}
    all_of_t = {"narrowed": {("t", 0), ("t", 1)}, "other": {("t", 2), ("t", 3)}}

    def joined(make):
        return {m: claim(KafkaPython, make(), owned[m], topics=subscribed[m]) for m in owned}

    stock = KafkaPythonCooperativeSticky
    assert KafkaPython.lead(stock(), cluster, joined(stock)) == all_of_t, "u-0 belongs to nobody"

    nothing_lost = {**all_of_t, "other": all_of_t["other"] | {("u", 0)}}
    ours = functools.partial(kafka_python.assignor, strategy)
    assert KafkaPython.lead(ours(), cluster, joined(ours)) == nothing_lost
    if strategy == "cooperative-sticky":
        assert KafkaPython.lead(ours(), cluster, joined(stock)) == nothing_lost, "the claims of stock members"


JAVA = next(v for v in map(json.loads, GOLDEN.read_text().splitlines()) if v["id"] == "random 7 / sticky")
"""Two members of Java's StickyAssignor with six partitions each, and their bytes."""


def had(member):
    owned = {}
    for topic, number in member["owned"]:
        owned.setdefault(topic, []).append(number)
    return owned


def written_by(writer):
    """The two members' subscriptions as the sticky assignor of this client writes them."""
    if writer == "java":
        return {member: bytes.fromhex(said["subscription_bytes"]) for member, said in JAVA["java"].items()}
    client = {"kafka-python": KafkaPython, "aiokafka": Aiokafka}[writer]
    return {
        member["id"]: claim(client, client.sticky(), had(member), topics=member["topics"], generation=7)
        for member in JAVA["members"]
    }


@CLIENTS
@pytest.mark.parametrize("writer", ["kafka-python", "aiokafka", "java"])
def test_sticky_user_data_of_another_client(client, module, writer):
    """kafka-python writes two bytes before its sticky user data, so its members and all others cannot read each other.

    librdkafka's own sticky assignor writes what Java writes.
    """
    cluster = Cluster({topic: described["partitions"] for topic, described in JAVA["topics"].items()})
    owned = {member["id"]: had(member) for member in JAVA["members"]}
    joined = written_by(writer)
    understood = (client is KafkaPython) == (writer == "kafka-python")
    assert (kept(client.lead(client.sticky(), cluster, joined), owned) == 12) == understood
    assert kept(client.lead(module.assignor("sticky"), cluster, joined), owned) == 12


@CLIENTS
@pytest.mark.parametrize("strategy", ["sticky", "weighted"])
def test_topics_that_nobody_in_the_group_reads(client, module, strategy):
    """The sticky assignors go through all topics of the cluster, however few of them the group reads."""
    counts = {"t": 6, **{f"unrelated-{number}": 1 for number in range(50)}}
    topics_of = {"a": ["t"], "b": ["t"]}

    def asked(plug):
        cluster = Cluster(counts)
        answer = client.lead(plug, cluster, subscriptions(plug, topics_of))
        assert [len(given) for given in answer.values()] == [3, 3]
        return cluster.asked

    assert asked(client.sticky()) == set(counts)
    assert asked(module.assignor(strategy)) == {"t"}


@CLIENTS
@pytest.mark.parametrize("strategy", ["sticky", "weighted"])
def test_an_internal_topic(client, module, strategy):
    """The sticky assignors raise `KeyError` when a member reads an internal topic such as ``__consumer_offsets``."""
    cluster = Cluster({"t": 1, "__consumer_offsets": 3}, internal=["__consumer_offsets"])
    topics_of = {"a": ["t", "__consumer_offsets"], "b": ["__consumer_offsets"]}
    stock = client.sticky()
    with pytest.raises(KeyError, match="__consumer_offsets"):
        client.lead(stock, cluster, subscriptions(stock, topics_of))
    ours = module.assignor(strategy)
    answer = client.lead(ours, cluster, subscriptions(ours, topics_of))
    assert [len(given) for given in answer.values()] == [2, 2]


def test_two_aiokafka_consumers_in_one_process():
    """aiokafka #1175: its sticky assignor keeps what a member has on the class, so all members claim the same."""
    owned = {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}

    def claims(make):
        plugs = {member: make() for member in owned}
        for member, plug in plugs.items():
            Aiokafka.assigned(plug, owned[member], 1)
        joined = {member: in_bytes(plug.metadata(["t"])) for member, plug in plugs.items()}
        return {
            member: StickyUserData.decode(ConsumerProtocolMemberMetadata.decode(data).user_data).owned
            for member, data in joined.items()
        }

    assert claims(AiokafkaSticky) == {"a": owned["b"], "b": owned["b"]}
    assert claims(lambda: aiokafka.assignor("sticky")) == owned


def test_a_claim_of_long_ago():
    """aiokafka #1176: a sticky member never says since when, so one that was away takes what is others' by now."""
    cluster = Cluster({"t": 6})
    owned = {"was-away": {"t": [0, 1, 2, 3, 4, 5]}, "a": {"t": [0, 2, 4]}, "b": {"t": [1, 3, 5]}}
    generations = {"was-away": 4, "a": 9, "b": 9}

    def ours(member):
        plug = aiokafka.assignor("sticky")
        # What the factory's consumer does: aiokafka itself does not tell an assignor its generation.
        plug.follow(SimpleNamespace(generation=generations[member], _perform_assignment=None))
        return plug

    def answer(make, leader):
        joined = {m: claim(Aiokafka, make(m), owned[m], generation=generations[m]) for m in owned}
        return Aiokafka.lead(leader, cluster, joined)

    current = {member: owned[member] for member in ("a", "b")}
    assert kept(answer(lambda _: AiokafkaSticky(), AiokafkaSticky()), current) < 4
    assert kept(answer(ours, ours("a")), current) == 4, "two each of three, the third is for who came back"


async def test_aiokafka_never_tells_its_assignor_the_generation(group, topic):
    """aiokafka #1176, in a real group; ``test_groups`` has what our members say there."""
    member = await group.run(AIOKafkaConsumer(topic, partition_assignment_strategy=[AiokafkaSticky], **group.settings))
    await group.settle(6)
    said = StickyUserData.decode(AiokafkaSticky.metadata([topic]).user_data)
    assert said.owned == {topic: [0, 1, 2, 3, 4, 5]}
    assert said.generation == -1 < member.consumer._coordinator.generation


class CountedNumber(int):
    """The number of a partition, which counts how often it is compared to others."""

    compared = 0
    __hash__ = int.__hash__

    def __eq__(self, other):
        CountedNumber.compared += 1
        return int.__eq__(self, other)

    def __lt__(self, other):
        CountedNumber.compared += 1
        return int.__lt__(self, other)


def steps_of_ours(call):
    """How many lines of this package run. A line is one array operation at most, each pass of a loop counts again."""
    ran = 0

    def trace(frame, event, arg):
        nonlocal ran
        if not frame.f_globals.get("__name__", "").startswith("loadwise."):
            return None
        ran += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return ran


def a_member_joined(client, make, count):
    """A call of the leader's assignor: four members share a topic so far, and a fifth has come."""
    joined = {
        f"m{i}": claim(client, make(), {"t": list(range(i * count // 4, (i + 1) * count // 4))}) for i in range(4)
    }
    joined["new"] = in_bytes(make().metadata(["t"]))
    return functools.partial(client.lead, make(), Cluster({"t": count}, number=CountedNumber), joined)


def comparisons(call):
    CountedNumber.compared = 0
    call()
    return CountedNumber.compared


@pytest.mark.parametrize(
    ("client", "module", "strategy", "stock"),
    [
        (KafkaPython, kafka_python, "sticky", KafkaPythonSticky),
        (KafkaPython, kafka_python, "cooperative-sticky", KafkaPythonCooperativeSticky),
        (Aiokafka, aiokafka, "sticky", AiokafkaSticky),
        (KafkaPython, kafka_python, "weighted", KafkaPythonSticky),
        (Aiokafka, aiokafka, "weighted", AiokafkaSticky),
    ],
)
def test_four_times_the_partitions_are_not_sixteen_times_the_work(client, module, strategy, stock):
    """The sticky assignors search lists of all partitions for each partition: their work grows with the square.

    Ours never compares two partitions one by one, and takes steps at most in proportion to their number: weighted
    places one by one what has to move, the others take as many steps however long the arrays are.
    """
    load = FixedLoad(load={"t": [1 + number % 7 for number in range(4000)]}) if strategy == "weighted" else None

    def fresh_stock():
        stock.member_assignment = None  # aiokafka's is the class
        return stock()

    few, many = (comparisons(a_member_joined(client, fresh_stock, count)) for count in (100, 400))
    assert many > 10 * few

    def ours():
        return module.assignor(strategy, load=load)

    assert comparisons(a_member_joined(client, ours, 400)) == 0
    few, many = (steps_of_ours(a_member_joined(client, ours, count)) for count in (1000, 4000))
    assert 0 < many < (4 if strategy == "weighted" else 1.1) * few
