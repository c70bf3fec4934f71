"""What share groups and streams groups do alike: members that heartbeat with their epochs, and nothing of KIP-62.

A heartbeat takes in what is new of its member, has a new assignment made if the group epoch is ahead of it, and moves
the member towards its part. Nobody joins or synchronizes, and administrators remove no members.
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
    LeaveReply,
    Left,
    Reply,
    ReplyBody,
    ShareHeartbeatReply,
    StreamsHeartbeatReply,
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
    Leave,
    ShareHeartbeat,
    StreamsHeartbeat,
    Sync,
    Tick,
    Token,
)
from loadwise.coordinator.groups.group import Member
from loadwise.coordinator.groups.records import GroupTombstone, Record
from loadwise.coordinator.groups.topic_view import TopicView
from loadwise.protocol.error_codes import ErrorCode


class Timer(Enum):
    """What a group waits for."""

    SESSION = "session"
    """A member has to send a heartbeat."""
    REBALANCE = "rebalance"
    """A member has to give up what it is to give up."""
    INITIAL_DELAY = "initial delay"
    """Members of a new group have time to come."""


class HeartbeatGroup(ABC):
    """A group whose members only send heartbeats. `handle` is the only way to change it."""

    type: str
    """What ListGroups calls it."""
    leader: Final = None
    """Nobody leads: the coordinator assigns."""

    def __init__(self, group_id: str, topics: TopicView) -> None:
        self.group_id = group_id
        self.is_dead = False
        self._topics = topics
        self._topics_version: int | None = None
        """The version of the topics that its epoch takes into account; None: they are to be looked at."""
        self._timers: Deadlines[tuple[Timer, str]] = Deadlines()
        """Each with the member's id, or with an empty one for the group's."""
        self._reason = ""
        self._effects: list[Effect] = []

    # ---- what others may ask ----

    @property
    def next_deadline_ms(self) -> int | None:
        """When a `Tick` is due at the latest; None while nothing can happen by time alone."""
        return self._timers.next_ms

    @property
    @abstractmethod
    def members(self) -> Mapping[str, Member]:
        """The members by id."""

    @property
    @abstractmethod
    def generation(self) -> int:
        """The group epoch, where a classic group has its generation."""

    @property
    @abstractmethod
    def state(self) -> Enum:
        """The group's state."""

    @property
    def num_members(self) -> int:
        """How many members there are."""
        return len(self.members)

    # ---- what changes it ----

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Let an event take effect, then whatever is due at ``now_ms``; time never runs backwards."""
        before, epoch = self.state, self.generation
        match event:
            case ShareHeartbeat() | StreamsHeartbeat():
                self._reply(event.token, self._answer(event, now_ms))
            case Delete():
                self._on_delete(event)
            case ExpireSession():
                if event.member_id in self.members:
                    self._remove(event.member_id, f"the session of {event.member_id} ended")
            case ForceRebalance():
                if self.members:
                    self._refresh("it was asked for")
            case Leave():
                left = [Left(*leaver, ErrorCode.UNKNOWN_MEMBER_ID) for leaver in event.leavers]
                self._reply(event.token, LeaveReply(leavers=left))
            case Join() | Sync() | Heartbeat() | ConsumerHeartbeat():
                raise AssertionError(f"{type(event).__name__} is refused before it gets to a {self.type} group")
            case CommitOffsets() | Tick():
                pass
            case _:
                assert_never(event)
        for timer, member_id in self._timers.due(now_ms):
            self._on_due(timer, member_id, now_ms)
        if self.state is not before or self.generation != epoch:
            self._append_transition(before)
        effects, self._effects = self._effects, []
        return effects

    def unload(self, error: ErrorCode, now_ms: int) -> list[Effect]:  # noqa: ARG002
        """No client waits in it, so there is nobody to answer."""
        return []

    @abstractmethod
    def _answer(
        self, event: ShareHeartbeat | StreamsHeartbeat, now_ms: int
    ) -> ShareHeartbeatReply | StreamsHeartbeatReply:
        """Take a heartbeat in."""

    @abstractmethod
    def _refresh(self, reason: str | None) -> None:
        """Bump the group epoch if there is a reason, or if the topics are other ones now."""

    @abstractmethod
    def _forget(self, member_id: str) -> None:
        """Write that a member is gone."""

    def _remove(self, member_id: str, reason: str) -> None:
        self._forget(member_id)
        for timer in Timer:
            self._timers.set((timer, member_id), None)
        self._refresh(reason)

    def _on_due(self, timer: Timer, member_id: str, now_ms: int) -> None:  # noqa: ARG002
        assert timer is Timer.SESSION, f"{timer.value} is not for a {self.type} group"
        self._remove(member_id, f"{member_id} sent no heartbeat within its session timeout")

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
