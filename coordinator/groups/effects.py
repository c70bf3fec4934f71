"""What a group wants done: the output of ``Group.handle``, to be carried out in order.

A reply that stands behind an append must not be sent before the record is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from loadwise.coordinator.groups.consumer_records import Epochs, Partitions
from loadwise.coordinator.groups.events import NO_GENERATION, Token
from loadwise.coordinator.groups.records import Record
from loadwise.coordinator.groups.streams_topology import Endpoint, InternalTopic, Status, Tasks
from loadwise.protocol.error_codes import ErrorCode


class JoinedMember(NamedTuple):
    """A member as the leader gets to see it."""

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
    """Tells a leader to leave the assignment as it is (KIP-814)."""
    members: Sequence[JoinedMember] = ()
    """Everybody, for the leader; empty for the others."""


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
    """What became of one member that was to leave; the ids are those of the request."""

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
class ConsumerHeartbeatReply:
    """The answer to a ConsumerHeartbeat."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    """What is wrong, for the client to log."""
    member_id: str | None = None
    epoch: int = 0
    """The member's epoch from now on."""
    heartbeat_interval_ms: int = 0
    """How long the member may wait with its next heartbeat."""
    assigned: Epochs | None = None
    """What it may read, by topic id; None: as it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareHeartbeatReply:
    """The answer to a ShareHeartbeat."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    """What is wrong, for the client to log."""
    member_id: str | None = None
    epoch: int = 0
    """The member's epoch from now on."""
    heartbeat_interval_ms: int = 0
    """How long the member may wait with its next heartbeat."""
    assigned: Partitions | None = None
    """What it reads, by topic id; None: as it was."""


class EndpointPartitions(NamedTuple):
    """What can be asked for at a member's endpoint."""

    endpoint: Endpoint
    active: Sequence[tuple[str, Sequence[int]]]
    """Partitions by topic whose state is there, kept by active tasks."""
    standby: Sequence[tuple[str, Sequence[int]]]
    """The same of standbys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsHeartbeatReply:
    """The answer to a StreamsHeartbeat."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    """What is wrong, for the client to log."""
    member_id: str = ""
    epoch: int = 0
    """The member's epoch from now on."""
    heartbeat_interval_ms: int = 0
    """How long the member may wait with its next heartbeat."""
    statuses: Sequence[Status] = ()
    assigned: Tasks | None = None
    """What it is to run; None: as it was."""
    endpoint_epoch: int = 0
    """The newest endpoint information."""
    endpoints: Sequence[EndpointPartitions] | None = None
    """That information; None: the member has it."""
    missing_topics: Sequence[InternalTopic] = ()
    """The topics that are to be made for the group. Its client is not told of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReply:
    """The answer to a CommitOffsets."""

    error: ErrorCode = ErrorCode.NONE
    """Why no offset was committed."""


ReplyBody: TypeAlias = (
    JoinReply
    | SyncReply
    | HeartbeatReply
    | LeaveReply
    | DeleteReply
    | CommitReply
    | ConsumerHeartbeatReply
    | ShareHeartbeatReply
    | StreamsHeartbeatReply
)


class Reply(NamedTuple):
    """Answer whoever waits under this token."""

    token: Token
    body: ReplyBody


@dataclass(frozen=True, slots=True)
class Append:
    """Keep a record, so that replaying all of them rebuilds the group."""

    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """The group passed from one state to another: for its history and the log, no client hears of it."""

    before: str
    """The state as DescribeGroups and ListGroups call it."""
    after: str
    """The new state; the same one where a static member took its old place again."""
    generation: int
    """Generation, or epoch, after it."""
    members: int
    """How many members there are after it."""
    reason: str
    """What happened, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Downgrade:
    """A consumer group, all of whose members speak the classic protocol now, is to go on as a classic group."""

    reason: str
    """What happened, for people."""
    rebalance: bool
    """Whether its members have to join again."""


Effect: TypeAlias = Reply | Append | Transition | Downgrade
