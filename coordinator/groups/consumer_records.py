"""The records of a consumer group (KIP-848): Kafka's six ``ConsumerGroup…`` records.

They are the whole persistent state. It changes only when a record is applied, on write or on replay, so a restart leads
to the same state. The newest record of a key counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, TypeAlias
from uuid import UUID

from loadwise.coordinator.groups.events import Protocol

Partitions: TypeAlias = Mapping[UUID, frozenset[int]]
"""Partitions by topic id; no topic has an empty set."""

Epochs: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""Partitions by topic id, each with the member epoch at which it was assigned (KIP-1251); no topic is empty."""

Key: TypeAlias = tuple[str | int, ...]
"""The key of a record within its group; a newer record replaces an older one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """A record of a group. Its key is a word and the values of some of its fields."""

    keyed: ClassVar[tuple[str, ...]]
    """The word and the names of the fields."""
    group_id: str

    @property
    def key(self) -> Key:
        """Return its place in the journal."""
        word, *fields = self.keyed
        return (word, *(getattr(self, field) for field in fields))


LEFT_FOR_NOW = -2
"""The epoch of a static member that left temporarily."""


class MemberState(Enum):
    """The progress of a member to its target, with Kafka's numbers."""

    STABLE = 0
    """It has its assignment of its epoch."""
    UNREVOKED_PARTITIONS = 1
    """It must revoke partitions before it advances to the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that other members must revoke."""
    UNKNOWN = 127
    """It was written by a newer coordinator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEpoch(Keyed):
    """The group's epoch, stored at each increment (``ConsumerGroupMetadata``)."""

    keyed = ("epoch",)

    epoch: int
    metadata_hash: int
    """Hash of the subscribed topics, their ids and partition counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMemberMetadata:
    """The classic protocol's data of a member in a consumer group."""

    session_timeout_ms: int
    protocols: Sequence[Protocol]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSubscription(Keyed):
    """A member's client and subscription (``ConsumerGroupMemberMetadata``)."""

    keyed = ("member", "member_id")

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
    """None for a KIP-848 member."""

    @property
    def size(self) -> int:
        """Return the approximate bytes of the subscription."""
        metadata = () if self.classic is None else (metadata for _, metadata in self.classic.protocols)
        return sum(map(len, self.topics)) + len(self.regex) + sum(map(len, metadata))


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetEpoch(Keyed):
    """The group epoch of the targets (``ConsumerGroupTargetAssignmentMetadata``)."""

    keyed = ("target",)

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberTarget(Keyed):
    """The target of a member (``ConsumerGroupTargetAssignmentMember``)."""

    keyed = ("target", "member_id")

    member_id: str
    partitions: Partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAssignment(Keyed):
    """A member's assignment and pending revocation (``ConsumerGroupCurrentMemberAssignment``)."""

    keyed = ("current", "member_id")

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Epochs = field(default_factory=dict)
    pending_revocation: Epochs = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRegex(Keyed):
    """The topics of a regular expression (``ConsumerGroupRegularExpression``)."""

    keyed = ("regex", "regex")

    regex: str
    topics: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """Deletes the record of a key of a group."""

    group_id: str
    key: Key


ConsumerRecord: TypeAlias = (
    GroupEpoch | MemberSubscription | TargetEpoch | MemberTarget | MemberAssignment | ResolvedRegex | Tombstone
)
