"""What a coordinator remembers of a share group (KIP-932): Kafka's ``ShareGroup…`` records and its ``ShareSnapshot``.

As with consumer groups, a group's hard state is these records and nothing else, and the newest under a key counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from uuid import UUID

from loadwise.coordinator.groups.consumer_records import Partitions

_Key: TypeAlias = tuple[str | int, ...]

NO_START_OFFSET = -1
"""The start offset of a partition that nobody has fetched from yet: share.auto.offset.reset will choose one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupEpoch:
    """The group's epoch, whenever it is bumped (``ShareGroupMetadata``)."""

    group_id: str
    epoch: int
    metadata_hash: int
    """Fingerprint of the topics subscribed to, with their ids and numbers of partitions."""

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("share-epoch",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMemberSubscription:
    """The subscription of a member, and who it is (``ShareGroupMemberMetadata``)."""

    group_id: str
    member_id: str
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("share-member", self.member_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareTarget:
    """What every member should have, and for which group epoch that was made (``ShareGroupTargetAssignment…``)."""

    group_id: str
    epoch: int
    partitions: dict[str, Partitions]
    """By member id."""

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("share-target",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMemberAssignment:
    """What a member has now (``ShareGroupCurrentMemberAssignment``)."""

    group_id: str
    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    partitions: Partitions = field(default_factory=dict)

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("share-current", self.member_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareTopic:
    """The first partitions of a topic, in which the group has a state (``ShareGroupStatePartitionMetadata``).

    A partition of them without a `ShareState` is one that nobody has got a record of yet.
    """

    group_id: str
    topic_id: UUID
    partitions: int
    """How many."""

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return share_topic_key(self.topic_id)


class StateBatch(NamedTuple):
    """Records next to each other with the same state."""

    first: int
    last: int
    state: int
    """As Kafka numbers it; acquired records are kept as available, because a lock does not outlive its leader."""
    deliveries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareState:
    """How far a group is in a partition, once a member has got a record of it (``ShareSnapshot``)."""

    group_id: str
    topic_id: UUID
    partition: int
    state_epoch: int = 0
    """How often an administrator has set it."""
    start_offset: int = NO_START_OFFSET
    """The first record that may still be delivered."""
    batches: Sequence[StateBatch] = ()
    """What became of records from there on."""

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return share_state_key(self.topic_id, self.partition)

    @property
    def delivered(self) -> int:
        """How many records after the start are never delivered again."""
        return sum(last - max(first, self.start_offset) + 1 for first, last, state, _ in self.batches if state)


def share_topic_key(topic_id: UUID) -> _Key:
    """Where the journal has how many partitions of a topic have a state."""
    return ("share-topic", str(topic_id))


def share_state_key(topic_id: UUID, partition: int) -> _Key:
    """Where the journal has the state of a partition."""
    return ("share-state", str(topic_id), partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareTombstone:
    """What stands under a key counts no more."""

    group_id: str
    key: _Key


ShareGroupRecord: TypeAlias = ShareGroupEpoch | ShareMemberSubscription | ShareTarget | ShareMemberAssignment
"""What the group itself is made of."""

ShareRecord: TypeAlias = ShareGroupRecord | ShareTopic | ShareState | ShareTombstone
