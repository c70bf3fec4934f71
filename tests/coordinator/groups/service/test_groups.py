"""All groups together: what is answered for groups that are not there, commits, and the rebuild from the journal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from classic_events import join_event, sync_event
from commits import commit
from hypothesis import given
from hypothesis import strategies as st

from loadwise.coordinator.groups.classic.states import GroupState
from loadwise.coordinator.groups.effects import LeaveReply
from loadwise.coordinator.groups.events import Committer, Event, Heartbeat, Join, Leave, Leaver, Sync
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.protocol.error_codes import ErrorCode

P0 = Partition("t", 0)
P1 = Partition("t", 1)
AT_5 = CommittedOffset(5, 0, "note")


def join(member_id: str = "", session_timeout_ms: int = 10_000, token: int = 1) -> Join:
    return join_event(token, member_id, fresh_member_id="m1", session_timeout_ms=session_timeout_ms)


def sync(member_id: str = "m1") -> Sync:
    return sync_event(2, member_id, 1, [("m1", b"mine")])


def beat(member_id: str = "m1") -> Heartbeat:
    return Heartbeat(token=3, member_id=member_id, instance_id=None, generation=1)


def ask(groups: Groups, group_id: str, event: Event, now_ms: int = 0) -> Any:
    (reply,) = groups.handle(group_id, event, now_ms)
    return reply.body


def stable() -> Groups:
    groups = Groups()
    ask(groups, "g", join())
    ask(groups, "g", sync())
    return groups


@pytest.mark.parametrize("event", [join(), sync(), beat(), Leave(token=4, leavers=[])])
def test_a_group_needs_a_name(event: Event) -> None:
    assert ask(Groups(), "", event).error is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("event", [join("m9"), sync(), beat()])
def test_a_group_that_is_not_there_has_no_members(event: Event) -> None:
    groups = Groups()
    assert ask(groups, "g", event).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.get("g") is None


def test_leaving_a_group_that_is_not_there_is_answered_member_by_member() -> None:
    reply = ask(Groups(), "g", Leave(token=4, leavers=[Leaver("m1", None), Leaver("", "i1")]))
    assert isinstance(reply, LeaveReply)
    assert reply.error is ErrorCode.NONE
    assert [tuple(left) for left in reply.leavers] == [
        ("m1", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", "i1", ErrorCode.UNKNOWN_MEMBER_ID),
    ]


def test_the_session_timeout_has_limits() -> None:
    groups = Groups(GroupLimits(min_session_timeout_ms=6000, max_session_timeout_ms=7000))
    for timeout_ms, error in [
        (5999, ErrorCode.INVALID_SESSION_TIMEOUT),
        (6000, ErrorCode.NONE),
        (7001, ErrorCode.INVALID_SESSION_TIMEOUT),
    ]:
        assert ask(groups, f"g{timeout_ms}", join(session_timeout_ms=timeout_ms)).error is error
    assert groups.get("g5999") is None


def test_commits_of_members_and_of_those_who_assign_themselves() -> None:
    groups = stable()
    assert commit(groups, "g", Committer(member_id="m1", generation=1), {P0: AT_5}) is ErrorCode.NONE
    assert dict(groups.offsets.of("g")) == {P0: AT_5}
    refused = commit(groups, "g", Committer(member_id="m1", generation=2), {P0: AT_5})
    assert refused is ErrorCode.ILLEGAL_GENERATION
    assert commit(groups, "alone", Committer(), {P1: AT_5}) is ErrorCode.NONE
    assert dict(groups.offsets.of("alone")) == {P1: AT_5}
    group = groups.get("alone")
    assert group is not None
    assert group.state is GroupState.EMPTY


@pytest.mark.parametrize("generation", [0, 3])
def test_a_commit_to_a_group_that_is_not_there_is_named_by_new_versions_only(generation: int) -> None:
    groups = Groups()
    who = Committer(member_id="m1", generation=generation)
    assert commit(groups, "g", who, {P0: AT_5}) is ErrorCode.GROUP_ID_NOT_FOUND
    assert commit(groups, "g", replace(who, knows_epochs=False), {P0: AT_5}) is ErrorCode.ILLEGAL_GENERATION
    assert groups.get("g") is None


def test_the_empty_group_id_may_commit() -> None:
    groups = Groups()
    assert commit(groups, "", Committer(), {P0: AT_5}) is ErrorCode.NONE
    assert dict(groups.offsets.of("")) == {P0: AT_5}


def test_deleting() -> None:
    groups = stable()
    commit(groups, "alone", Committer(), {P1: AT_5})
    assert groups.delete("g", 0)[0] is ErrorCode.NON_EMPTY_GROUP
    assert groups.delete("alone", 0)[0] is ErrorCode.NONE
    assert groups.delete("alone", 0)[0] is ErrorCode.GROUP_ID_NOT_FOUND
    assert not groups.offsets.of("alone")
    assert set(Groups(records=groups.journal).all()) == {"g"}


def test_a_removed_group_leaves_its_offsets() -> None:
    groups = stable()
    commit(groups, "g", Committer(member_id="m1", generation=1), {P0: AT_5})
    group = groups.get("g")
    assert group is not None
    groups.remove(group)
    assert groups.get("g") is None
    assert groups.deadlines.at("g") is None
    assert dict(groups.offsets.of("g")) == {P0: AT_5}


def test_the_next_deadline_is_that_of_the_group_that_is_due_first() -> None:
    groups = Groups()
    assert groups.next_deadline_ms is None
    ask(groups, "late", join(session_timeout_ms=9000))
    ask(groups, "late", sync())
    ask(groups, "soon", join(session_timeout_ms=3000, token=5))
    ask(groups, "soon", sync())
    assert groups.next_deadline_ms == 3000
    ask(groups, "soon", beat(), now_ms=2000)
    assert groups.expire(3000) == [], "its old deadline is looked at, and moved"
    assert groups.next_deadline_ms == 5000
    assert groups.expire(5000) == []
    soon, late = groups.get("soon"), groups.get("late")
    assert soon is not None
    assert late is not None
    assert (soon.state, late.state) == (GroupState.EMPTY, GroupState.STABLE)
    assert groups.next_deadline_ms == 9000


def test_a_restart_loses_no_group_and_no_offset() -> None:
    groups = stable()
    commit(groups, "g", Committer(member_id="m1", generation=1), {P0: AT_5, P1: AT_5})
    groups.forget_offsets("g", [P1])
    after = Groups(records=groups.journal, now_ms=100)
    assert dict(after.offsets.of("g")) == {P0: AT_5}
    assert ask(after, "g", beat(), now_ms=200).error is ErrorCode.NONE
    assert after.expire(10_100) == []
    assert after.next_deadline_ms == 10_200


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from(["commit", "forget", "forget topic", "delete"]),
        st.sampled_from([P0, P1, Partition("u", 0)]),
        st.integers(0, 3),
    ),
    max_size=25,
)


@given(CHANGES)
def test_the_journal_always_rebuilds_the_offsets(changes: list[tuple[str, str, Partition, int]]) -> None:
    groups = Groups()
    for group_id, change, partition, offset in changes:
        match change:
            case "commit":
                committed = {partition: CommittedOffset(offset, 0, "")}
                commit(groups, group_id, Committer(), committed)
            case "forget":
                groups.forget_offsets(group_id, [partition])
            case "forget topic":
                groups.forget_topics({partition.topic})
            case "delete":
                groups.delete(group_id, 0)
    after = Groups(records=groups.journal)
    for group_id in "ab":
        assert dict(after.offsets.of(group_id)) == dict(groups.offsets.of(group_id))
    assert set(after.all()) == {group_id for group_id in groups.all() if groups.offsets.of(group_id)}
    assert len(groups.journal) == sum(len(groups.offsets.of(group_id)) for group_id in "ab"), "it is compacted"
