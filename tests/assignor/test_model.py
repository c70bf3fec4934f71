"""The group as rows: Kafka's order, claims, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from group_strategies import Group, groups
from hypothesis import given, settings
from hypothesis import strategies as st

from loadwise.assignor.answer import encode
from loadwise.assignor.model import NOBODY, Assignment, GroupSnapshot, Member, TopicPartition
from loadwise.protocol import consumer

FULLWIDTH_TILDE, GRINNING_FACE = "\uff5e", "\U0001f600"


def test_strings_are_ordered_by_utf16_unit_and_static_members_come_first() -> None:
    members = [
        Member(id=FULLWIDTH_TILDE, topics=["t"]),
        Member(id=GRINNING_FACE, topics=["t"]),
        Member(id="a", topics=["t"]),
        Member(id="z", topics=["t"], instance_id=FULLWIDTH_TILDE),
        Member(id="b", topics=["t"], instance_id=GRINNING_FACE),
    ]
    group = GroupSnapshot.of(members, {"t": 1})
    assert group.members == ("b", "z", "a", GRINNING_FACE, FULLWIDTH_TILDE)
    assert group.instance_ids == (GRINNING_FACE, FULLWIDTH_TILDE, None, None, None)
    topics = GroupSnapshot.of(
        [Member(id="a", topics=[FULLWIDTH_TILDE, GRINNING_FACE])], dict.fromkeys((FULLWIDTH_TILDE, GRINNING_FACE), 1)
    ).topics
    assert topics == (GRINNING_FACE, FULLWIDTH_TILDE)


def owners(*members: Member, partitions: int = 4) -> list[str | None]:
    group = GroupSnapshot.of(members, {"t": partitions})
    return [Assignment(group, group.owner).owner_of("t", p) for p in range(partitions)]


def test_a_claim_makes_an_owner() -> None:
    a = Member(id="a", topics=["t"], owned={"t": [1, 3]}, generation=2)
    b = Member(id="b", topics=["t"], owned={"t": [0]}, generation=2)
    assert owners(a, b) == ["b", "a", None, "a"]


def test_the_higher_generation_wins_a_doubled_claim_and_equal_ones_both_lose() -> None:
    a = Member(id="a", topics=["t"], owned={"t": [0, 1, 2]}, generation=5)
    b = Member(id="b", topics=["t"], owned={"t": [1, 2, 3]}, generation=4)
    assert owners(a, b) == ["a", "a", "a", "b"]
    c = Member(id="c", topics=["t"], owned={"t": [2, 3]}, generation=5)
    assert owners(a, b, c) == ["a", "a", None, "c"]
    assert owners(Member(id="n", topics=["t"], owned={"t": [0]}), a) == ["a", "a", "a", None]


def test_claims_on_what_is_gone_or_left_own_nothing() -> None:
    a = Member(id="a", topics=["t"], owned={"t": [-1, 3, 4, 99], "gone": [0]}, generation=5)
    assert owners(a) == [None, None, None, "a"]
    left = Member(id="l", topics=[], owned={"t": [0, 3]}, generation=6)
    # What `l` was given last and reads no more was taken from `a` before: nobody rightly owns it.
    assert owners(a, left) == [None] * 4
    group = GroupSnapshot.of([a, left], {"t": 4})
    assert group.claim_row.tolist() == [0, 3, 3], "staging still has to see all claims on partitions that exist"


def test_topics_with_the_same_subscribers_are_of_one_class() -> None:
    members = [Member(id="a", topics=["t", "u", "v"]), Member(id="b", topics=["v", "t"])]
    group = GroupSnapshot.of(members, {"t": 1, "u": 2, "v": 1})
    t, u, v = group.class_of_topic.tolist()
    assert t == v != u
    assert group.subscribers_of_class[t].tolist() == [True, True]
    assert group.subscribers_of_class[u].tolist() == [True, False]
    assert group.class_of.tolist() == [t, u, u, v]
    assert not group.equal_subscriptions


def test_loads_may_be_short_missing_or_unknown() -> None:
    group = GroupSnapshot.of([Member(id="a", topics=["t", "u"])], {"t": 3, "u": 1}, load={"t": [1.5, None]})
    assert group.load is not None
    np.testing.assert_array_equal(group.load, [1.5, math.nan, math.nan, math.nan])


def test_an_empty_rack_is_no_rack() -> None:
    members = [Member(id="a", topics=["t"], rack=""), Member(id="b", topics=["t"], rack="r1")]
    group = GroupSnapshot.of(members, {"t": 2}, racks={"t": [["r0", "r1"], []]})
    assert group.racks == ("r0", "r1")
    assert group.member_rack.tolist() == [-1, 1]
    assert group.partition_racks is not None
    assert group.partition_racks.tolist() == [[True, True], [False, False]]


def test_rows_and_names_go_together() -> None:
    group = GroupSnapshot.of([Member(id="a", topics=["t", "u"]), Member(id="b", topics=["u"])], {"t": 2, "u": 3})
    assert [group.name_of(row) for row in range(group.size)] == [("t", 0), ("t", 1), ("u", 0), ("u", 1), ("u", 2)]
    assignment = Assignment(group, np.array([0, 0, 1, NOBODY, 0], np.int32))
    assert assignment.by_member() == {"a": {"t": [0, 1], "u": [2]}, "b": {"u": [0]}}
    assert assignment.counts().tolist() == [3, 1]
    assert assignment.owner_of("u", 1) is None
    assert assignment.owner_of("u", 0) == "b"
    for topic, partition in (("u", 3), ("u", -1), ("x", 0)):
        with pytest.raises(KeyError):
            assignment.owner_of(topic, partition)
    assert TopicPartition("t", 1) == ("t", 1)


@given(st.data())
@settings(deadline=None)
def test_names_and_bytes_say_what_the_rows_say(data: st.DataObject) -> None:
    group = data.draw(groups(load=False, racks=False)).snapshot()
    anybody = st.integers(NOBODY, len(group.members) - 1)
    owner = data.draw(st.lists(anybody, min_size=group.size, max_size=group.size))
    said: dict[str, dict[str, list[int]]] = {member: {} for member in group.members}
    for row, member in enumerate(owner):
        if member != NOBODY:
            topic, partition = group.name_of(row)
            said[group.members[member]].setdefault(topic, []).append(partition)
    assignment = Assignment(group, np.array(owner, np.int32))
    assert assignment.by_member() == said
    assert assignment.pairs() == {
        member: [(topic, partition) for topic in owned for partition in owned[topic]] for member, owned in said.items()
    }
    assert {member: consumer.Assignment.decode(data) for member, data in encode(assignment).items()} == {
        member: consumer.Assignment(partitions=partitions) for member, partitions in said.items()
    }
    assert encode(assignment) == {
        member: consumer.Assignment(partitions=partitions).encode() for member, partitions in said.items()
    }


@given(groups(load=False, racks=False))
@settings(deadline=None)
def test_claims_are_those_on_partitions_that_exist(group: Group) -> None:
    rows = group.snapshot()
    claims = {
        (topic, partition, member.id)
        for member in group.members
        for topic, partitions in member.owned.items()
        for partition in partitions
        if topic in rows.topics and 0 <= partition < group.partitions[topic]
    }
    found = [
        (*rows.name_of(row), rows.members[member])
        for row, member in zip(rows.claim_row, rows.claim_member, strict=True)
    ]
    assert len(found) == len(claims)
    assert set(found) == claims
    assert (np.diff(rows.claim_row * len(rows.members) + rows.claim_member) > 0).all()


def test_an_answer_by_member_is_a_mapping_that_makes_each_part_when_it_is_asked_for() -> None:
    members = [Member(id=name, topics=["t", "u"]) for name in "abc"]
    group = GroupSnapshot.of(members, {"t": 3, "u": 2})
    answer = Assignment(group, np.array([0, 2, 0, NOBODY, 2], np.int32)).by_member()
    assert answer == {"a": {"t": [0, 2]}, "b": {}, "c": {"t": [1], "u": [1]}}
    assert list(answer) == ["a", "b", "c"]
    assert "b" in answer
    assert "d" not in answer
    answer["a"]["t"].append(7)
    assert answer["a"] == {"t": [0, 2]}, "what was handed out is the caller's"
    assert repr(answer) == repr(dict(answer))
    with pytest.raises(KeyError):
        answer["d"]
