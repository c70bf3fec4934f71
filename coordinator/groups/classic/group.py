"""The classic group protocol as a state machine: who is in the group, which generation it is, who waits for what.

Mirrors Kafka 4.3's ``ClassicGroup`` and the ``classicGroup…`` methods of ``GroupMetadataManager``, with KIP-62, 134
(initial rebalance delay), 345 (static members), 394 (member id required), 559 (protocol in SyncGroup), 814 (skip
assignment). No I/O, no clock, no chance: `ClassicGroup.handle` takes an event and the time, and gives effects. All that
moves a group is in this one file, so that a question about a state has one place to look::

    Empty ──join──► PreparingRebalance ──all joined, or time is up──► CompletingRebalance ──leader's sync──► Stable
      ▲                │        ▲                                            │                                 │
      └──all are gone──┘        └── join with news, leave, session expired ──┴─────────────────────────────────┘

    Empty ──delete──► Dead

It differs from Kafka where Kafka leaves a client without an answer. A wait that a newer request of the same member
replaces is answered REBALANCE_IN_PROGRESS; a sync that waits when its member is removed is answered UNKNOWN_MEMBER_ID.
Votes that are equal go to the protocol that was voted for first, where Kafka's choice hangs on a hash map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import Final, assert_never

from loadwise.coordinator.groups.classic.member import ClassicMember
from loadwise.coordinator.groups.deadlines import Deadlines
from loadwise.coordinator.groups.effects import (
    Append,
    DeleteReply,
    Effect,
    HeartbeatReply,
    JoinReply,
    LeaveReply,
    Left,
    Reply,
    ReplyBody,
    SyncReply,
    Transition,
)
from loadwise.coordinator.groups.events import (
    NO_MEMBER_ID,
    ClassicEvent,
    Delete,
    ExpireSession,
    ForceRebalance,
    Heartbeat,
    Join,
    Leave,
    Leaver,
    Sync,
    Tick,
    Token,
)
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.records import GroupRecord, GroupTombstone
from loadwise.protocol.consumer import PROTOCOL_TYPE
from loadwise.protocol.error_codes import ErrorCode


class GroupState(Enum):
    """The state of a classic group, by the names that DescribeGroups and ListGroups give."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicGroup:
    """One group of the classic protocol. `handle` is the only way to change it."""

    TYPE: Final = "classic"
    """What ListGroups calls it."""

    def __init__(self, group_id: str, limits: GroupLimits | None = None) -> None:
        self.group_id = group_id
        self.limits = limits or GroupLimits()
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self._static_ids: dict[str, str] = {}
        self.sessions: Deadlines[str] = Deadlines()
        """When members count as dead; one that waits for an answer may have none."""
        self._pending_joins: Deadlines[str] = Deadlines()  # ids given out under KIP-394, and when they lapse
        self._pending_syncs: set[str] = set()
        self._join_deadline_ms: int | None = None
        self._sync_deadline_ms: int | None = None
        self._initial_remaining_ms: int | None = None  # None: this is not the first rebalance of an empty group
        self._joined_since_delay = False
        self._now_ms = 0
        self._effects: list[Effect] = []

    @classmethod
    def replay(cls, record: GroupRecord, now_ms: int, limits: GroupLimits | None = None) -> ClassicGroup:
        """Rebuild a group from its newest record; the members' sessions start afresh."""
        group = cls(record.group_id, limits)
        group.generation = record.generation
        group.protocol_type = record.protocol_type
        group.protocol_name = record.protocol_name
        group.leader = record.leader
        for kept in record.members:
            member = ClassicMember.replayed(kept, record.protocol_name or "")
            group.sessions.set(member.member_id, now_ms + member.session_timeout_ms)
            group.members[member.member_id] = member
            if member.instance_id is not None:
                group._static_ids[member.instance_id] = member.member_id
        group.state = GroupState.STABLE if group.members else GroupState.EMPTY
        return group

    @classmethod
    def of_members(
        cls, group_id: str, generation: int, members: Sequence[ClassicMember], now_ms: int, limits: GroupLimits
    ) -> ClassicGroup:
        """A stable group of consumers that have their assignments already, as they come out of another protocol."""
        group = cls(group_id, limits)
        group.generation = generation
        group.protocol_type = PROTOCOL_TYPE
        group.members = {member.member_id: member for member in members}
        group._static_ids = {
            member.instance_id: member.member_id for member in members if member.instance_id is not None
        }
        group.leader = members[0].member_id
        group.protocol_name = group._elected_protocol()
        group.state = GroupState.STABLE
        group._now_ms = now_ms
        for member in members:
            group._restart_session(member)
        return group

    # ---- what others may ask ----

    @property
    def next_deadline_ms(self) -> int | None:
        """When a `Tick` is due at the latest; None while nothing can happen by time alone."""
        deadlines = (self.sessions.next_ms, self._join_deadline_ms, self._sync_deadline_ms, self._pending_joins.next_ms)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    @property
    def expected(self) -> int:
        """How many ids were given out whose clients have not come back with them yet (KIP-394)."""
        return len(self._pending_joins)

    def record(self) -> GroupRecord:
        """The group as it is remembered; meaningful while it is empty, completing or stable."""
        return GroupRecord(
            group_id=self.group_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader,
            members=tuple(member.record(self.protocol_name or "") for member in self.members.values()),
        )

    def commit_error(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Whether this client may commit offsets now. Mirrors ``ClassicGroup.validateOffsetCommit``."""
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation < 0 and self.state is GroupState.EMPTY:
            return ErrorCode.NONE  # an administrator, or a consumer that assigns itself
        if generation < 0 and member_id == NO_MEMBER_ID and instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = self._membership_error(member_id, instance_id)
        if error is ErrorCode.NONE and generation != self.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        if error is ErrorCode.NONE and self.state is GroupState.COMPLETING_REBALANCE:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        return error

    # ---- what changes it ----

    def handle(self, event: ClassicEvent, now_ms: int) -> list[Effect]:
        """Let an event take effect, then whatever is due at ``now_ms``; time never runs backwards.

        Every token that came with an event is answered by exactly one `Reply`, now or after a later event. A heartbeat
        costs O(log members), what rebalances O(members).
        """
        self._now_ms = now_ms
        self._effects = []
        match event:
            case Join():
                self._on_join(event)
            case Sync():
                self._on_sync(event)
            case Heartbeat():
                self._reply(event.token, HeartbeatReply(error=self._on_heartbeat(event)))
            case Leave():
                self._on_leave(event)
            case Delete():
                self._on_delete(event)
            case ExpireSession():
                if event.member_id in self.members:
                    self._end_session(event.member_id)
            case ForceRebalance():
                if self.members:
                    self._rebalance("it was asked for")
            case Tick():
                pass
            case _:
                assert_never(event)
        self._expire()
        effects, self._effects = self._effects, []
        return effects

    def unload(self, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> list[Effect]:
        """Answer everybody who waits that it is elsewhere that it goes on; the group is of no use after that."""
        self._effects = []
        for member in self.members.values():
            self._answer_join(member, JoinReply(error=error, member_id=member.member_id))
            self._answer_sync(member, SyncReply(error=error))
        effects, self._effects = self._effects, []
        return effects

    # ---- joining ----

    def _on_join(self, event: Join) -> None:
        if not self._accepts(event.member_id):
            self._remove(event.member_id)
            self._refuse_join(event, ErrorCode.GROUP_MAX_SIZE_REACHED, NO_MEMBER_ID)
        elif self.state is GroupState.DEAD:
            self._refuse_join(event, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif not self._supports(event):
            self._refuse_join(event, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif event.member_id == NO_MEMBER_ID:
            self._join_new_member(event)
        elif event.member_id in self._pending_joins:
            if event.instance_id is not None:
                # Kafka throws IllegalStateException here, which reaches the client as this code.
                self._refuse_join(event, ErrorCode.UNKNOWN_SERVER_ERROR, NO_MEMBER_ID)
            else:
                self._add_member(event, event.member_id)
        else:
            self._join_known_member(event)

    def _join_new_member(self, event: Join) -> None:
        if event.instance_id is not None:
            replaced = self._static_ids.get(event.instance_id)
            if replaced is None:
                self._add_member(event, event.fresh_member_id)
            else:
                self._replace_static_member(event, replaced)
        elif event.requires_member_id:
            self._pending_joins.set(event.fresh_member_id, self._now_ms + event.session_timeout_ms)
            self._refuse_join(event, ErrorCode.MEMBER_ID_REQUIRED, event.fresh_member_id)
        else:
            self._add_member(event, event.fresh_member_id)

    def _join_known_member(self, event: Join) -> None:
        error = self._membership_error(event.member_id, event.instance_id)
        if error is not ErrorCode.NONE:
            self._refuse_join(event, error)
            return
        member = self.members[event.member_id]
        is_leader = self.leader == member.member_id
        unchanged = member.protocols == tuple(event.protocols)
        match self.state:
            case GroupState.COMPLETING_REBALANCE if unchanged:
                # The answer to its join was probably lost: give it again.
                self._reply(event.token, self._joined(member, with_members=is_leader))
            case GroupState.STABLE if unchanged and not is_leader:
                self._reply(event.token, self._joined(member, with_members=False))
            case GroupState.EMPTY | GroupState.DEAD:
                self._refuse_join(event, ErrorCode.UNKNOWN_MEMBER_ID)
            case _:
                # A leader that joins a stable group asks for a rebalance, as when a topic has more partitions now.
                self._update_member(member, event)
                self._rebalance(f"{member.member_id} joined again{'' if unchanged else ' with another subscription'}")

    def _add_member(self, event: Join, member_id: str) -> None:
        if self._initial_remaining_ms is not None:
            self._joined_since_delay = True
        if not self.members:
            self.protocol_type = event.protocol_type
        member = ClassicMember.joining(event, member_id)
        self.sessions.set(member_id, self._now_ms + self.limits.new_member_join_timeout_ms)
        self.members[member_id] = member
        if member.instance_id is not None:
            self._static_ids[member.instance_id] = member_id
        if self.leader is None:
            self.leader = member_id
        self._pending_joins.set(member_id, None)
        self._rebalance(f"{member_id} joined")

    def _update_member(self, member: ClassicMember, event: Join) -> None:
        self._answer_join(member, JoinReply(error=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id))
        member.protocols = tuple(event.protocols)
        member.rebalance_timeout_ms = event.rebalance_timeout_ms
        member.session_timeout_ms = event.session_timeout_ms
        member.join_token = event.token

    def _replace_static_member(self, event: Join, replaced: str) -> None:
        """A static member came back without its id: it takes its old place under a new one (KIP-345)."""
        old_leader = self.leader
        member = self._fence(replaced, event.fresh_member_id)
        self._update_member(member, event)
        self._restart_session(member)
        match self.state:
            case GroupState.STABLE if self._elected_protocol() == self.protocol_name:
                self._append_record()
                self._enter(GroupState.STABLE, f"static member {member.instance_id} came back as {member.member_id}")
                # Before v9 the answer names the old leader, even if that is whom the member replaces: the restarted
                # leader then takes itself for a follower and leaves the assignment alone.
                is_leader = self.leader == member.member_id
                if event.can_skip_assignment:
                    reply = self._joined(member, with_members=is_leader, skip_assignment=is_leader)
                else:
                    reply = self._joined(member, with_members=False, leader=old_leader)
                self._answer_join(member, reply)
            case GroupState.STABLE:
                self._rebalance(f"static member {member.instance_id} came back with other protocols")
            case GroupState.COMPLETING_REBALANCE:
                # The leader may have assigned to the old id already, so the new one would get nothing.
                self._prepare_rebalance(f"static member {member.instance_id} came back as {member.member_id}")
            case _:
                self._complete_join_if_all_joined()

    def _fence(self, replaced: str, member_id: str) -> ClassicMember:
        member = self.members.pop(replaced)
        self.sessions.set(replaced, None)
        self._answer_join(member, JoinReply(error=ErrorCode.FENCED_INSTANCE_ID, member_id=replaced))
        self._answer_sync(member, SyncReply(error=ErrorCode.FENCED_INSTANCE_ID))
        member.member_id = member_id
        member.is_new = False
        self.members[member_id] = member
        assert member.instance_id is not None
        self._static_ids[member.instance_id] = member_id
        self._pending_syncs.discard(replaced)
        if self.leader == replaced:
            self.leader = member_id
        return member

    def _accepts(self, member_id: str) -> bool:
        match self.state:
            case GroupState.EMPTY | GroupState.DEAD:
                return True
            case GroupState.PREPARING_REBALANCE:
                # Counting those who wait, not the members, puts out the last ones to rejoin if the limit was lowered.
                member = self.members.get(member_id)
                waiting = sum(1 for other in self.members.values() if other.join_token is not None)
                return (member is not None and member.join_token is not None) or waiting < self.limits.max_size
            case _:
                return member_id in self.members or len(self.members) < self.limits.max_size

    def _supports(self, event: Join) -> bool:
        if self.state is GroupState.EMPTY:
            return bool(event.protocol_type and event.protocols)
        if event.protocol_type != self.protocol_type:
            return False
        if not self.members:
            return bool(event.protocols)
        common = self._common_protocols()
        return any(name in common for name, _ in event.protocols)

    # ---- rebalancing ----

    def _enter(self, state: GroupState, reason: str) -> None:
        before, self.state = self.state, state
        self._effects.append(
            Transition(
                before=before.value,
                after=state.value,
                generation=self.generation,
                members=len(self.members),
                reason=reason,
            )
        )

    def _rebalance(self, reason: str) -> None:
        if self.state is GroupState.PREPARING_REBALANCE:
            self._complete_join_if_all_joined()
        else:
            self._prepare_rebalance(reason)

    def _prepare_rebalance(self, reason: str) -> None:
        for member in self.members.values():
            if self.state is GroupState.COMPLETING_REBALANCE:
                member.assignment = b""
            if self._answer_sync(member, SyncReply(error=ErrorCode.REBALANCE_IN_PROGRESS)):
                self._restart_session(member)
        self._pending_syncs.clear()
        self._sync_deadline_ms = None
        if self.state is GroupState.EMPTY:
            delay = self.limits.initial_rebalance_delay_ms
            self._initial_remaining_ms = max(self._rebalance_timeout_ms() - delay, 0)
            self._joined_since_delay = False
            self._join_deadline_ms = self._now_ms + delay
            self._enter(GroupState.PREPARING_REBALANCE, reason)
        else:
            self._enter(GroupState.PREPARING_REBALANCE, reason)
            if self._all_joined():
                self._complete_join()
            else:
                self._join_deadline_ms = self._now_ms + self._rebalance_timeout_ms()

    def _complete_join_if_all_joined(self) -> None:
        """Go on as soon as nobody is missing; the first rebalance of an empty group waits for its delay instead."""
        preparing = self.state is GroupState.PREPARING_REBALANCE and self._initial_remaining_ms is None
        if preparing and self._all_joined():
            self._complete_join()

    def _on_join_deadline(self) -> None:
        remaining = self._initial_remaining_ms
        if remaining and self._joined_since_delay:
            delay = self.limits.initial_rebalance_delay_ms
            self._joined_since_delay = False
            self._join_deadline_ms = self._now_ms + min(delay, remaining)
            self._initial_remaining_ms = max(remaining - delay, 0)
        else:
            self._complete_join()

    def _complete_join(self) -> None:
        self._join_deadline_ms = None
        self._initial_remaining_ms = None
        late = [each for each in self.members.values() if each.join_token is None and each.instance_id is None]
        for member in late:
            self._remove(member.member_id)
        if self.members and not self._elect_leader_who_joined():
            # Only static members are left and none has come: wait on, until one does or their sessions end.
            self._join_deadline_ms = self._now_ms + self._rebalance_timeout_ms()
            return
        self.generation += 1
        self._pending_syncs.clear()
        if not self.members:
            self.protocol_name = None
            self._enter(GroupState.EMPTY, "no member is left")
            self._append_record()
            return
        self.protocol_name = self._elected_protocol()
        missed = f", without {', '.join(member.member_id for member in late)}" if late else ""
        self._enter(GroupState.COMPLETING_REBALANCE, f"all joined, {self.protocol_name} was chosen{missed}")
        for member in self.members.values():
            self._answer_join(member, self._joined(member, with_members=member.member_id == self.leader))
            self._restart_session(member)
            member.is_new = False
            self._pending_syncs.add(member.member_id)
        self._sync_deadline_ms = self._now_ms + self._rebalance_timeout_ms()

    def _elect_leader_who_joined(self) -> bool:
        assert self.leader is not None
        if self.members[self.leader].join_token is None:
            joined = (member.member_id for member in self.members.values() if member.join_token is not None)
            elected = next(joined, None)
            if elected is None:
                return False
            self.leader = elected
        return True

    def _elected_protocol(self) -> str:
        candidates = self._common_protocols()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=votes.__getitem__)

    def _common_protocols(self) -> set[str]:
        offers = ({name for name, _ in member.protocols} for member in self.members.values())
        return set.intersection(*offers)

    def _all_joined(self) -> bool:
        return not self._pending_joins and all(member.join_token is not None for member in self.members.values())

    def _rebalance_timeout_ms(self) -> int:
        if not self.members:
            return 0
        # At least 1 ms: a deadline that lies ahead, whatever the clients ask for.
        return max(1, *(member.rebalance_timeout_ms for member in self.members.values()))

    # ---- syncing, heartbeats, leaving ----

    def _on_sync(self, event: Sync) -> None:
        error = self._sync_error(event)
        if error is not ErrorCode.NONE:
            self._reply(event.token, SyncReply(error=error))
            return
        member = self.members[event.member_id]
        self._pending_syncs.discard(member.member_id)
        if not self._pending_syncs:
            self._sync_deadline_ms = None
        if self.state is GroupState.STABLE:
            self._reply(event.token, self._synced(member))
            return
        self._answer_sync(member, SyncReply(error=ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync_token = event.token
        if member.member_id == self.leader:
            assignments = dict(event.assignments)
            for each in self.members.values():
                each.assignment = assignments.get(each.member_id, b"")
            self._enter(GroupState.STABLE, f"{self.leader} brought the assignment")
            self._append_record()
            for each in self.members.values():
                if self._answer_sync(each, self._synced(each)):
                    self._restart_session(each)

    def _generation_error(self, event: Sync | Heartbeat) -> ErrorCode:
        """What is wrong with the group, the member or its generation, in Kafka's order."""
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._membership_error(event.member_id, event.instance_id)
        if error is not ErrorCode.NONE:
            return error
        if event.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.NONE

    def _sync_error(self, event: Sync) -> ErrorCode:
        error = self._generation_error(event)
        if error is not ErrorCode.NONE:
            return error
        if event.protocol_type not in (None, self.protocol_type) or event.protocol_name not in (
            None,
            self.protocol_name,
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if self.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _on_heartbeat(self, event: Heartbeat) -> ErrorCode:
        error = self._generation_error(event)
        if error is not ErrorCode.NONE:
            return error
        self._restart_session(self.members[event.member_id])
        preparing = self.state is GroupState.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE

    def _on_leave(self, event: Leave) -> None:
        if self.state is GroupState.DEAD:
            self._reply(event.token, LeaveReply(error=ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        leavers = [Left(*leaver, self._let_go(leaver)) for leaver in event.leavers]
        self._reply(event.token, LeaveReply(leavers=leavers))
        gone = [left.instance_id or left.member_id for left in leavers if left.error is ErrorCode.NONE]
        if gone and self.state is not GroupState.EMPTY:
            self._rebalance(f"{', '.join(gone)} left")

    def _let_go(self, leaver: Leaver) -> ErrorCode:
        member_id = leaver.member_id
        if member_id == NO_MEMBER_ID:
            if leaver.instance_id is None or leaver.instance_id not in self._static_ids:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = self._static_ids[leaver.instance_id]
        elif member_id not in self._pending_joins:
            error = self._membership_error(member_id, leaver.instance_id)
            if error is not ErrorCode.NONE:
                return error
        self._remove(member_id)
        return ErrorCode.NONE

    def _on_delete(self, event: Delete) -> None:
        if self.state is GroupState.DEAD:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif self.state is not GroupState.EMPTY:
            error = ErrorCode.NON_EMPTY_GROUP
        else:
            error = ErrorCode.NONE
            self._enter(GroupState.DEAD, "it was deleted")
            self._pending_joins = Deadlines()
            self._effects.append(Append(GroupTombstone(group_id=self.group_id)))
        self._reply(event.token, DeleteReply(error=error))

    # ---- time ----

    def _expire(self) -> None:
        now = self._now_ms
        for _ in self._pending_joins.due(now):
            self._complete_join_without_the_expired()
        for member_id in self.sessions.due(now):
            member = self.members.get(member_id)
            # An earlier one's end may have put it out as well, or have started its session again. While it waits for an
            # answer, nothing is due: the answer starts its session again.
            if member is not None and member_id not in self.sessions and not member.waits:
                self._end_session(member_id)
        if self._sync_deadline_ms is not None and self._sync_deadline_ms <= now:
            self._sync_deadline_ms = None
            if self._pending_syncs:
                late = sorted(self._pending_syncs)
                for member_id in late:
                    self._remove(member_id)
                self._prepare_rebalance(f"{', '.join(late)} did not sync in time")
        if self._join_deadline_ms is not None and self._join_deadline_ms <= now:
            self._on_join_deadline()

    def _end_session(self, member_id: str) -> None:
        self._remove(member_id)
        if self.state is GroupState.PREPARING_REBALANCE:
            self._complete_join_without_the_expired()
        else:
            self._prepare_rebalance(f"the session of {member_id} expired")

    def _complete_join_without_the_expired(self) -> None:
        # Unlike a leave, an expiry ends even the delay of an empty group's first rebalance, as in Kafka.
        if self.state is GroupState.PREPARING_REBALANCE and self._all_joined():
            self._complete_join()

    def _restart_session(self, member: ClassicMember) -> None:
        self.sessions.set(member.member_id, self._now_ms + member.session_timeout_ms)

    # ---- members and answers ----

    def _membership_error(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Mirrors ``ClassicGroup.validateMember``."""
        if instance_id is not None:
            current = self._static_ids.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def _remove(self, member_id: str) -> None:
        self._pending_joins.set(member_id, None)
        self._pending_syncs.discard(member_id)
        self.sessions.set(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        if member.instance_id is not None:
            del self._static_ids[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self._answer_join(member, JoinReply(error=ErrorCode.UNKNOWN_MEMBER_ID, member_id=NO_MEMBER_ID))
        self._answer_sync(member, SyncReply(error=ErrorCode.UNKNOWN_MEMBER_ID))

    def _joined(
        self, member: ClassicMember, *, with_members: bool, skip_assignment: bool = False, leader: str | None = None
    ) -> JoinReply:
        name = self.protocol_name or ""
        return JoinReply(
            member_id=member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=leader or self.leader or "",
            skip_assignment=skip_assignment,
            members=[each.seen_by_leader(name) for each in self.members.values()] if with_members else (),
        )

    def _synced(self, member: ClassicMember) -> SyncReply:
        return SyncReply(
            protocol_type=self.protocol_type, protocol_name=self.protocol_name, assignment=member.assignment
        )

    def _refuse_join(self, event: Join, error: ErrorCode, member_id: str | None = None) -> None:
        self._reply(event.token, JoinReply(error=error, member_id=event.member_id if member_id is None else member_id))

    def _answer_join(self, member: ClassicMember, body: JoinReply) -> bool:
        token, member.join_token = member.join_token, None
        return self._answer(token, body)

    def _answer_sync(self, member: ClassicMember, body: SyncReply) -> bool:
        token, member.sync_token = member.sync_token, None
        return self._answer(token, body)

    def _answer(self, token: Token | None, body: ReplyBody) -> bool:
        if token is None:
            return False
        self._reply(token, body)
        return True

    def _reply(self, token: Token, body: ReplyBody) -> None:
        self._effects.append(Reply(token, body))

    def _append_record(self) -> None:
        self._effects.append(Append(self.record()))
