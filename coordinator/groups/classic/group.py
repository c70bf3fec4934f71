"""The classic group protocol as a state machine: members, generations and pending answers.

Mirrors Kafka 4.3's ``ClassicGroup`` and the ``classicGroup…`` methods of ``GroupMetadataManager``, with KIP-62, 134
(initial rebalance delay), 345 (static members), 394 (member id required), 559 (protocol in SyncGroup), 814 (skip
assignment). It does no I/O and uses no clock and no random numbers. `ClassicGroup.handle` takes an event and the
time, and returns effects. Read the table `TRANSITIONS` in ``states.py`` first. Only
`ClassicGroup._enter` changes the state::

    Empty ──join──► PreparingRebalance ──all joined, or time is up──► CompletingRebalance ──leader's sync──► Stable
      ▲                │        ▲                                            │                                 │
      └──all have left─┘        └── join with news, leave, session expired ──┴─────────────────────────────────┘

    Empty ──delete──► Dead

It differs from Kafka where Kafka leaves a client without an answer. A request that a newer one of the same member
replaces gets REBALANCE_IN_PROGRESS; a waiting sync of a removed member gets UNKNOWN_MEMBER_ID.
In a tie the protocol with the first vote wins; Kafka's choice depends on a hash map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, Self, assert_never

from loadwise.coordinator.groups.classic.member import ClassicMember, JoinTerms
from loadwise.coordinator.groups.classic.offered_protocols import OfferedProtocols
from loadwise.coordinator.groups.classic.states import (
    TRANSITIONS,
    Cause,
    Completing,
    Dead,
    Empty,
    GroupState,
    InitialDelay,
    Phase,
    Preparing,
    Stable,
)
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
    Reply,
    ReplyBody,
    SyncReply,
    Transition,
)
from loadwise.coordinator.groups.events import (
    NO_MEMBER_ID,
    CommitOffsets,
    Committer,
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
from loadwise.coordinator.groups.group import EVERY_TOPIC
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.records import GroupRecord, GroupTombstone
from loadwise.protocol.consumer import PROTOCOL_TYPE, Assignment, Subscription
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.errors import MalformedBytesError


class ClassicGroup:
    """One group of the classic protocol. `handle` and `unload` are the only ways to change it."""

    type: Final = "classic"
    """Its type in ListGroups."""

    def __init__(self, group_id: str, limits: GroupLimits | None = None) -> None:
        self.group_id = group_id
        self.limits = limits or GroupLimits()
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.sessions: Deadlines[str] = Deadlines()
        """When members' sessions expire; a member that waits for an answer may have none."""
        self._phase: Phase = Empty()
        self._static_ids: dict[str, str] = {}
        self._offered = OfferedProtocols()
        self._pending_joins: Deadlines[str] = Deadlines()  # assigned ids (KIP-394), and when they expire
        self._now_ms = 0
        self._effects: list[Effect] = []

    @classmethod
    def replay(cls, record: GroupRecord, now_ms: int, limits: GroupLimits | None = None) -> Self:
        """Rebuild a group from its newest record; the members' sessions start again."""
        group = cls(record.group_id, limits)
        group.generation = record.generation
        group.protocol_type = record.protocol_type
        group.protocol_name = record.protocol_name
        group.leader = record.leader
        for kept in record.members:
            member = ClassicMember.replayed(kept, record.protocol_name or "")
            group.sessions.set(member.member_id, now_ms + member.session_timeout_ms)
            group.members[member.member_id] = member
            group._offered.add(member.protocols)
            if member.instance_id is not None:
                group._static_ids[member.instance_id] = member.member_id
        group._phase = Stable() if group.members else Empty(record.since_ms)
        return group

    @classmethod
    def of_members(
        cls, group_id: str, generation: int, members: Sequence[ClassicMember], now_ms: int, limits: GroupLimits
    ) -> Self:
        """Return a stable group of consumers with assignments, converted from another protocol."""
        group = cls(group_id, limits)
        group.generation = generation
        group.protocol_type = PROTOCOL_TYPE
        group.members = {member.member_id: member for member in members}
        group._static_ids = {
            member.instance_id: member.member_id for member in members if member.instance_id is not None
        }
        for member in members:
            group._offered.add(member.protocols)
        group.leader = members[0].member_id
        group.protocol_name = group._elected_protocol()
        group._phase = Stable()
        group._now_ms = now_ms
        for member in members:
            group._restart_session(member)
        return group

    # ---- queries ----

    @property
    def state(self) -> GroupState:
        """Return the state by Kafka's name."""
        return self._phase.name

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when the next `Tick` is due; None if nothing expires."""
        phase = self._phase
        earliest_ms = None if isinstance(phase, Empty | Dead) else phase.deadline_ms
        for deadline_ms in (self.sessions.next_ms, self._pending_joins.next_ms):
            if deadline_ms is not None and (earliest_ms is None or deadline_ms < earliest_ms):
                earliest_ms = deadline_ms
        return earliest_ms

    @property
    def num_members(self) -> int:
        """Return the number of members and of unused assigned ids (KIP-394)."""
        return len(self.members) + len(self._pending_joins)

    @property
    def size_bytes(self) -> int:
        """Return the bytes of its members' subscriptions and assignments."""
        return sum(member.size_bytes for member in self.members.values())

    @property
    def waiting(self) -> Mapping[str, Token]:
        """Return the pending join or sync of each waiting member."""
        match self._phase:
            case Preparing(joins=waiting) | Completing(syncs=waiting):
                return waiting
            case _:
                return {}

    def assignment(self, member_id: str) -> Mapping[str, Sequence[int]] | None:
        """Return a member's partitions by topic name; None for bytes of a custom assignor."""
        if self.protocol_type != PROTOCOL_TYPE:
            return None
        try:
            return Assignment.decode(self.members[member_id].assignment).partitions
        except MalformedBytesError:
            return None  # bytes of a custom assignor: they cannot be shown

    def subscribed_topics(self) -> Container[str]:
        """Return the topics that members read.

        A consumer whose subscription cannot be decoded counts as reading every topic.
        """
        if self.protocol_type != PROTOCOL_TYPE or not self.members:
            return ()
        if self.protocol_name is None:
            return EVERY_TOPIC  # they have joined, but have no protocol yet
        topics: set[str] = set()
        for member in self.members.values():
            try:
                topics.update(Subscription.decode(member.metadata(self.protocol_name)).topics)
            except (MalformedBytesError, KeyError):
                return EVERY_TOPIC
        return topics

    def records(self) -> Sequence[GroupRecord]:
        """Return the record that rebuilds it."""
        return [self.record()]

    def record(self) -> GroupRecord:
        """Return the group's record; valid while it is empty, completing or stable."""
        return GroupRecord(
            group_id=self.group_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader,
            members=tuple(member.record(self.protocol_name or "") for member in self.members.values()),
            since_ms=self._phase.since_ms if isinstance(self._phase, Empty) else None,
        )

    def expires_from_ms(self, committed: CommittedOffset) -> int | None:
        """Return when the retention of an offset starts; None if it does not expire.

        For consumers it starts when they left, or at the commit in a group that never had members. Offsets do not
        expire during a rebalance, nor in groups of other protocol types. Mirrors
        ``ClassicGroup.offsetExpirationCondition``.
        """
        if self.protocol_type is None:
            return committed.committed_ms
        match self._phase:
            case Empty(since_ms=since_ms):
                return committed.committed_ms if since_ms is None else since_ms
            case Stable() if self.protocol_type == PROTOCOL_TYPE:
                return committed.committed_ms
            case _:
                return None

    def validate_offset_commit(self, who: Committer, partitions: Iterable[Partition]) -> ErrorCode:  # noqa: ARG002
        """Return whether this client may commit now.

        In a transaction the member is optional, because older clients do not send it, and a rebalance is allowed.
        Mirrors ``ClassicGroup.validateOffsetCommit``.
        """
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if who.generation < 0 and self.state is GroupState.EMPTY:
            return ErrorCode.NONE  # an administrator, or a consumer that assigns itself
        if who.generation < 0 and who.member_id == NO_MEMBER_ID and who.instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID if who.producer_id is None else ErrorCode.NONE
        error = self._membership_error(who.member_id, who.instance_id)
        if error is ErrorCode.NONE and who.generation != self.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        is_rebalancing = self.state is GroupState.COMPLETING_REBALANCE and who.producer_id is None
        return ErrorCode.REBALANCE_IN_PROGRESS if error is ErrorCode.NONE and is_rebalancing else error

    def validate_offset_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:  # noqa: ARG002
        """Allow every client to read the committed offsets of a classic group."""
        return ErrorCode.NONE

    def validate_offset_delete(self) -> ErrorCode:
        """Refuse to delete offsets of a group that has other members than consumers.

        The topics that these read are unknown.
        """
        if self.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if self.members and self.protocol_type != PROTOCOL_TYPE:
            return ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.NONE

    # ---- requests ----

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
                if not unchanged:
                    reason = f"{member.member_id} changed its subscription"
                elif is_leader:
                    reason = f"the leader, {member.member_id}, asked for it"
                else:
                    reason = f"{member.member_id} rejoined"
                self._wait_for_all(member, event.token, reason)

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

    def _put_back(self, member: ClassicMember, member_id: str, terms: JoinTerms) -> None:
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

    # ---- rebalances ----

    def _enter(self, cause: Cause, phase: Phase, reason: str) -> None:
        before = self.state
        assert TRANSITIONS[before][cause] is phase.name, f"{cause} does not lead from {before} to {phase.name}"
        self._phase = phase
        self._effects.append(
            Transition(
                before=before.value,
                after=phase.name.value,
                generation=self.generation,
                members=len(self.members),
                reason=reason,
            )
        )

    def _rebalance(self, reason: str) -> None:
        """Make all members rejoin; continue at once if all have joined already."""
        self._prepare(reason)
        self._complete_join_if_all_joined()

    def _prepare(self, reason: str) -> Preparing:
        """Wait for members to join; waiting syncs are answered with an error, so that these rejoin."""
        if isinstance(self._phase, Preparing):
            return self._phase
        if isinstance(self._phase, Completing):
            for member in self.members.values():
                member.assignment = b""
            for member_id in list(self._phase.syncs):
                self._answer(member_id, ErrorCode.REBALANCE_IN_PROGRESS)
                self._restart_session(self.members[member_id])
        timeout_ms = self._rebalance_timeout_ms()
        if isinstance(self._phase, Empty):
            delay_ms = self.limits.initial_rebalance_delay_ms
            initial = InitialDelay(remaining_ms=max(timeout_ms - delay_ms, 0))
            phase = Preparing(deadline_ms=self._now_ms + delay_ms, initial=initial)
        else:
            phase = Preparing(deadline_ms=self._now_ms + timeout_ms)
        self._enter(Cause.MEMBERS_CHANGED, phase, reason)
        return phase

    def _complete_join_if_all_joined(self) -> None:
        """Continue once all members have joined; an empty group's first rebalance waits for its delay."""
        phase = self._phase
        if isinstance(phase, Preparing) and phase.initial is None and self._all_joined(phase):
            self._complete_join(phase)

    def _complete_join_without_the_expired(self) -> None:
        # Unlike a leave, an expiry ends even the delay of an empty group's first rebalance, as in Kafka.
        if isinstance(self._phase, Preparing) and self._all_joined(self._phase):
            self._complete_join(self._phase)

    def _on_join_deadline(self, phase: Preparing) -> None:
        initial = phase.initial
        if initial is not None and initial.remaining_ms and initial.joined_since:
            delay_ms = self.limits.initial_rebalance_delay_ms
            phase.deadline_ms = self._now_ms + min(delay_ms, initial.remaining_ms)
            phase.initial = InitialDelay(remaining_ms=max(initial.remaining_ms - delay_ms, 0))
        else:
            self._complete_join(phase)

    def _complete_join(self, phase: Preparing) -> None:
        phase.initial = None
        late = [
            each.member_id
            for each in self.members.values()
            if each.member_id not in phase.joins and each.instance_id is None
        ]
        for member_id in late:
            self._remove(member_id)
        if not self.members:
            self.generation += 1
            self.protocol_name = None
            self._enter(Cause.ALL_GONE, Empty(self._now_ms), "all members have left")
            self._append_record()
            return
        if not phase.joins:
            # Only static members are left, and none has rejoined. Wait until one does or their sessions expire.
            phase.deadline_ms = self._now_ms + self._rebalance_timeout_ms()
            return
        if self.leader not in phase.joins:
            self.leader = next(member_id for member_id in self.members if member_id in phase.joins)
        self.generation += 1
        self.protocol_name = self._elected_protocol()
        missed = f", without {', '.join(late)}" if late else ""
        completing = Completing(pending=set(self.members), deadline_ms=self._now_ms + self._rebalance_timeout_ms())
        self._enter(Cause.ALL_JOINED, completing, f"all joined, {self.protocol_name} was chosen{missed}")
        for member in self.members.values():
            token = phase.joins.get(member.member_id)
            if token is not None:
                self._reply(token, self._joined(member, with_members=member.member_id == self.leader))
            self._restart_session(member)

    def _all_joined(self, phase: Preparing) -> bool:
        return not self._pending_joins and phase.joins.keys() == self.members.keys()

    def _assign(self, assignments: Mapping[str, bytes], phase: Completing) -> None:
        for member in self.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        record = self.record()
        if record.size_bytes > self.limits.max_record_bytes:
            for member_id in list(phase.syncs):
                self._answer(member_id, ErrorCode.UNKNOWN_SERVER_ERROR)
                self._restart_session(self.members[member_id])
            self._rebalance(
                f"its record has {record.size_bytes:,} bytes, and the limit is {self.limits.max_record_bytes:,} "
                f"(message.max.bytes): use fewer members, topics or partitions, or shorter user data"
            )
            return
        stable = Stable(pending=phase.pending, deadline_ms=phase.deadline_ms)
        self._enter(Cause.ASSIGNED, stable, f"{self.leader} sent the assignment")
        self._effects.append(Append(record))
        for member in self.members.values():
            token = phase.syncs.get(member.member_id)
            if token is not None:
                self._reply(token, self._synced(member))
                self._restart_session(member)

    # ---- time ----

    def _expire(self, *, is_tick: bool) -> None:
        """Complete what is due; ``is_tick``: no request caused the event."""
        now = self._now_ms
        for _ in self._pending_joins.due(now):
            self._complete_join_without_the_expired()
        for member_id in self.sessions.due(now):
            # An earlier expiry may have removed this member too, or restarted its session. While it waits for an answer
            # it cannot expire; the answer restarts its session.
            if member_id in self.members and member_id not in self.sessions and not self._is_waiting(member_id):
                self._end_session(member_id)
        phase = self._phase
        if isinstance(phase, Completing | Stable) and phase.deadline_ms is not None and phase.deadline_ms <= now:
            phase.deadline_ms = None
            late = sorted(phase.pending)
            for member_id in late:
                self._remove(member_id)
            if late:
                self._rebalance(f"{', '.join(late)} did not sync in time")
        phase, by_timer = self._phase, self.limits.initial_delay_ends_by_timer
        if isinstance(phase, Preparing) and phase.deadline_ms <= now:
            waits = by_timer and phase.initial is not None and not is_tick
            if not waits:
                self._on_join_deadline(phase)

    def _is_waiting(self, member_id: str) -> bool:
        """Return whether it waits for an answer, which replaces its heartbeats.

        The join of a new member does not.
        """
        is_new = isinstance(self._phase, Preparing) and member_id in self._phase.newcomers
        return member_id in self.waiting and not is_new

    def _end_session(self, member_id: str) -> None:
        self._remove(member_id)
        if isinstance(self._phase, Preparing):
            self._complete_join_without_the_expired()
        else:
            self._rebalance(f"the session of {member_id} expired")

    # ---- members and answers ----

    def _remove(self, member_id: str) -> None:
        self._pending_joins.set(member_id, None)
        if member_id not in self.members:
            return
        self._answer(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        self._forget(member_id)
        member = self.members.pop(member_id)
        self._offered.remove(member.protocols)
        if member.instance_id is not None:
            del self._static_ids[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def _forget(self, member_id: str) -> None:
        self.sessions.set(member_id, None)
        match self._phase:
            case Preparing(newcomers=marked) | Completing(pending=marked) | Stable(pending=marked):
                marked.discard(member_id)
            case _:
                pass

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

    def _answer(self, member_id: str, error: ErrorCode) -> None:
        """Answer a member's waiting join or sync, if there is one, with an error."""
        match self._phase:
            case Preparing(joins=joins) if member_id in joins:
                told = NO_MEMBER_ID if error is ErrorCode.UNKNOWN_MEMBER_ID else member_id
                self._reply(joins.pop(member_id), JoinReply(error=error, member_id=told))
            case Completing(syncs=syncs) if member_id in syncs:
                self._reply(syncs.pop(member_id), SyncReply(error=error))
            case _:
                pass

    def _reply(self, token: Token, body: ReplyBody) -> None:
        self._effects.append(Reply(token, body))

    def _append_record(self) -> None:
        self._effects.append(Append(self.record()))

    # ---- checks ----

    def _membership_error(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Mirrors ``ClassicGroup.validateMember``."""
        if instance_id is not None:
            current = self._static_ids.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def _accepts(self, member_id: str) -> bool:
        match self._phase:
            case Empty() | Dead():
                return True
            case Preparing(joins=joins):
                # Counting the waiting members excludes the last ones to rejoin if the limit was lowered.
                return member_id in joins or len(joins) < self.limits.max_size
            case _:
                return member_id in self.members or len(self.members) < self.limits.max_size

    def _supports(self, event: Join) -> bool:
        if self.state is GroupState.EMPTY:
            return bool(event.protocol_type and event.protocols)
        if event.protocol_type != self.protocol_type:
            return False
        if not self.members:
            return bool(event.protocols)
        return any(self._offered.is_common(name) for name, _ in event.protocols)

    def _elected_protocol(self) -> str:
        candidates = self._offered.common
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=votes.__getitem__)

    def _rebalance_timeout_ms(self) -> int:
        if not self.members:
            return 0
        # At least 1 ms, so that the deadline is in the future whatever a client requests.
        return max(1, *(member.rebalance_timeout_ms for member in self.members.values()))

    def _restart_session(self, member: ClassicMember) -> None:
        self.sessions.set(member.member_id, self._now_ms + member.session_timeout_ms)
