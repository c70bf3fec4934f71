"""What members say of themselves, in the bytes of Kafka's own assignors, and what a leader makes of others' bytes."""

import logging

import pytest
from group_strategies import groups
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.model import GroupSnapshot
from loadwise.assignor.strategy import strategies, strategy
from loadwise.assignor.subscription import JoinedMember, read_member, read_subscription, write_subscription
from loadwise.protocol.consumer import Subscription
from loadwise.protocol.user_data import CooperativeStickyUserData, MemberTerms, StickyUserData

FIRST = {"owned": None, "generation": -1, "capacity": 1.0, "rack": None}
LATER = {"owned": {"t": [0, 1]}, "generation": 1, "capacity": 2.0, "rack": "r"}


def subscription(name, topics=("t",), **said):
    return write_subscription(strategy(name), topics, **said)


@pytest.mark.parametrize(
    ("name", "first", "later"),
    [
        ("range", None, None),
        ("roundrobin", None, None),
        # subscriptionUserData() of kafka-clients 4.3.1 before any assignment, and after t-0 and t-1 at generation 1.
        ("sticky", None, bytes.fromhex("0000000100017400000002000000000000000100000001")),
        ("cooperative-sticky", bytes.fromhex("ffffffff"), bytes.fromhex("00000001")),
    ],
)
def test_stock_names_carry_java_s_user_data(name, first, later):
    assert subscription(name, **FIRST).user_data == first
    assert subscription(name, **LATER).user_data == later


@pytest.mark.parametrize("name", strategies())
def test_owned_partitions_are_in_the_subscription_of_cooperative_members_only(name):
    said = subscription(name, **LATER)
    assert said.owned == ({"t": [0, 1]} if strategy(name).cooperative else {})
    assert (said.generation, said.rack) == (1, "r")


@pytest.mark.parametrize("name", strategies())
def test_partitions_of_a_topic_left_are_not_claimed(name):
    """kafka-python's cooperative sticky claims them, and then nobody gets them."""
    narrowed = subscription(name, topics=("s",), **LATER)
    assert narrowed.owned == {}
    if name in ("sticky", "weighted"):
        assert StickyUserData.decode(narrowed.user_data).owned == {}
    assert read_member(strategy(name), JoinedMember(id="m", subscription=narrowed)).owned == {}
    stock = Subscription(topics=["s"], owned={"t": [0]}, user_data=StickyUserData(owned={"t": [0]}).encode())
    assert read_member(strategy(name), JoinedMember(id="m", subscription=stock)).owned == {}


@given(groups(), st.sampled_from([name for name in strategies() if name not in ("range", "roundrobin")]))
def test_what_is_written_is_read(group, name):
    used = strategy(name)
    for member in group.members:
        said = write_subscription(
            used,
            member.topics,
            owned=member.owned,
            generation=member.generation,
            capacity=member.capacity,
            rack=member.rack,
        )
        joined = JoinedMember(
            id=member.id, instance_id=member.instance_id, subscription=Subscription.decode(said.encode())
        )
        read = read_member(used, joined)
        held = {topic: sorted(n) for topic, n in member.owned.items() if topic in member.topics and n}
        assert {topic: sorted(n) for topic, n in read.owned.items()} == held
        assert (read.id, read.instance_id, read.rack) == (member.id, member.instance_id, member.rack)
        assert (sorted(read.topics), read.generation) == (sorted(member.topics), member.generation)
        assert read.capacity == (member.capacity if "weighted" in name else 1.0)


@pytest.mark.parametrize(
    ("name", "user_data"),
    [
        ("sticky", b"\1\2\3"),
        ("weighted", b"\1\2\3"),
        ("weighted", StickyUserData(owned={"t": [0]}, terms=MemberTerms(capacity=2.0)).encode()[:-1]),
        ("cooperative-sticky", b"\1"),
        ("cooperative-weighted", CooperativeStickyUserData(generation=5).encode() + b"\0\0\1"),
    ],
)
def test_unreadable_user_data_is_no_claim_and_a_warning(name, user_data, caplog):
    joined = JoinedMember(id="stranger", subscription=Subscription(topics=["t"], user_data=user_data))
    with caplog.at_level(logging.WARNING):
        member = read_member(strategy(name), joined)
    assert (member.owned, member.generation, member.capacity) == ({}, -1, 1.0)
    assert "stranger" in caplog.text
    assert name in caplog.text


def test_a_cooperative_member_s_partitions_do_not_depend_on_its_user_data(caplog):
    joined = JoinedMember(id="m", subscription=Subscription(topics=["t"], owned={"t": [0]}, user_data=b"\1"))
    assert read_member(strategy("cooperative-sticky"), joined).owned == {"t": [0]}
    old = Subscription(topics=["t"], owned={"t": [0]}, user_data=CooperativeStickyUserData(generation=4).encode())
    assert read_member(strategy("cooperative-sticky"), JoinedMember(id="m", subscription=old)).generation == 4


def test_a_member_without_terms_has_capacity_1():
    plain = Subscription(topics=["t"], user_data=StickyUserData(owned={"t": [0]}, generation=3).encode())
    assert read_member(strategy("weighted"), JoinedMember(id="m", subscription=plain)).capacity == 1.0


def test_an_unreadable_subscription_subscribes_to_nothing(caplog):
    assert read_subscription("stranger", b"\0\1\2") == Subscription()
    assert "stranger" in caplog.text


@pytest.mark.parametrize("capacity", [1e-300, 1e300])
def test_no_capacity_that_a_member_says_can_stop_the_group(capacity):
    said = subscription("weighted", **{**FIRST, "capacity": capacity})
    read = read_member(strategy("weighted"), JoinedMember(id="m", subscription=said))
    assert GroupSnapshot.of([read], {"t": 1}).members == ("m",)


@pytest.mark.parametrize("capacity", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["weighted", "cooperative-weighted"])
def test_a_capacity_that_cannot_be_does_not_cost_a_member_its_partitions(name, capacity, caplog):
    said = subscription(name, **{**LATER, "capacity": capacity})
    read = read_member(strategy(name), JoinedMember(id="m7", subscription=said))
    assert (read.owned, read.generation, read.capacity) == ({"t": [0, 1]}, 1, 1.0)
    assert "'m7' sent" in caplog.text


def test_an_eager_member_writes_no_partitions_as_held_under_a_cooperative_name():
    """In the middle of an upgrade its list has an eager name: it has revoked everything before it joins."""
    said = subscription("cooperative-weighted", **LATER, holds=False)
    assert (said.owned, said.generation) == ({}, 1)
