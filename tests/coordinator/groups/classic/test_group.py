"""The classic group under a fake clock: one test a rule, with Kafka's own error code in each case."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from classic_events import join_event, sync_event

from loadwise.coordinator.groups.classic.group import ClassicGroup
from loadwise.coordinator.groups.classic.states import GroupState
from loadwise.coordinator.groups.effects import Append, JoinReply, LeaveReply, Reply, SyncReply
from loadwise.coordinator.groups.events import (
    CommitOffsets,
    Committer,
    Delete,
    Event,
    Heartbeat,
    Leave,
    Leaver,
    Protocol,
    Tick,
)
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.groups.records import GroupRecord, GroupTombstone, Record
from loadwise.protocol.error_codes import ErrorCode

RANGE = [Protocol("range", b"r")]
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class Driver:
    """A group, a clock, and what came out, by token."""

    def __init__(self, group: ClassicGroup | None = None, **limits: int) -> None:
        self.group = group or ClassicGroup("g", GroupLimits(**limits))
        self.now_ms = 0
        self.replies: dict[int, Any] = {}
        self.records: list[Record] = []
        self._tokens = count(1)
        self._fresh = count(1)

    def handle(self, event: Event) -> Any:
        for effect in self.group.handle(event, self.now_ms):
            match effect:
                case Append(record):
                    self.records.append(record)
                case Reply(token, body):
                    assert token not in self.replies
                    self.replies[token] = body
        return self.replies.get(getattr(event, "token", 0))

    def join(self, member_id: str = "", **changes: Any) -> int:
        token = next(self._tokens)
        fields: dict[str, Any] = {
            "fresh_member_id": f"m{next(self._fresh)}",
            "protocols": RANGE,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
        }
        self.handle(join_event(token, member_id, **fields | changes))
        return token

    def joined(self, token: int) -> JoinReply:
        reply = self.replies[token]
        assert isinstance(reply, JoinReply)
        return reply

    def sync(self, member_id: str, **changes: Any) -> int:
        token = next(self._tokens)
        fields: dict[str, Any] = {
            "generation": self.group.generation,
            "assignments": [(each, each.encode()) for each in self.group.members],
        }
        self.handle(sync_event(token, member_id, **fields | changes))
        return token

    def synced(self, token: int) -> SyncReply:
        reply = self.replies[token]
        assert isinstance(reply, SyncReply)
        return reply

    def beat(self, member_id: str, generation: int | None = None, instance_id: str | None = None) -> ErrorCode:
        event = Heartbeat(
            token=next(self._tokens),
            member_id=member_id,
            instance_id=instance_id,
            generation=self.group.generation if generation is None else generation,
        )
        error: ErrorCode = self.handle(event).error
        return error

    def leave(self, *leavers: tuple[str, str | None]) -> list[ErrorCode]:
        reply = self.handle(Leave(token=next(self._tokens), leavers=[Leaver(*each) for each in leavers]))
        assert isinstance(reply, LeaveReply)
        return [left.error for left in reply.leavers]

    def wait(self, ms: int) -> None:
        """Let time pass, with a tick at every deadline on the way."""
        end = self.now_ms + ms
        while (deadline := self.group.next_deadline_ms) is not None and deadline <= end:
            self.now_ms = deadline
            self.handle(Tick())
        self.now_ms = end

    def stable(self, *instances: str | None) -> list[str]:
        """Bring one member a name into a stable group; their ids, the leader's first."""
        tokens: list[int] = []
        for instance in instances:
            tokens.append(self.join(instance_id=instance))
            for member in list(self.group.members.values()):
                if member.member_id not in self.group.waiting:
                    self.join(member.member_id, instance_id=member.instance_id)
        ids = list(self.group.members)
        assert self.group.leader is not None
        for member_id in [*(each for each in ids if each != self.group.leader), self.group.leader]:
            self.sync(member_id)
        assert self.group.state is GroupState.STABLE
        return ids


# ---- joining ----


def test_the_first_member_leads_and_sees_everybody() -> None:
    driver = Driver()
    reply = driver.joined(driver.join())
    assert (reply.error, reply.generation, reply.leader, reply.member_id) == (ErrorCode.NONE, 1, "m1", "m1")
    assert (reply.protocol_type, reply.protocol_name) == ("consumer", "range")
    assert [tuple(member) for member in reply.members] == [("m1", None, b"r")]
    assert driver.group.state is GroupState.COMPLETING_REBALANCE


def test_a_new_dynamic_member_has_to_come_back_with_its_id() -> None:
    driver = Driver()
    first = driver.joined(driver.join(requires_member_id=True))
    assert (first.error, first.member_id, first.generation) == (ErrorCode.MEMBER_ID_REQUIRED, "m1", -1)
    assert driver.group.state is GroupState.EMPTY
    again = driver.joined(driver.join("m1", requires_member_id=True))
    assert (again.error, again.member_id) == (ErrorCode.NONE, "m1")


def test_an_id_that_was_given_out_lapses_with_the_session() -> None:
    driver = Driver()
    driver.join(requires_member_id=True)
    driver.wait(SESSION_MS)
    assert driver.joined(driver.join("m1")).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.group.next_deadline_ms is None


def test_a_pending_id_holds_a_rebalance_back_until_it_joins() -> None:
    driver = Driver()
    (leader,) = driver.stable(None)
    pending = driver.joined(driver.join(requires_member_id=True)).member_id
    token = driver.join(leader)
    assert token not in driver.replies
    driver.join(pending, requires_member_id=True)
    assert driver.joined(token).generation == 2


def test_all_members_join_before_anybody_is_answered() -> None:
    driver = Driver()
    (leader,) = driver.stable(None)
    token = driver.join()
    assert token not in driver.replies
    assert driver.beat(leader) is ErrorCode.REBALANCE_IN_PROGRESS
    rejoined = driver.join(leader)
    assert driver.joined(token).generation == driver.joined(rejoined).generation == 2
    assert driver.joined(token).members == ()
    assert len(driver.joined(rejoined).members) == 2


def test_a_dynamic_member_that_does_not_rejoin_in_time_is_out() -> None:
    driver = Driver()
    (leader,) = driver.stable(None)
    token = driver.join(rebalance_timeout_ms=REBALANCE_MS)
    for _ in range(REBALANCE_MS // 5000):
        driver.wait(5000)
        driver.beat(leader)
    reply = driver.joined(token)
    assert (reply.leader, reply.generation, len(reply.members)) == (reply.member_id, 2, 1)
    assert driver.beat(leader) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_initial_delay_gathers_members_and_grows_while_they_come() -> None:
    driver = Driver(initial_rebalance_delay_ms=3000)
    tokens = [driver.join()]
    driver.wait(2000)
    tokens.append(driver.join())
    driver.wait(1000)
    assert not driver.replies
    driver.wait(3000)
    assert [driver.joined(token).generation for token in tokens] == [1, 1]


def test_the_initial_delay_ends_with_the_rebalance_timeout() -> None:
    driver = Driver(initial_rebalance_delay_ms=3000)
    tokens = [driver.join(rebalance_timeout_ms=7000)]
    for _ in range(4):
        driver.wait(1900)
        tokens.append(driver.join(rebalance_timeout_ms=7000))
    driver.wait(1)
    assert driver.joined(tokens[0]).generation == 1


@pytest.mark.parametrize(
    "changes",
    [{"protocols": [Protocol("sticky", b"")]}, {"protocol_type": "connect"}, {"protocols": []}],
)
def test_a_member_that_has_nothing_in_common_is_refused(changes: dict[str, Any]) -> None:
    driver = Driver()
    (leader,) = driver.stable(None)
    assert driver.joined(driver.join(**changes)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert driver.beat(leader) is ErrorCode.NONE


@pytest.mark.parametrize("changes", [{"protocols": []}, {"protocol_type": ""}])
def test_an_empty_group_wants_a_type_and_a_protocol(changes: dict[str, Any]) -> None:
    driver = Driver()
    assert driver.joined(driver.join(**changes)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_with_most_votes_among_the_common_ones_is_taken() -> None:
    driver = Driver(initial_rebalance_delay_ms=1)
    a, b, c, d = (Protocol(name, name.encode()) for name in "abcd")
    tokens = [driver.join(protocols=each) for each in ([d, a, b], [b, a, c], [b, a])]
    driver.wait(2)
    assert {driver.joined(token).protocol_name for token in tokens} == {"b"}
    assert [member.metadata for member in driver.joined(tokens[0]).members] == [b"b"] * 3


def test_group_max_size() -> None:
    driver = Driver(max_size=1)
    (leader,) = driver.stable(None)
    refused = driver.joined(driver.join())
    assert (refused.error, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert driver.beat(leader) is ErrorCode.NONE


def test_a_full_group_takes_an_assigned_id_back() -> None:
    driver = Driver(max_size=1)
    first, second = (driver.joined(driver.join(requires_member_id=True)).member_id for _ in range(2))
    assert driver.joined(driver.join(first)).error is ErrorCode.NONE
    refused = driver.joined(driver.join(second))
    assert (refused.error, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert driver.group.num_members == 1


def test_an_unchanged_follower_gets_its_generation_again_and_a_changed_one_a_rebalance() -> None:
    driver = Driver()
    leader, follower = driver.stable(None, None)
    generation = driver.group.generation
    same = driver.joined(driver.join(follower))
    assert (same.error, same.generation, same.members) == (ErrorCode.NONE, generation, ())
    assert driver.group.state is GroupState.STABLE
    driver.join(follower, protocols=[Protocol("range", b"news")])
    assert driver.group.state is GroupState.PREPARING_REBALANCE
    assert driver.beat(leader) is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_unchanged_join_before_the_sync_is_answered_again() -> None:
    driver = Driver()
    first = driver.joined(driver.join())
    again = driver.joined(driver.join(first.member_id))
    assert again == first


def test_unknown_members_are_told_so() -> None:
    driver = Driver()
    driver.stable(None)
    assert driver.joined(driver.join("nobody")).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.synced(driver.sync("nobody")).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.beat("nobody") is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.leave(("nobody", None), ("", None), ("", "no-instance")) == [ErrorCode.UNKNOWN_MEMBER_ID] * 3


def test_a_join_that_is_sent_again_answers_the_one_before() -> None:
    driver = Driver()
    leader, follower = driver.stable(None, None)
    first = driver.join(follower, protocols=[Protocol("range", b"news")])
    second = driver.join(follower, protocols=[Protocol("range", b"news")])
    assert driver.joined(first).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert second not in driver.replies
    driver.join(leader)
    assert driver.joined(second).error is ErrorCode.NONE


# ---- syncing ----


def test_assignments_reach_their_members_whoever_syncs_first() -> None:
    driver = Driver(initial_rebalance_delay_ms=1)
    driver.join()
    driver.join()
    driver.wait(2)
    early = driver.sync("m2")
    assert early not in driver.replies
    leaders = driver.sync("m1", assignments=[("m2", b"two")])
    assert driver.synced(early) == SyncReply(protocol_type="consumer", protocol_name="range", assignment=b"two")
    assert driver.synced(leaders).assignment == b"", "who is not assigned to gets an empty assignment"
    assert driver.synced(driver.sync("m2")).assignment == b"two", "a stable group answers at once"


def test_a_sync_that_is_sent_again_answers_the_one_before() -> None:
    driver = Driver(initial_rebalance_delay_ms=1)
    driver.join()
    driver.join()
    driver.wait(2)
    first = driver.sync("m2")
    second = driver.sync("m2")
    assert driver.synced(first).error is ErrorCode.REBALANCE_IN_PROGRESS
    driver.sync("m1")
    assert driver.synced(second).assignment == b"m2"


def test_a_sync_of_another_generation_or_protocol_is_refused() -> None:
    driver = Driver()
    member = driver.joined(driver.join()).member_id
    assert driver.synced(driver.sync(member, generation=7)).error is ErrorCode.ILLEGAL_GENERATION
    wrong_type = driver.sync(member, protocol_type="connect", protocol_name="range")
    assert driver.synced(wrong_type).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    wrong_name = driver.sync(member, protocol_type="consumer", protocol_name="sticky")
    assert driver.synced(wrong_name).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert driver.synced(driver.sync(member, protocol_type="consumer")).error is ErrorCode.NONE


def test_a_sync_during_a_rebalance_is_sent_back_to_join() -> None:
    driver = Driver()
    (leader,) = driver.stable(None)
    driver.join()
    assert driver.synced(driver.sync(leader)).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_members_that_do_not_sync_in_time_are_out() -> None:
    driver = Driver(initial_rebalance_delay_ms=1)
    driver.join(rebalance_timeout_ms=5000)
    driver.join(rebalance_timeout_ms=5000)
    driver.wait(2)
    waiting = driver.sync("m2")
    driver.wait(5000)  # the leader never brings the assignment
    assert driver.synced(waiting).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert list(driver.group.members) == ["m2"]
    assert driver.joined(driver.join("m2")).leader == "m2"


# ---- heartbeats and sessions ----


def test_heartbeats_keep_a_member_and_silence_ends_it() -> None:
    driver = Driver()
    quiet, alive = driver.stable(None, None)
    for _ in range(3):
        driver.wait(SESSION_MS // 2)
        driver.beat(alive)
    assert driver.group.state is GroupState.PREPARING_REBALANCE
    assert driver.beat(quiet) is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.beat(alive) is ErrorCode.REBALANCE_IN_PROGRESS
    reply = driver.joined(driver.join(alive))
    assert (reply.leader, len(reply.members)) == (alive, 1)


def test_a_heartbeat_of_another_generation_is_refused() -> None:
    driver = Driver()
    (member,) = driver.stable(None)
    assert driver.beat(member, generation=0) is ErrorCode.ILLEGAL_GENERATION


def test_a_heartbeat_takes_the_short_way_only_where_it_changes_nothing_else() -> None:
    driver = Driver()
    static, dynamic = driver.stable("i1", None)
    group = driver.group
    generation = group.generation

    def keep_alive(member_id: str, instance_id: str | None = None, lag: int = 0) -> bool:
        return group.keep_alive(member_id, instance_id, generation - lag, driver.now_ms)

    assert keep_alive(static, "i1")
    assert keep_alive(dynamic)
    assert not keep_alive(static, "i2")
    assert not keep_alive(dynamic, "i1")
    assert not keep_alive("nobody")
    assert not keep_alive(dynamic, lag=1)
    driver.now_ms += SESSION_MS - 1
    assert keep_alive(dynamic)
    driver.now_ms += 1
    assert not keep_alive(dynamic), "the other's session is over, and nobody has told the group"
    driver.beat(dynamic)
    assert group.state is GroupState.PREPARING_REBALANCE
    assert not keep_alive(dynamic)


def test_the_last_session_to_end_empties_the_group_for_a_new_generation() -> None:
    driver = Driver()
    driver.stable(None)
    driver.wait(SESSION_MS)
    assert (driver.group.state, driver.group.generation) == (GroupState.EMPTY, 2)
    last = driver.records[-1]
    assert isinstance(last, GroupRecord)
    assert (last.generation, last.members, last.protocol_type) == (2, (), "consumer")


def test_a_waiting_join_stands_for_heartbeats_but_not_for_a_new_member() -> None:
    driver = Driver(new_member_join_timeout_ms=30_000)
    (leader,) = driver.stable(None)
    slow = driver.join(rebalance_timeout_ms=600_000)
    for _ in range(7):
        driver.beat(leader)
        driver.wait(5000)
    assert driver.joined(slow).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(driver.group.members) == [leader]


def test_a_session_starts_again_when_the_rebalance_is_through() -> None:
    driver = Driver()
    leader, follower = driver.stable(None, None)
    driver.join(follower, protocols=[Protocol("range", b"news")])
    for _ in range(4):
        driver.wait(SESSION_MS // 2)
        driver.beat(leader)
    driver.join(leader)
    assert driver.group.sessions.at(follower) == driver.now_ms + SESSION_MS


def test_a_session_starts_again_when_a_waiting_sync_is_sent_back_to_join() -> None:
    driver = Driver()
    leader, follower = driver.stable(None, None)
    for member_id in (follower, leader):
        driver.join(member_id, protocols=[Protocol("range", b"news")])
    waiting = driver.sync(follower)
    for _ in range(3):
        driver.wait(SESSION_MS // 2)
        driver.beat(leader)
    driver.join(leader)
    assert driver.synced(waiting).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.group.sessions.at(follower) == driver.now_ms + SESSION_MS


# ---- leaving ----


def test_leaving_rebalances_those_who_stay() -> None:
    driver = Driver()
    leader, follower = driver.stable(None, None)
    assert driver.leave((leader, None)) == [ErrorCode.NONE]
    assert driver.group.state is GroupState.PREPARING_REBALANCE
    assert driver.joined(driver.join(follower)).leader == follower


def test_the_oldest_member_that_stays_leads_and_not_a_newer_one() -> None:
    driver = Driver()
    leader, follower = driver.stable(None, None)
    driver.leave((leader, None))
    newer = driver.join()
    driver.join(follower)
    assert driver.joined(newer).leader == follower


def test_a_group_that_all_have_left_has_no_leader() -> None:
    driver = Driver()
    (leader,) = driver.stable(None)
    driver.leave((leader, None))
    last = driver.records[-1]
    assert isinstance(last, GroupRecord)
    assert (last.members, last.leader) == ((), None)


def test_many_leave_at_once_each_with_its_own_answer() -> None:
    driver = Driver()
    leader, static = driver.stable(None, "i1")
    answers = driver.leave((leader, None), ("", "i1"), ("ghost", None))
    assert answers == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert static not in driver.group.members
    assert driver.group.state is GroupState.EMPTY


def test_a_member_that_is_removed_while_it_waits_is_told() -> None:
    driver = Driver(initial_rebalance_delay_ms=1)
    driver.join()
    driver.join()
    driver.wait(2)
    sync = driver.sync("m2")
    driver.leave(("m2", None))
    assert driver.synced(sync).error is ErrorCode.UNKNOWN_MEMBER_ID
    join = driver.join()
    driver.leave(("m3", None))
    assert driver.joined(join).error is ErrorCode.UNKNOWN_MEMBER_ID


# ---- static members (KIP-345) ----


def test_a_static_member_that_restarts_takes_its_place_without_a_rebalance() -> None:
    driver = Driver()
    leader, follower = driver.stable("i1", "i2")
    generation = driver.group.generation
    reply = driver.joined(driver.join(instance_id="i2"))
    assert (reply.error, reply.generation, reply.leader) == (ErrorCode.NONE, generation, leader)
    assert reply.member_id not in {leader, follower}
    assert driver.group.state is GroupState.STABLE
    synced = driver.synced(driver.sync(reply.member_id, instance_id="i2"))
    assert synced.assignment == follower.encode(), "it keeps what it had"
    kept = driver.records[-1]
    assert isinstance(kept, GroupRecord)
    assert {member.member_id for member in kept.members} == {leader, reply.member_id}


def test_the_old_id_of_a_restarted_static_member_is_fenced() -> None:
    driver = Driver()
    _, follower = driver.stable("i1", "i2")
    driver.join(instance_id="i2")
    assert driver.beat(follower, instance_id="i2") is ErrorCode.FENCED_INSTANCE_ID
    assert driver.synced(driver.sync(follower, instance_id="i2")).error is ErrorCode.FENCED_INSTANCE_ID
    assert driver.joined(driver.join(follower, instance_id="i2")).error is ErrorCode.FENCED_INSTANCE_ID
    assert driver.leave((follower, "i2")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert commit_error(driver.group, follower, "i2", driver.group.generation) is ErrorCode.FENCED_INSTANCE_ID
    assert driver.beat(follower) is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.beat("x", instance_id="i9") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_duplicate_static_member_fences_the_one_that_waits() -> None:
    driver = Driver(initial_rebalance_delay_ms=1000)
    first = driver.join(instance_id="i1")
    second = driver.join(instance_id="i1")
    assert driver.joined(first).error is ErrorCode.FENCED_INSTANCE_ID
    driver.wait(1000)
    assert driver.joined(second).error is ErrorCode.NONE
    assert len(driver.group.members) == 1


def test_a_restarted_static_leader_is_told_not_to_assign_if_it_understands() -> None:
    driver = Driver()
    leader, _ = driver.stable("i1", "i2")
    new = driver.joined(driver.join(instance_id="i1", can_skip_assignment=True))
    assert (new.skip_assignment, new.leader, len(new.members)) == (True, new.member_id, 2)
    old = driver.joined(driver.join(instance_id="i1"))
    assert (old.skip_assignment, old.leader, old.members) == (False, new.member_id, ())
    assert leader not in driver.group.members


def test_a_static_member_whose_restart_changes_the_protocol_rebalances() -> None:
    driver = Driver()
    both = [Protocol("range", b"r"), Protocol("sticky", b"s")]
    driver.join(instance_id="i1", protocols=both)
    driver.sync("m1", instance_id="i1")
    driver.join(instance_id="i1", protocols=both[::-1])
    assert driver.group.state is GroupState.COMPLETING_REBALANCE
    assert driver.group.protocol_name == "sticky"


def test_a_static_member_that_restarts_before_the_sync_rebalances() -> None:
    driver = Driver()
    driver.join(instance_id="i1")
    assert driver.joined(driver.join(instance_id="i1")).generation == 2


def test_a_static_member_that_is_away_keeps_its_place_until_its_session_ends() -> None:
    driver = Driver()
    away, here = driver.stable("i1", None)
    token = driver.join(here, protocols=[Protocol("range", b"news")], session_timeout_ms=600_000)
    driver.group.members[away].session_timeout_ms = 600_000
    driver.beat(away, instance_id="i1")
    driver.wait(REBALANCE_MS)
    reply = driver.joined(token)
    assert (reply.leader, {member.member_id for member in reply.members}) == (here, {away, here})
    driver.sync(here)
    for _ in range(600):
        driver.wait(1000)
        driver.beat(here)
    assert away not in driver.group.members


# ---- commits ----


def commit_error(group: ClassicGroup, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
    who = Committer(member_id=member_id, instance_id=instance_id, generation=generation)
    return group.validate_offset_commit(who, [Partition("t", 0)])


def test_who_may_commit() -> None:
    driver = Driver()
    group = driver.group
    assert commit_error(group, "", None, -1) is ErrorCode.NONE, "an empty group takes commits of anybody"
    assert commit_error(group, "m", None, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    member = driver.joined(driver.join()).member_id
    assert commit_error(group, member, None, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    driver.sync(member)
    assert commit_error(group, member, None, 1) is ErrorCode.NONE
    assert commit_error(group, member, None, 2) is ErrorCode.ILLEGAL_GENERATION
    assert commit_error(group, member, None, -1) is ErrorCode.ILLEGAL_GENERATION
    assert commit_error(group, "", None, -1) is ErrorCode.UNKNOWN_MEMBER_ID
    driver.join()
    assert commit_error(group, member, None, 1) is ErrorCode.NONE, "a member may commit before it rejoins"


@pytest.mark.parametrize("state", [GroupState.STABLE, GroupState.PREPARING_REBALANCE])
def test_a_commit_is_a_sign_of_life(state: GroupState) -> None:
    driver = Driver()
    (member,) = driver.stable(None)
    if state is GroupState.PREPARING_REBALANCE:
        driver.join()
    assert driver.group.state is state
    for _ in range(5):
        driver.wait(SESSION_MS - 1)
        driver.handle(CommitOffsets(token=0, who=Committer(member_id=member, generation=1), offsets={}))
        assert member in driver.group.members
    driver.wait(SESSION_MS)
    assert member not in driver.group.members


def test_a_group_whose_record_is_too_large_gets_no_assignment_and_gets_on_when_it_is_small_enough() -> None:
    driver = Driver(ClassicGroup("g", GroupLimits(max_record_bytes=1000)))
    leader, follower = driver.joined(driver.join()).member_id, None
    token = driver.join()
    driver.join(leader)
    follower = driver.joined(token).member_id
    waits = driver.sync(follower)
    refused = driver.sync(leader, assignments=[(leader, b"x" * 900)])
    assert driver.synced(waits).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert driver.synced(refused).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert driver.group.state is GroupState.PREPARING_REBALANCE
    assert driver.group.members[leader].assignment == b""
    driver.join(leader)
    driver.join(follower)
    driver.sync(follower)
    assert driver.synced(driver.sync(leader, assignments=[(leader, b"x" * 100)])).error is ErrorCode.NONE


def test_a_static_member_that_comes_back_with_too_much_for_the_record_changes_nothing() -> None:
    driver = Driver(ClassicGroup("g", GroupLimits(max_record_bytes=1000)))
    (member,) = driver.stable("i")
    before = driver.group.record()
    long = [Protocol("range", b"x" * 1000)]
    assert driver.joined(driver.join(instance_id="i", protocols=long)).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert driver.group.record() == before
    assert driver.beat(member, instance_id="i") is ErrorCode.NONE
    again = driver.joined(driver.join(instance_id="i"))
    assert (again.error, again.member_id == member) == (ErrorCode.NONE, False)
    assert driver.beat(member, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID


# ---- deleting, replaying ----


def test_only_an_empty_group_is_deleted_and_then_it_is_dead() -> None:
    driver = Driver()
    (member,) = driver.stable(None)
    assert driver.handle(Delete(token=100)).error is ErrorCode.NON_EMPTY_GROUP
    driver.leave((member, None))
    assert driver.handle(Delete(token=101)).error is ErrorCode.NONE
    assert driver.records[-1] == GroupTombstone(group_id="g")
    assert driver.handle(Delete(token=102)).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert driver.joined(driver.join()).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.synced(driver.sync(member)).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.beat(member) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert commit_error(driver.group, "", None, -1) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_group_is_rebuilt_from_its_record_with_fresh_sessions() -> None:
    driver = Driver()
    leader, follower = driver.stable("i1", None)
    record = driver.records[-1]
    assert isinstance(record, GroupRecord)
    after = Driver(ClassicGroup.replay(record, now_ms=500))
    after.now_ms = 500
    assert after.group.record() == record
    assert after.group.next_deadline_ms == 500 + SESSION_MS
    assert after.beat(follower) is ErrorCode.NONE
    assert after.beat(leader, instance_id="other") is ErrorCode.UNKNOWN_MEMBER_ID
    assert after.synced(after.sync(follower)).assignment == follower.encode()
    assert after.joined(after.join(follower)).generation == record.generation
    after.wait(2 * SESSION_MS)
    assert after.group.state is GroupState.EMPTY


def test_members_that_arrive_before_the_timer_are_in_the_first_generation_even_without_a_delay() -> None:
    driver = Driver(initial_delay_ends_by_timer=True)
    first = driver.join()
    driver.handle(Tick())  # another member has not come since
    assert driver.joined(first).generation == 1
    assert [member.member_id for member in driver.joined(first).members] == ["m1"]

    driver = Driver(initial_delay_ends_by_timer=True)
    tokens = [driver.join(), driver.join()]
    driver.handle(Tick())  # the second one extends the delay, by 0
    tokens.append(driver.join())
    assert not driver.replies
    driver.handle(Tick())
    driver.handle(Tick())
    assert {driver.joined(token).generation for token in tokens} == {1}
    assert len(driver.joined(tokens[0]).members) == 3
