"""How a classic group gets from one generation to the next.

This module has all steps along `TRANSITIONS` that time or missing members cause; ``group.py`` handles requests. Only
`RebalancedGroup._enter` changes the state.
"""

from __future__ import annotations

from collections.abc import Mapping

from loadwise.coordinator.groups.classic.described import DescribedGroup
from loadwise.coordinator.groups.classic.member import ClassicMember
from loadwise.coordinator.groups.classic.states import (
    TRANSITIONS,
    Cause,
    Completing,
    Empty,
    InitialDelay,
    Phase,
    Preparing,
    Stable,
)
from loadwise.coordinator.groups.effects import Append, Effect, JoinReply, Reply, ReplyBody, SyncReply, Transition
from loadwise.coordinator.groups.events import NO_MEMBER_ID, Token
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.protocol.error_codes import ErrorCode


class RebalancedGroup(DescribedGroup):
    """The rebalances of a classic group; its effects contain the answers to clients."""

    def __init__(self, group_id: str, limits: GroupLimits | None = None) -> None:
        super().__init__(group_id, limits)
        self._effects: list[Effect] = []

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
        """Remove a member from the state."""
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
