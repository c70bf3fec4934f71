"""The classic group protocol as a state machine: members, generations and pending answers.

Mirrors Kafka 4.3's ``ClassicGroup`` and the ``classicGroup…`` methods of ``GroupMetadataManager``, with KIP-62, 134
(initial rebalance delay), 345 (static members), 394 (member id required), 559 (protocol in SyncGroup), 814 (skip
assignment). It does no I/O and uses no clock and no random numbers. `ClassicGroup.handle` takes an event and the
time, and returns effects. Read the table `TRANSITIONS` in ``states.py`` first. This file handles
requests, ``rebalance.py`` rebalances, and ``described.py`` answers queries::

    Empty ──join──► PreparingRebalance ──all joined, or time is up──► CompletingRebalance ──leader's sync──► Stable
      ▲                │        ▲                                            │                                 │
      └──all have left─┘        └── join with news, leave, session expired ──┴─────────────────────────────────┘

    Empty ──delete──► Dead

It differs from Kafka where Kafka leaves a client without an answer. A request that a newer one of the same member
replaces gets REBALANCE_IN_PROGRESS; a waiting sync of a removed member gets UNKNOWN_MEMBER_ID.
In a tie the protocol with the first vote wins; Kafka's choice depends on a hash map.
"""

from __future__ import annotations

from typing import assert_never

from loadwise.coordinator.groups.classic.member import ClassicMember, MemberTerms
from loadwise.coordinator.groups.classic.rebalance import RebalancedGroup
from loadwise.coordinator.groups.classic.states import Cause, Completing, Dead, GroupState, Preparing, Stable
from loadwise.coordinator.groups.deadlines import Deadlines
from loadwise.coordinator.groups.effects import (
    Append,
    ConsumerHeartbeatReply,
    DeleteReply,
    Effect,
    HeartbeatReply,
    JoinReply,
    LeaveReply,
    Left,
    SyncReply,
)
from loadwise.coordinator.groups.events import (
    NO_MEMBER_ID,
    CommitOffsets,
    ConsumerHeartbeat,
    Delete,
    Event,
    ExpireSession,
    ForceRebalance,
    Heartbeat,
    Join,
    KindHeartbeat,
    Leave,
    Leaver,
    Sync,
    Tick,
    Token,
)
from loadwise.coordinator.groups.records import GroupTombstone
from loadwise.protocol.error_codes import ErrorCode


class ClassicGroup(RebalancedGroup):
    """One group of the classic protocol. `handle` and `unload` are the only ways to change it."""

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle an event, then everything due at ``now_ms``; time never goes back.

        The token of each event gets exactly one `Reply`, now or after a later event. A heartbeat costs O(log members),
        a rebalance O(members).
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
            case ConsumerHeartbeat():
                message = f"{self.group_id!r} is a classic group"
                self._reply(event.token, ConsumerHeartbeatReply(error=ErrorCode.GROUP_ID_NOT_FOUND, message=message))
            case KindHeartbeat():
                raise AssertionError(f"{type(event).__name__} must be refused before it reaches a classic group")
            case Delete():
                self._on_delete(event)
            case ExpireSession():
                if event.member_id in self.members:
                    self._end_session(event.member_id)
            case ForceRebalance():
                if self.members:
                    self._rebalance("forced by a test")
            case CommitOffsets():
                # In these two states Kafka treats a commit like a heartbeat.
                if event.who.member_id in self.members and isinstance(self._phase, Preparing | Stable):
                    self._restart_session(self.members[event.who.member_id])
            case Tick():
                pass
            case _:
                assert_never(event)
        self._expire(is_tick=isinstance(event, Tick))
        effects, self._effects = self._effects, []
        return effects

    def keep_alive(self, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> bool:
        """Handle a successful heartbeat faster than `handle`, if nothing else is due.

        Returns False and changes nothing for any other heartbeat, which needs `handle`. O(1).
        """
        due_ms = self.next_deadline_ms
        if (
            generation != self.generation
            or not isinstance(self._phase, Stable)
            or (due_ms is not None and due_ms <= now_ms)
            or self._membership_error(member_id, instance_id) is not ErrorCode.NONE
        ):
            return False
        return self.sessions.postpone(member_id, now_ms + self.members[member_id].session_timeout_ms)

    def unload(self, error: ErrorCode, now_ms: int) -> list[Effect]:
        """Answer all waiting clients with an error. Members stay, and their sessions start again."""
        self._now_ms = now_ms
        self._effects = []
        for member_id in list(self.waiting):
            self._answer(member_id, error)
            self._restart_session(self.members[member_id])
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
                # Kafka throws IllegalStateException here, which clients get as this code.
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
                # The response to its join was probably lost, so send it again.
                self._reply(event.token, self._joined(member, with_members=is_leader))
            case GroupState.STABLE if unchanged and not is_leader:
                self._reply(event.token, self._joined(member, with_members=False))
            case GroupState.EMPTY | GroupState.DEAD:
                self._refuse_join(event, ErrorCode.UNKNOWN_MEMBER_ID)
            case _:
                # If a leader joins a stable group, it wants a rebalance, for example for new partitions.
                self._update(member, event)
                news = "" if unchanged else " with a new subscription"
                self._wait_for_all(member, event.token, f"{member.member_id} rejoined{news}")

    def _add_member(self, event: Join, member_id: str) -> None:
        if not self.members:
            self.protocol_type = event.protocol_type
        member = ClassicMember.joining(event, member_id)
        self.sessions.set(member_id, self._now_ms + self.limits.new_member_join_timeout_ms)
        self.members[member_id] = member
        self._offered.add(member.protocols)
        if member.instance_id is not None:
            self._static_ids[member.instance_id] = member_id
        if self.leader is None:
            self.leader = member_id
        self._pending_joins.set(member_id, None)
        self._wait_for_all(member, event.token, f"{member_id} joined", is_new=True)

    def _update(self, member: ClassicMember, event: Join) -> None:
        self._offered.remove(member.protocols)
        member.update(event)
        self._offered.add(member.protocols)

    def _wait_for_all(self, member: ClassicMember, token: Token, reason: str, *, is_new: bool = False) -> None:
        """Let a member's join wait for the next generation, and start a rebalance if needed."""
        initial = self._phase.initial if isinstance(self._phase, Preparing) else None
        phase = self._prepare(reason)
        if is_new:
            phase.newcomers.add(member.member_id)
            if initial is not None:
                initial.joined_since = True  # except the one that started the delay
        self._answer(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
        phase.joins[member.member_id] = token
        self._complete_join_if_all_joined()

    def _replace_static_member(self, event: Join, replaced: str) -> None:
        """Replace a static member that returned without its id by one with a new id (KIP-345)."""
        old_leader = self.leader
        before = self.members[replaced].terms
        member = self._fence(replaced, event.fresh_member_id)
        self._update(member, event)
        self._restart_session(member)
        came_back = f"static member {member.instance_id} returned as {member.member_id}"
        match self._phase:
            case Stable() if self._elected_protocol() == self.protocol_name:
                if self.record().size_bytes > self.limits.max_record_bytes:
                    self._put_back(member, replaced, before)
                    refusal = JoinReply(
                        error=ErrorCode.UNKNOWN_SERVER_ERROR,
                        member_id=NO_MEMBER_ID,
                        generation=self.generation,
                        protocol_type=self.protocol_type,
                        protocol_name=self.protocol_name,
                        leader=old_leader or "",
                    )
                    self._reply(event.token, refusal)
                    return
                self._append_record()
                self._enter(Cause.REPLACED, self._phase, came_back)
                # Before v9 the response names the old leader, even if this member replaces it. The restarted leader
                # then acts as a follower and keeps the assignment.
                is_leader = self.leader == member.member_id
                if event.can_skip_assignment:
                    reply = self._joined(member, with_members=is_leader, skip_assignment=is_leader)
                else:
                    reply = self._joined(member, with_members=False, leader=old_leader)
                self._reply(event.token, reply)
            case Stable():
                other = f"static member {member.instance_id} returned with other protocols"
                self._wait_for_all(member, event.token, other)
            case _:
                # In CompletingRebalance the leader may already have assigned to the old id, and the new one would get
                # nothing.
                self._wait_for_all(member, event.token, came_back)

    def _put_back(self, member: ClassicMember, member_id: str, terms: MemberTerms) -> None:
        """Undo a replacement that cannot be stored."""
        self._fence(member.member_id, member_id)
        self._offered.remove(member.protocols)
        member.terms = terms
        self._offered.add(member.protocols)
        self._restart_session(member)

    def _fence(self, replaced: str, member_id: str) -> ClassicMember:
        self._answer(replaced, ErrorCode.FENCED_INSTANCE_ID)
        self._forget(replaced)
        member = self.members.pop(replaced)
        member.member_id = member_id
        self.members[member_id] = member
        assert member.instance_id is not None
        self._static_ids[member.instance_id] = member_id
        if self.leader == replaced:
            self.leader = member_id
        return member

    def _refuse_join(self, event: Join, error: ErrorCode, member_id: str | None = None) -> None:
        self._reply(event.token, JoinReply(error=error, member_id=event.member_id if member_id is None else member_id))

    # ---- syncing, heartbeats, leaving ----

    def _on_sync(self, event: Sync) -> None:
        error = self._sync_error(event)
        if error is not ErrorCode.NONE:
            self._reply(event.token, SyncReply(error=error))
            return
        member = self.members[event.member_id]
        match self._phase:
            case Stable():
                self._synced_by(member.member_id, self._phase)
                self._reply(event.token, self._synced(member))
            case Completing():
                self._synced_by(member.member_id, self._phase)
                self._answer(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
                self._phase.syncs[member.member_id] = event.token
                if member.member_id == self.leader:
                    self._assign(dict(event.assignments), self._phase)
            case _:
                raise AssertionError(f"a sync was accepted in state {self.state}")

    @staticmethod
    def _synced_by(member_id: str, phase: Completing | Stable) -> None:
        phase.pending.discard(member_id)
        if not phase.pending:
            phase.deadline_ms = None

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

    def _generation_error(self, event: Sync | Heartbeat) -> ErrorCode:
        """Return what is wrong with the group, the member or its generation, in Kafka's order."""
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._membership_error(event.member_id, event.instance_id)
        if error is not ErrorCode.NONE:
            return error
        if event.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
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
            self._enter(Cause.DELETED, Dead(), "it was deleted")
            self._pending_joins = Deadlines()
            self._effects.append(Append(GroupTombstone(group_id=self.group_id)))
        self._reply(event.token, DeleteReply(error=error))
