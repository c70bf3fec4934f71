"""Events of a group with long work: handled in their order, and answered as if each had taken one turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from client_messages import client_request, request_bytes
from consumer_groups import FakeTopics
from hypothesis import given
from hypothesis import strategies as st
from wires import Wire, only

from loadwise.coordinator import turns
from loadwise.coordinator.groups.effects import Reply
from loadwise.coordinator.groups.events import (
    CommitOffsets,
    Committer,
    ConsumerHeartbeat,
    Event,
    ForceRebalance,
    Leave,
    Leaver,
)
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.groups.service.operations import kick
from loadwise.protocol.error_codes import ErrorCode

MEMBERS = st.sampled_from("abc")
SUBSCRIPTIONS = st.sampled_from([{"regex": ".*"}, {"regex": "t.*"}, {"topics": ["t", "u"]}, {"topics": ["v"]}])


@pytest.fixture(autouse=True)
def _one_row_in_a_turn() -> Iterator[None]:
    with mock.patch.object(turns, "ROWS_IN_A_TURN", 1):
        yield


def joining(token: int, member_id: str = "a", **fields: Any) -> ConsumerHeartbeat:
    subscribed = {"rebalance_timeout_ms": 60_000, "owned": {}} | (fields or {"regex": ".*"})
    return ConsumerHeartbeat(token=token, member_id=member_id, epoch=0, **subscribed)


def event_of(token: int, kind: str, member_id: str, epoch: int, subscription: dict[str, Any]) -> Event:
    match kind:
        case "join":
            return joining(token, member_id, **subscription)
        case "beat":
            return ConsumerHeartbeat(token=token, member_id=member_id, epoch=epoch, owned={})
        case "leave":
            return ConsumerHeartbeat(token=token, member_id=member_id, epoch=-1)
        case "remove":
            return Leave(token=token, leavers=[Leaver(member_id, None)])
        case _:
            return ForceRebalance()


def the_rest(groups: Groups) -> list[Reply]:
    replies: list[Reply] = []
    while groups.has_unfinished:
        replies += groups.go_on()
    return replies


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from("gh"),
            st.sampled_from(["join", "join", "beat", "beat", "leave", "remove", "force"]),
            MEMBERS,
            st.integers(1, 6),
            SUBSCRIPTIONS,
            st.integers(0, 40),
        ),
        max_size=25,
    )
)
def test_answers_and_records_do_not_depend_on_the_turns(steps: list[tuple[str, str, str, int, Any, int]]) -> None:
    topics = FakeTopics(t=3, u=1, v=2, tt=4)
    at_once, in_turns = Groups(topics=topics), Groups(topics=topics)
    expected: list[Reply] = []
    got: list[Reply] = []
    for token, (group_id, kind, member_id, epoch, subscription, pieces) in enumerate(steps, 1):
        event = event_of(token, kind, member_id, epoch, subscription)
        expected += [*at_once.handle(group_id, event, token), *the_rest(at_once)]
        got += in_turns.handle(group_id, event, token)
        for _ in range(pieces):
            got += in_turns.go_on() if in_turns.has_unfinished else []
    got += the_rest(in_turns)
    assert sorted(got, key=lambda reply: reply.token) == expected
    for group_id in "gh":
        assert [*in_turns.journal.of_group(group_id)] == [*at_once.journal.of_group(group_id)]


def test_an_event_waits_for_the_one_before_and_other_groups_do_not() -> None:
    groups = Groups(topics=FakeTopics(t=3, u=1))
    assert groups.handle("g", joining(1), 0) == []
    assert groups.handle("g", joining(2, "b"), 0) == []
    assert groups.handle("h", joining(3, topics=[]), 0) == []
    assert [reply.token for reply in the_rest(groups)] == [3, 1, 2], "the short work of h ends first"
    assert not groups.is_busy("g")


def test_a_commit_does_not_wait() -> None:
    groups = Groups(topics=FakeTopics(t=3, u=1))
    groups.handle("g", joining(1), 0)
    commit = CommitOffsets(token=2, who=Committer(generation=4), offsets={})
    (reply,) = groups.handle("g", commit, 0)
    assert reply.token == 2
    assert [reply.token for reply in the_rest(groups)] == [1]


def test_work_that_fails_is_answered_and_the_next_event_is_handled(caplog: pytest.LogCaptureFixture) -> None:
    groups = Groups(topics=FakeTopics(t=3, u=1))

    def fails(name: str) -> bool:
        if name == "t":
            return True
        raise OverflowError("as a defect would")

    assert groups.handle("g", joining(1, regex=".*", may_describe=fails), 0) == []
    groups.handle("g", joining(2, "b"), 0)
    failed, well = the_rest(groups)
    assert (failed.token, failed.body.error) == (1, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert (well.token, well.body.error) == (2, ErrorCode.NONE)
    assert "group 'g' failed to handle ConsumerHeartbeat" in caplog.text


def test_a_group_moves_only_once_its_events_are_handled() -> None:
    groups = Groups(topics=FakeTopics(t=3, u=1))
    groups.handle("g", joining(1), 0)
    replies = groups.reload("g", 0)
    assert [(reply.token, reply.body.error) for reply in replies] == [(1, ErrorCode.NONE)]
    assert list(groups.all()["g"].members) == ["a"]


def test_a_member_is_kicked_only_once_its_groups_events_are_handled() -> None:
    groups = Groups(topics=FakeTopics(t=3, u=1))
    groups.handle("g", joining(1), 0)
    the_rest(groups)
    groups.handle("g", joining(2, "b"), 0)
    assert [reply.token for reply in kick(groups, "g", "a", 0)] == [2]
    assert list(groups.all()["g"].members) == ["b"]


def test_a_group_is_deleted_only_once_its_events_are_handled() -> None:
    wire = Wire()
    join = client_request(
        "ConsumerGroupHeartbeat", 1, group_id="new", member_id="a", member_epoch=0, rebalance_timeout_ms=1000,
        subscribed_topic_regex=".*", topic_partitions=[],
    )  # fmt: skip
    delete = client_request("DeleteGroups", 2, groups_names=["new"])
    assert [*wire.begin(request_bytes(join)), *wire.begin(request_bytes(delete))] == []
    joined, deleted = sorted(wire.finish(), key=lambda answer: answer.call.token)
    assert wire.read(joined, join).error_code == ErrorCode.NONE
    assert only(wire.read(deleted, delete).results).error_code == ErrorCode.NON_EMPTY_GROUP
