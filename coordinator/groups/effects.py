"""Effects: the output of ``Group.handle``, to be carried out in order.

A reply after an append must not be sent before the record is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from loadwise.coordinator.groups.consumer_records import Epochs
from loadwise.coordinator.groups.events import NO_GENERATION, Token
from loadwise.coordinator.groups.records import Record
from loadwise.protocol.error_codes import ErrorCode


class JoinReplyMember(NamedTuple):
    """A member as the leader gets it."""

    member_id: str
    instance_id: str | None
    metadata: bytes
    """The member's subscription under the chosen protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinReply:
    """The answer to a Join."""

    error: ErrorCode = ErrorCode.NONE
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    """Member id of the leader."""
    skip_assignment: bool = False
    """Makes the leader keep the assignment (KIP-814)."""
    members: Sequence[JoinReplyMember] = ()
    """All members, for the leader; empty for the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReply:
    """The answer to a Sync."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReply:
    """The answer to a Heartbeat."""

    error: ErrorCode = ErrorCode.NONE


class Left(NamedTuple):
    """The result of one member's leave, with the ids of the request."""

    member_id: str
    instance_id: str | None
    error: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveReply:
    """The answer to a Leave."""

    error: ErrorCode = ErrorCode.NONE
    leavers: Sequence[Left] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteReply:
    """The answer to a Delete."""

    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochHeartbeatReply:
    """The answer to a heartbeat with a member epoch."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    """The error's description, for the client's log."""
    member_id: str | None = None
    epoch: int = 0
    """The member's new epoch."""
    heartbeat_interval_ms: int = 0
    """How often the member must send heartbeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeatReply(EpochHeartbeatReply):
    """The answer to a ConsumerHeartbeat."""

    assigned: Epochs | None = None
    """Its partitions by topic id; None: unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReply:
    """The answer to a CommitOffsets."""

    error: ErrorCode = ErrorCode.NONE
    """Why no offset was committed."""


ReplyBody: TypeAlias = (
    JoinReply | SyncReply | HeartbeatReply | LeaveReply | DeleteReply | CommitReply | EpochHeartbeatReply
)


class Reply(NamedTuple):
    """Answer the client that waits under this token."""

    token: Token
    body: ReplyBody


@dataclass(frozen=True, slots=True)
class Append:
    """Store a record; replaying all of them rebuilds the group."""

    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A change of the group's state, for its history and the log only."""

    before: str
    """The state by its name in DescribeGroups and ListGroups."""
    after: str
    """The new state; the same one if a static member was replaced."""
    generation: int
    """Generation, or epoch, after it."""
    members: int
    """Number of members after it."""
    reason: str
    """What happened, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Downgrade:
    """Converts a consumer group with only classic members to a classic group."""

    reason: str
    """What happened, for people."""
    rebalance: bool
    """Whether its members must rejoin."""


Effect: TypeAlias = Reply | Append | Transition | Downgrade
