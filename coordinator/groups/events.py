"""What can happen to a group: the input of ``Group.handle``.

An event that a client waits on carries a token, which is the caller's name for that wait: the machine answers every
token exactly once, at once or later, with a `Reply`. Time is not in the events but an argument beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from uuid import UUID

from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.streams_topology import Endpoint, Tasks, Topology

Token: TypeAlias = int
"""The caller's name for one wait for an answer."""

NO_MEMBER_ID = ""
"""The member id of a client that has none yet (Kafka's ``UNKNOWN_MEMBER_ID``)."""

NO_GENERATION = -1
"""The generation of a client that is not in the group."""


class Protocol(NamedTuple):
    """One way to assign that a member offers, in the member's order of preference."""

    name: str
    """As ``range``."""
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
    """The id to give out to a client that has none; the caller makes it, because the state machine draws no random
    numbers."""
    client_id: str
    client_host: str
    protocol_type: str
    """``consumer`` for consumers."""
    protocols: Sequence[Protocol]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    requires_member_id: bool
    """Whether a new dynamic member has to come back with an id first (KIP-394; JoinGroup v4 and later)."""
    can_skip_assignment: bool
    """Whether a replaced static leader understands that it should not assign (KIP-814; JoinGroup v9 and later)."""
    may_describe: Callable[[str], bool] | None = None
    """Which topics the client may know of, by name; None: all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """SyncGroup: a member asks for its assignment; the leader brings everybody's."""

    token: Token
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    """The group's protocol type as the member knows it; None before SyncGroup v5."""
    protocol_name: str | None
    """The chosen protocol as the member knows it; None before SyncGroup v5."""
    assignments: Sequence[tuple[str, bytes]]
    """Member id and assignment; empty but for the leader."""


class Heartbeat(NamedTuple):
    """Heartbeat: a member is alive."""

    token: Token
    member_id: str
    instance_id: str | None
    generation: int


class Leaver(NamedTuple):
    """One member that is to leave."""

    member_id: str
    """`NO_MEMBER_ID` where an administrator removes a static member by its instance id."""
    instance_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """LeaveGroup: members go, or an administrator removes them."""

    token: Token
    leavers: Sequence[Leaver]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """DeleteGroups: an administrator removes the group."""

    token: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """Who commits offsets, as the request describes it."""

    member_id: str = NO_MEMBER_ID
    instance_id: str | None = None
    generation: int = NO_GENERATION
    """The member's generation, or its epoch under KIP-848; negative for a client that is no member."""
    knows_epochs: bool = True
    """Whether the request is of a version that KIP-848 may use: OffsetCommit v9. All of TxnOffsetCommit are."""
    producer_id: int | None = None
    """The producer in whose transaction the offsets are committed; None: in no transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOffsets:
    """OffsetCommit: the group is to remember how far it has read."""

    token: Token
    who: Committer
    offsets: Mapping[Partition, CommittedOffset]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Nothing happened but time: whatever is due takes effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireSession:
    """A test ends a member's session, whatever the time is."""

    member_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceRebalance:
    """A test wants all members to join again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeat:
    """ConsumerGroupHeartbeat (KIP-848): a member joins, is alive, has changed or leaves.

    A field that is None is as it was before.
    """

    token: Token
    member_id: str
    epoch: int
    """The member's epoch; 0 to join, -1 to leave, -2 for a static member that will be back."""
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int | None = None
    """How long it may take to give partitions up."""
    topics: Sequence[str] | None = None
    regex: str | None = None
    """A regular expression for names of topics; empty for none."""
    assignor: str | None = None
    """The assignor on the coordinator's side that it asks for."""
    owned: Mapping[UUID, Sequence[int]] | None = None
    """Partitions that it holds, by topic id."""
    may_describe: Callable[[str], bool] | None = None
    """Which topics the client may know of, by name; None: all of them."""
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareHeartbeat:
    """ShareGroupHeartbeat (KIP-932): a member joins, is alive, has changed or leaves.

    A field that is None is as it was before.
    """

    token: Token
    member_id: str
    epoch: int
    """The member's epoch; 0 to join, -1 to leave."""
    rack: str | None = None
    topics: Sequence[str] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsHeartbeat:
    """StreamsGroupHeartbeat (KIP-1071): a member joins, is alive, has changed or leaves.

    A field that is None is as it was before.
    """

    token: Token
    member_id: str
    epoch: int
    """The member's epoch; 0 to join, negative to leave."""
    endpoint_epoch: int = -1
    """The newest endpoint information that it has."""
    rack: str | None = None
    rebalance_timeout_ms: int | None = None
    """How long it may take to give tasks up."""
    topology: Topology | None = None
    """What it runs; only told when it joins."""
    owned: Tasks | None = None
    """What it has."""
    process_id: str | None = None
    endpoint: Endpoint | None = None
    tags: Mapping[str, str] | None = None
    shuts_down: bool = False
    """Whether all members are to stop, because this one has failed."""
    client_id: str = ""
    client_host: str = ""


Request: TypeAlias = (
    Join | Sync | Heartbeat | Leave | Delete | CommitOffsets | ConsumerHeartbeat | ShareHeartbeat | StreamsHeartbeat
)
"""What a client asks for, and waits for."""

Event: TypeAlias = Request | Tick | ExpireSession | ForceRebalance
"""What clients, tests and time can do to a group."""
