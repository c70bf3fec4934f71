"""What a coordinator remembers of a consumer group (KIP-848): Kafka's six ``ConsumerGroup…`` records.

A group's hard state is these records and nothing else: it changes only by applying one, when it is written or when it
is replayed, so that a restart cannot give another state. The newest record under a key counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias
from uuid import UUID

from loadwise.coordinator.groups.events import Protocol

Partitions: TypeAlias = Mapping[UUID, frozenset[int]]
"""Partitions by topic id; no topic has an empty set."""

Epochs: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""Partitions by topic id, each with the member epoch at which it was assigned (KIP-1251); no topic is empty."""

_Key: TypeAlias = tuple[str | int, ...]

LEFT_FOR_NOW = -2
"""The epoch of a static member that left and will be back."""


class MemberState(Enum):
    """Where a member is on its way to its target, with Kafka's numbers."""

    STABLE = 0
    """It has what it should have at its epoch."""
    UNREVOKED_PARTITIONS = 1
    """It has to give partitions up before it gets to the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others have to give up."""
    UNKNOWN = 127
    """It was written by a newer coordinator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEpoch:
    """The group's epoch, whenever it is bumped (``ConsumerGroupMetadata``)."""

    group_id: str
    epoch: int
    metadata_hash: int
    """Fingerprint of the topics subscribed to, with their ids and numbers of partitions."""

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("epoch",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMemberMetadata:
    """What a member brings that speaks the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: Sequence[Protocol]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSubscription:
    """The subscription of a member, and who it is (``ConsumerGroupMemberMetadata``)."""

    group_id: str
    member_id: str
    instance_id: str | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    rebalance_timeout_ms: int = -1
    classic: ClassicMemberMetadata | None = None
    """None for a member that speaks KIP-848 itself."""

    @property
    def size(self) -> int:
        """Bytes of the subscription, or nearly so."""
        metadata = () if self.classic is None else (metadata for _, metadata in self.classic.protocols)
        return sum(map(len, self.topics)) + len(self.regex) + sum(map(len, metadata))

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("member", self.member_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetEpoch:
    """The group epoch that the targets were made for (``ConsumerGroupTargetAssignmentMetadata``)."""

    group_id: str
    epoch: int

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("target",)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberTarget:
    """What a member should have in the end (``ConsumerGroupTargetAssignmentMember``)."""

    group_id: str
    member_id: str
    partitions: Partitions

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("target", self.member_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAssignment:
    """What a member has now, and what it is to give up (``ConsumerGroupCurrentMemberAssignment``)."""

    group_id: str
    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Epochs = field(default_factory=dict)
    pending_revocation: Epochs = field(default_factory=dict)

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("current", self.member_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRegex:
    """The topics that a regular expression stands for (``ConsumerGroupRegularExpression``)."""

    group_id: str
    regex: str
    topics: frozenset[str]

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("regex", self.regex)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerTombstone:
    """What stands under a key counts no more."""

    group_id: str
    key: _Key


ConsumerRecord: TypeAlias = (
    GroupEpoch | MemberSubscription | TargetEpoch | MemberTarget | MemberAssignment | ResolvedRegex | ConsumerTombstone
)
