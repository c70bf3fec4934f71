"""The consumer protocol against Java's bytes, kafka-python's codec and aiokafka's."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from loadwise.protocol.consumer import Assignment, Subscription
from loadwise.protocol.errors import MalformedBytesError, ProtocolError, UnencodableError
from loadwise.protocol.primitive import Names
from loadwise.protocol.user_data import StickyUserData

# Printed by ConsumerProtocol.serializeSubscription(subscription, version) of kafka-clients 4.3.1, versions 0 to 3, for
# topics {t, s}, owned t-1, s-0, t-0 at generation 7, rack east-1, with CooperativeStickyAssignor's own user data.
JAVA_COOPERATIVE = [
    bytes.fromhex(text)
    for text in (
        "0000000000020001730001740000000400000007",
        "0001000000020001730001740000000400000007000000020001730000000100000000000174000000020000000000000001",
        "000200000002000173000174000000040000000700000002000173000000010000000000017400000002000000000000000100000007",
        "0003000000020001730001740000000400000007000000020001730000000100000000000174000000020000000000000001000000070006"
        "656173742d31",
    )
]
# The same for RangeAssignor (no user data), topics {b, a}, and with the topics x, U+FF5E, U+1F600, é.
JAVA_RANGE = bytes.fromhex("000300000002000161000162ffffffff00000000ffffffffffff")
JAVA_UTF16 = bytes.fromhex("0003000000040001780002c3a90004f09f98800003efbd9effffffff00000000ffffffffffff")
# ConsumerProtocol.serializeAssignment of a-0, a-1, b-0, b-1.
JAVA_ASSIGNMENT = bytes.fromhex("000300000002000161000000020000000000000001000162000000020000000000000001ffffffff")

OWNED = {"s": [0], "t": [0, 1]}
COOPERATIVE = Subscription(topics=["s", "t"], user_data=b"\0\0\0\7", owned=OWNED, generation=7, rack="east-1")

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
partitions = st.dictionaries(
    names, st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5, unique=True).map(sorted)
)
subscriptions = st.builds(
    Subscription,
    topics=st.lists(names, max_size=5).map(lambda topics: sorted(topics, key=lambda t: t.encode("utf-16-be"))),
    user_data=st.none() | st.binary(max_size=30),
    owned=partitions,
    generation=st.integers(-1, 2**31 - 1),
    rack=st.none() | names,
)


@pytest.mark.parametrize(
    ("subscription", "java"),
    [
        (COOPERATIVE, JAVA_COOPERATIVE[3]),
        (replace(COOPERATIVE, topics=["t", "s"], owned={"t": [1, 0], "s": [0]}), JAVA_COOPERATIVE[3]),
        (Subscription(topics={"b", "a"}), JAVA_RANGE),
        (Subscription(topics=["x", "\uff5e", "\U0001f600", "é"]), JAVA_UTF16),
    ],
)
def test_a_subscription_has_java_s_bytes(subscription, java):
    assert subscription.encode() == java


@pytest.mark.parametrize("version", range(4))
def test_every_version_of_java_s_subscription_is_read(version):
    read = Subscription.decode(JAVA_COOPERATIVE[version])
    assert read.topics == ["s", "t"]
    assert read.user_data == b"\0\0\0\7"
    assert read.owned == (OWNED if version >= 1 else {})
    assert read.generation == (7 if version >= 2 else -1)
    assert read.rack == ("east-1" if version >= 3 else None)


def test_a_newer_version_is_read_as_v3_and_what_follows_is_ignored():
    assert Subscription.decode(b"\x00\x63" + JAVA_COOPERATIVE[3][2:] + b"more") == COOPERATIVE
    assert Assignment.decode(b"\x00\x63" + JAVA_ASSIGNMENT[2:] + b"more") == Assignment.decode(JAVA_ASSIGNMENT)


def test_an_assignment_has_java_s_bytes():
    given_partitions = {"a": [0, 1], "b": np.array([0, 1])}
    assert Assignment(partitions=given_partitions).encode() == JAVA_ASSIGNMENT
    assert Assignment.decode(JAVA_ASSIGNMENT) == Assignment(partitions={"a": [0, 1], "b": [0, 1]})
    assert Assignment.decode(b"") == Assignment(), "the broker's answer to a member that the leader left out"


@given(subscriptions)
def test_subscriptions_survive_the_round_trip_and_other_clients_read_them_alike(subscription):
    data = subscription.encode()
    assert Subscription.decode(data) == subscription

    theirs = ConsumerProtocolSubscription.decode(data)
    assert (theirs.topics, theirs.user_data, theirs.generation_id, theirs.rack_id) == (
        subscription.topics,
        subscription.user_data,
        subscription.generation,
        subscription.rack,
    )
    assert {owned.topic: owned.partitions for owned in theirs.owned_partitions} == subscription.owned
    assert bytes(theirs.encode()) == data

    aiokafka = ConsumerProtocolMemberMetadata.decode(data)
    assert (aiokafka.subscription, aiokafka.user_data) == (subscription.topics, subscription.user_data)


@given(partitions, st.none() | st.binary(max_size=9))
def test_assignments_survive_the_round_trip_and_other_clients_read_them_alike(owned, user_data):
    data = Assignment(partitions=owned, user_data=user_data).encode()
    assert Assignment.decode(data) == Assignment(partitions=owned, user_data=user_data)
    assert dict(ConsumerProtocolAssignment.decode(data).assigned_partitions) == owned
    assert dict(ConsumerProtocolMemberAssignment.decode(data).assignment) == owned


@given(st.binary(max_size=80) | st.binary(max_size=60).map(lambda tail: b"\0\3" + tail))
def test_random_bytes_are_a_value_or_an_error_of_ours(data):
    for kind in (Subscription, Assignment):
        with contextlib.suppress(ProtocolError):
            kind.decode(data)


@given(subscriptions, st.data())
def test_damaged_bytes_are_a_value_or_an_error_of_ours(subscription, data):
    encoded = bytearray(subscription.encode())
    encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ProtocolError):
        Subscription.decode(bytes(encoded))


@given(st.data())
def test_no_strict_part_of_a_subscription_is_one(data):
    length = data.draw(st.integers(0, len(JAVA_COOPERATIVE[3]) - 1))
    with pytest.raises(MalformedBytesError):
        Subscription.decode(JAVA_COOPERATIVE[3][:length])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("0003 7fffffff", "topics before byte 6 claims 2147483647 elements, but 0 bytes are left"),
        ("0003 ffffffff", "topics before byte 6 claims -1 elements"),
        ("ffff 00000000", "the subscription has version -1"),
        ("0000 00000001 ffff 00000000", "topic at byte 6 is null"),
        ("0000 00000001 0001 ff 00000000", "topic before byte 9 is not UTF-8"),
    ],
)
def test_errors_name_the_field_and_the_place(data, message):
    with pytest.raises(MalformedBytesError, match=message):
        Subscription.decode(bytes.fromhex(data))


def test_what_the_wire_has_no_form_for_is_refused():
    with pytest.raises(UnencodableError, match="at most 32,767"):
        Subscription(topics=["t" * 40_000]).encode()
    with pytest.raises(UnencodableError, match="no UTF-8 form"):
        Subscription(topics=["\ud800"]).encode()


@given(st.lists(subscriptions, max_size=6))
def test_what_members_share_is_read_as_if_each_were_alone(group):
    shared = Names()
    said = [(member.encode(), StickyUserData(owned=member.owned, generation=3).encode()) for member in group]
    for subscription, user_data in said + said[::-1]:
        assert Subscription.decode(subscription, shared) == Subscription.decode(subscription)
        assert StickyUserData.decode(user_data, shared) == StickyUserData.decode(user_data)


@given(st.lists(subscriptions, min_size=2, max_size=2), st.data())
def test_a_name_that_another_member_said_does_not_hide_damage(group, data):
    shared = Names()
    Subscription.decode(group[0].encode(), shared)
    damaged = bytearray(group[data.draw(st.sampled_from([0, 1]))].encode())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    answers = []
    for known in (shared, None):
        try:
            answers.append(Subscription.decode(bytes(damaged), known))
        except MalformedBytesError as error:
            answers.append(str(error))
    assert answers[0] == answers[1]


def test_a_topic_that_comes_twice_is_read_as_one():
    data = bytes.fromhex("0001 00000000 ffffffff 00000002 0001 74 00000001 00000000 0001 74 00000002 0000000200000001")
    assert Subscription.decode(data).owned == {"t": [0, 2, 1]}


def test_a_null_topic_is_refused_even_where_its_length_could_be_that_of_what_follows():
    data = bytes.fromhex("0001 00000000 ffffffff 00000001 ffff") + bytes(70_000)
    with pytest.raises(MalformedBytesError, match="topic of owned partitions at byte 14 is null"):
        Subscription.decode(data)
