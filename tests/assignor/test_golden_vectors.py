"""Ours against the answers of the real kafka-clients 4.3.1, kept in ``tests/golden`` (its ``make.py`` made them)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from golden_vectors import VECTORS, grouped, is_equal, java_answer, quality

from loadwise.assignor.case import Case
from loadwise.assignor.strategy import strategy
from loadwise.assignor.subscription import JoinedMember, read_member, write_subscription
from loadwise.protocol.consumer import Assignment, Subscription


def _of(*names: str) -> list[Any]:
    return [pytest.param(vector, id=vector["id"]) for vector in VECTORS if vector["strategy"] in names]


def _case(vector: dict[str, Any]) -> Case:
    return Case.parse({field: value for field, value in vector.items() if field != "java"})


@pytest.mark.parametrize("vector", _of("range", "roundrobin"))
def test_range_and_roundrobin_answer_what_java_answers(vector: dict[str, Any]) -> None:
    assert _case(vector).answer().by_member() == java_answer(vector)


@pytest.mark.parametrize("vector", _of("sticky"))
def test_sticky_is_never_worse_than_javas_answer(vector: dict[str, Any]) -> None:
    ours, java = _case(vector).answer().by_member(), java_answer(vector)
    owners = Counter((topic, number) for topics in ours.values() for topic in topics for number in topics[topic])
    assert set(owners.values()) <= {1}
    assert owners == Counter((topic, n) for topics in java.values() for topic in topics for n in topics[topic])
    assert quality(vector, ours) <= quality(vector, java)


@pytest.mark.parametrize("vector", [p for p in _of("sticky", "cooperative-sticky") if is_equal(p.values[0])])
def test_with_equal_subscriptions_and_no_racks_sticky_answers_what_java_answers(vector: dict[str, Any]) -> None:
    """Also the members that keep a partition more, which the order of a ``HashMap`` decides."""
    assert _case(vector).answer().by_member() == java_answer(vector)


@pytest.mark.parametrize("vector", _of("cooperative-sticky"))
def test_cooperative_sticky_hands_out_nothing_that_another_member_claims(vector: dict[str, Any]) -> None:
    claims: dict[tuple[str, int], dict[str, int]] = {}
    for member in vector["members"]:
        for claim in member.get("owned", ()):
            claims.setdefault(tuple(claim), {})[member["id"]] = member["generation"]
    ours = _case(vector).answer().by_member()
    given = {(topic, n): member for member, topics in ours.items() for topic in topics for n in topics[topic]}
    for partition, member in given.items():
        others = {other: at for other, at in claims.get(partition, {}).items() if other != member}
        # Whoever has the newest claim keeps what it owns; anybody else must wait until nobody claims it.
        assert not others or claims[partition].get(member, -1) > max(others.values())
    free = {
        (topic, number)
        for topic in {topic for member in vector["members"] for topic in member["topics"]}
        for number in range(vector["topics"].get(topic, {"partitions": 0})["partitions"])
    } - claims.keys()
    assert free <= given.keys(), "what nobody claims is handed out at once"


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_members_say_of_themselves_what_java_members_say(vector: dict[str, Any]) -> None:
    chosen = strategy(vector["strategy"])
    for member in vector["members"]:
        java = Subscription.decode(bytes.fromhex(vector["java"][member["id"]]["subscription_bytes"]))
        once_assigned = "generation" in member
        ours = write_subscription(
            chosen,
            member["topics"],
            owned=grouped(member["owned"]) if once_assigned else None,
            generation=member.get("generation", -1),
            capacity=1.0,
            rack=member.get("rack"),
        )
        if len(member["topics"]) == 1:  # Java's user data lists topics in the order of a hash map
            assert ours.encode().hex() == vector["java"][member["id"]]["subscription_bytes"]
        joined = JoinedMember(id=member["id"], instance_id=member.get("group_instance_id"), subscription=java)
        assert read_member(chosen, joined) == read_member(
            chosen,
            JoinedMember(id=joined.id, instance_id=joined.instance_id, subscription=Subscription.decode(ours.encode())),
        )


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_assignments_that_java_writes_are_read_as_java_meant_them(vector: dict[str, Any]) -> None:
    for member, partitions in java_answer(vector).items():
        read = Assignment.decode(bytes.fromhex(vector["java"][member]["assignment_bytes"]))
        assert {topic: sorted(numbers) for topic, numbers in read.partitions.items()} == partitions
        if len(partitions) == 1:  # of several, Java's order is that of a hash map
            assert (
                Assignment(partitions=dict(read.partitions)).encode().hex()
                == vector["java"][member]["assignment_bytes"]
            )
