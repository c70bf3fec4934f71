"""Events: the input of ``Group.handle``.

An event that a client waits on has a token, and gets exactly one `Reply`, at once or later. The time is a separate
argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias
from uuid import UUID

from loadwise.coordinator.groups.partitions import CommittedOffset, Partition

Token: TypeAlias = int
"""Identifies a client's pending request."""

NO_MEMBER_ID = ""
"""The member id of a client that has none yet (Kafka's ``UNKNOWN_MEMBER_ID``)."""

NO_GENERATION = -1
"""The generation of a client that is not in the group."""


class Protocol(NamedTuple):
    """An assignment protocol that a member supports, in its order of preference."""

    name: str
    """For example ``range``."""
    metadata: bytes
    """The member's subscription; opaque to the coordinator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """JoinGroup: a client wants to be in the next generation."""

    token: Token
    member_id: str
    """`NO_MEMBER_ID` the first time."""
    instance_id: str | None
    """Group instance id of a static member (KIP-345)."""
    fresh_member_id: str
    """The id for a client without one. The caller generates it, because the state machine uses no random numbers."""
    client_id: str
    client_host: str
    protocol_type: str
    """``consumer`` for consumers."""
    protocols: Sequence[Protocol]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    requires_member_id: bool
    """Whether a new dynamic member must rejoin with an id first (KIP-394; JoinGroup v4 and later)."""
    can_skip_assignment: bool
    """Whether a replaced static leader can skip the assignment (KIP-814; JoinGroup v9 and later)."""
    may_describe: Callable[[str], bool] | None = None
    """Whether the client may describe a topic, by name; None: all topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """SyncGroup: a member requests its assignment; the leader sends all assignments."""

    token: Token
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    """The group's protocol type as the member knows it; None before SyncGroup v5."""
    protocol_name: str | None
    """The chosen protocol as the member knows it; None before SyncGroup v5."""
    assignments: Sequence[tuple[str, bytes]]
    """Member id and assignment; empty except from the leader."""


class Heartbeat(NamedTuple):
    """Heartbeat: a member is alive."""

    token: Token
    member_id: str
    instance_id: str | None
    generation: int


class Leaver(NamedTuple):
    """One leaving member."""

    member_id: str
    """`NO_MEMBER_ID` if an administrator removes a static member by its instance id."""
    instance_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """LeaveGroup: members leave, or an administrator removes them."""

    token: Token
    leavers: Sequence[Leaver]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """DeleteGroups: an administrator removes the group."""

    token: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """The client that commits offsets, as the request describes it."""

    member_id: str = NO_MEMBER_ID
    instance_id: str | None = None
    generation: int = NO_GENERATION
    """The member's generation, or its epoch in KIP-848; negative for a client that is not a member."""
    knows_epochs: bool = True
    """Whether the request's version supports KIP-848: OffsetCommit v9, and every TxnOffsetCommit."""
    producer_id: int | None = None
    """The producer of the transaction; None outside transactions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOffsets:
    """OffsetCommit: store the group's offsets."""

    token: Token
    who: Committer
    offsets: Mapping[Partition, CommittedOffset]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Only time has passed; handle everything that is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireSession:
    """A test ends a member's session, whatever the time."""

    member_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceRebalance:
    """A test makes all members rejoin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeat:
    """ConsumerGroupHeartbeat (KIP-848): a member joins, is alive, changes or leaves.

    None in a field means unchanged.
    """

    token: Token
    member_id: str
    epoch: int
    """The member's epoch; 0 to join, -1 to leave, -2 to leave temporarily as a static member."""
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int | None = None
    """The time limit for revoking partitions."""
    topics: Sequence[str] | None = None
    regex: str | None = None
    """A regular expression for names of topics; empty for none."""
    assignor: str | None = None
    """The server-side assignor that it requests."""
    owned: Mapping[UUID, Sequence[int]] | None = None
    """Partitions that it holds, by topic id."""
    may_describe: Callable[[str], bool] | None = None
    """Whether the client may describe a topic, by name; None: all topics."""
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindHeartbeat:
    """The heartbeat of a member of a `GroupKind`: it joins, is alive, changes or leaves."""

    kind: ClassVar[str]
    """The type of its group."""

    token: Token
    member_id: str
    epoch: int
    """The member's epoch; 0 to join, negative to leave."""
    client_id: str = ""
    client_host: str = ""

    @property
    def size_bytes(self) -> int | None:
        """Return the bytes that it adds to the group; None if it adds neither bytes nor a member."""
        return 0 if self.epoch == 0 else None


Request: TypeAlias = Join | Sync | Heartbeat | Leave | Delete | CommitOffsets | ConsumerHeartbeat | KindHeartbeat
"""A client's request, which needs a reply."""

Event: TypeAlias = Request | Tick | ExpireSession | ForceRebalance
"""An event from a client, a test or time."""
