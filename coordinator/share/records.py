"""The records of a share group (KIP-932): Kafka's ``ShareGroup…`` records and ``ShareSnapshot``.

As in consumer groups, they are the whole persistent state, and the newest record of a key counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from uuid import UUID

from loadwise.coordinator.groups.consumer_records import Key, Partitions, Tombstone
from loadwise.coordinator.groups.records import KindRecord

NO_START_OFFSET = -1
"""The start offset before the first fetch; share.auto.offset.reset will set it."""


class _ShareRecord(KindRecord):
    __slots__ = ()

    kind = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupEpoch(_ShareRecord):
    """The group's epoch, stored at each increment (``ShareGroupMetadata``)."""

    keyed = ("share-epoch",)

    epoch: int
    metadata_hash: int
    """Hash of the subscribed topics, their ids and partition counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMemberSubscription(_ShareRecord):
    """A member's client and subscription (``ShareGroupMemberMetadata``)."""

    keyed = ("share-member", "member_id")

    member_id: str
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareTarget(_ShareRecord):
    """All members' targets and their group epoch (``ShareGroupTargetAssignment…``)."""

    keyed = ("share-target",)

    epoch: int
    partitions: dict[str, Partitions]
    """By member id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMemberAssignment(_ShareRecord):
    """A member's current assignment (``ShareGroupCurrentMemberAssignment``)."""

    keyed = ("share-current", "member_id")

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    partitions: Partitions = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareTopic(_ShareRecord):
    """The initialized partitions of a topic (``ShareGroupStatePartitionMetadata``).

    Without a `ShareState`, a partition has delivered no record yet.
    """

    topic_id: UUID
    partitions: int
    """Their number; they start at partition 0."""

    @property
    def key(self) -> Key:
        """Return its place in the journal."""
        return share_topic_key(self.topic_id)


class StateBatch(NamedTuple):
    """Consecutive records with the same state."""

    first: int
    last: int
    state: int
    """Kafka's number of it. Acquired records are stored as available, because locks end with their leader."""
    deliveries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareState(_ShareRecord):
    """A group's state in a partition, after its first delivery (``ShareSnapshot``)."""

    topic_id: UUID
    partition: int
    state_epoch: int = 0
    """How often an administrator has set the start."""
    start_offset: int = NO_START_OFFSET
    """The first record that may still be delivered."""
    batches: Sequence[StateBatch] = ()
    """The states of records from there on."""

    @property
    def key(self) -> Key:
        """Return its place in the journal."""
        return share_state_key(self.topic_id, self.partition)

    @property
    def delivered(self) -> int:
        """Return how many records after the start are never delivered again."""
        return sum(last - max(first, self.start_offset) + 1 for first, last, state, _ in self.batches if state)


def share_topic_key(topic_id: UUID) -> Key:
    """Return the journal's key of a topic's initialized partitions."""
    return ("share-topic", str(topic_id))


def share_state_key(topic_id: UUID, partition: int) -> Key:
    """Return the journal's key of a partition's state."""
    return ("share-state", str(topic_id), partition)


ShareGroupRecord: TypeAlias = ShareGroupEpoch | ShareMemberSubscription | ShareTarget | ShareMemberAssignment
"""The records of the group itself."""

ShareRecord: TypeAlias = ShareGroupRecord | ShareTopic | ShareState | Tombstone
