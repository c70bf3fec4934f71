"""The common part of share groups and streams groups, whose members only send heartbeats.

A heartbeat applies its member's changes, computes a new assignment if the group epoch requires one, and moves the
member towards it. There is no join or sync, and administrators cannot remove members.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Final, assert_never

from loadwise.coordinator.groups.deadlines import Deadlines
from loadwise.coordinator.groups.effects import (
    Append,
    DeleteReply,
    Effect,
    EpochHeartbeatReply,
    LeaveReply,
    Left,
    Reply,
    ReplyBody,
    Transition,
)
from loadwise.coordinator.groups.events import (
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
    Sync,
    Tick,
    Token,
)
from loadwise.coordinator.groups.group import GroupMember
from loadwise.coordinator.groups.records import GroupTombstone, Record
from loadwise.coordinator.groups.topic_view import TopicView
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode


class Timer(Enum):
    """What a group waits for."""

    SESSION = "session"
    """A member must send a heartbeat."""
    REBALANCE = "rebalance"
    """A member must finish its revocation."""
    INITIAL_DELAY = "initial delay"
    """More members may join a new group."""


class HeartbeatGroup(ABC):
    """A group whose members only send heartbeats. Only `handle` changes it."""

    type: str
    """Its type in ListGroups."""
    leader: Final = None
    """No member leads, because the coordinator assigns."""

    def __init__(self, group_id: str, topics: TopicView) -> None:
        self.group_id = group_id
        self.is_dead = False
        self._topics = topics
        self._topics_version: int | None = None
        """The topics' version of its epoch; None: they must be checked again."""
        self._timers: Deadlines[tuple[Timer, str]] = Deadlines()
        """Each with a member's id, or an empty one for the group's timers."""
        self._reason = ""
        self._effects: list[Effect] = []

    # ---- queries ----

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when the next `Tick` is due; None if nothing expires."""
        return self._timers.next_ms

    @property
    @abstractmethod
    def members(self) -> Mapping[str, GroupMember]:
        """Return the members by id."""

    @property
    @abstractmethod
    def generation(self) -> int:
        """Return the group epoch."""

    @property
    @abstractmethod
    def state(self) -> Enum:
        """Return the group's state."""

    @property
    def num_members(self) -> int:
        """Return the number of members."""
        return len(self.members)

    # ---- events ----

    def handle(self, event: Event, now_ms: int) -> Turns[list[Effect]]:
        """Handle an event, then everything due at ``now_ms``; time never goes back.

        The next event must wait until this one is handled.
        """
        before, epoch = self.state, self.generation
        match event:
            case KindHeartbeat():
                self._reply(event.token, (yield from self._answer(event, now_ms)))
            case Delete():
                self._on_delete(event)
            case ExpireSession():
                if event.member_id in self.members:
                    yield from self._remove(event.member_id, f"the session of {event.member_id} ended")
            case ForceRebalance():
                if self.members:
                    yield from self._refresh("forced by a test")
            case Leave():
                left = [Left(*leaver, ErrorCode.UNKNOWN_MEMBER_ID) for leaver in event.leavers]
                self._reply(event.token, LeaveReply(leavers=left))
            case Join() | Sync() | Heartbeat() | ConsumerHeartbeat():
                raise AssertionError(f"{type(event).__name__} must be refused before it reaches a {self.type} group")
            case CommitOffsets() | Tick():
                pass
            case _:
                assert_never(event)
        for timer, member_id in self._timers.due(now_ms):
            yield from self._on_due(timer, member_id, now_ms)
        if self.state is not before or self.generation != epoch:
            self._append_transition(before)
        effects, self._effects = self._effects, []
        return effects

    def unload(self, error: ErrorCode, now_ms: int) -> list[Effect]:  # noqa: ARG002
        """Return no effects, because no client waits."""
        return []

    @abstractmethod
    def _answer(self, event: KindHeartbeat, now_ms: int) -> Turns[EpochHeartbeatReply]:
        """Handle a heartbeat."""

    @abstractmethod
    def _refresh(self, reason: str | None) -> Turns[None]:
        """Increment the group epoch if there is a reason, or if the topics have changed."""

    @abstractmethod
    def _forget(self, member_id: str) -> None:
        """Write a member's removal."""

    def _remove(self, member_id: str, reason: str) -> Turns[None]:
        self._forget(member_id)
        for timer in Timer:
            self._timers.set((timer, member_id), None)
        yield from self._refresh(reason)

    def _on_due(self, timer: Timer, member_id: str, now_ms: int) -> Turns[None]:  # noqa: ARG002
        assert timer is Timer.SESSION, f"{timer.value} is not for a {self.type} group"
        yield from self._remove(member_id, f"{member_id} sent no heartbeat within its session timeout")

    def _on_delete(self, event: Delete) -> None:
        if self.is_dead:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif self.members:
            error = ErrorCode.NON_EMPTY_GROUP
        else:
            error = ErrorCode.NONE
            self.is_dead = True
            self._append(GroupTombstone(group_id=self.group_id))
        self._reply(event.token, DeleteReply(error=error))

    # ---- effects ----

    def _append(self, record: Record) -> None:
        self._effects.append(Append(record))

    def _reply(self, token: Token, body: ReplyBody) -> None:
        self._effects.append(Reply(token, body))

    def _append_transition(self, before: Enum) -> None:
        self._effects.append(
            Transition(
                before=before.value,
                after=self.state.value,
                generation=self.generation,
                members=len(self.members),
                reason="it was deleted" if self.is_dead else self._reason,
            )
        )
