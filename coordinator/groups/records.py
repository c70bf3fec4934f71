"""What a coordinator remembers over a restart: Kafka's ``GroupMetadata`` and ``OffsetCommit`` records.

Replaying them in order rebuilds groups and committed offsets. Timers are not stored: a rebuilt group arms them afresh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from loadwise.coordinator.groups.consumer_records import ConsumerRecord
from loadwise.coordinator.groups.partitions import CommittedOffset
from loadwise.coordinator.groups.share_records import ShareRecord
from loadwise.coordinator.groups.streams_records import StreamsRecord

Key: TypeAlias = tuple[str | int, ...]
"""What a record replaces an older one under, within its group."""

GROUP_KEY: Key = ("group",)


_BATCH_BYTES = 61  # the head of a record batch
_KEY_BYTES = 2 + 2  # version, and the length of the group id
_VALUE_BYTES = 2 + 2 + 4 + 2 + 2 + 8 + 4  # version, three lengths of texts, generation, timestamp, number of members
_MEMBER_BYTES = 4 * 2 + 2 * 4 + 2 * 4  # four lengths of texts, two timeouts, two lengths of bytes


def _text_bytes(text: str | None) -> int:
    return 0 if text is None else len(text.encode())


def _varint_bytes(value: int) -> int:
    return (2 * value).bit_length() // 7 + ((2 * value).bit_length() % 7 > 0) or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRecord:
    """A member of a stable group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription: bytes
    """The member's metadata under the chosen protocol; what it offered besides is not remembered, as in Kafka."""
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """A group whenever it becomes stable or empty, or a static member of it is replaced."""

    group_id: str
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str | None
    members: Sequence[MemberRecord]
    since_ms: int | None = None
    """When the group came into its state, by the coordinator's clock; None for a group that nobody was ever in."""

    @property
    def key(self) -> Key:
        """Its place in the journal."""
        return GROUP_KEY

    @property
    def size_bytes(self) -> int:
        """Size of the batch that Kafka writes it in, to ``__consumer_offsets``, in version 3 of its format."""
        members = sum(
            _MEMBER_BYTES
            + sum(map(_text_bytes, (each.member_id, each.instance_id, each.client_id, each.client_host)))
            + len(each.subscription)
            + len(each.assignment)
            for each in self.members
        )
        texts = sum(map(_text_bytes, (self.protocol_type, self.protocol_name, self.leader)))
        key, value = _KEY_BYTES + _text_bytes(self.group_id), _VALUE_BYTES + texts + members
        # Attributes, timestamp delta, offset delta and number of headers take a byte each.
        record = 4 + _varint_bytes(key) + key + _varint_bytes(value) + value
        return _BATCH_BYTES + _varint_bytes(record) + record


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTombstone:
    """The group was deleted, and its offsets with it."""

    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRecord:
    """A committed offset."""

    group_id: str
    topic: str
    partition: int
    offset: int
    """The next offset to read."""
    leader_epoch: int
    """Leader epoch of the last record read; -1 if the client does not know."""
    metadata: str
    """Free text of the client."""
    committed_ms: int = 0
    """When it was committed, by the coordinator's clock."""
    expires_ms: int | None = None
    """When it lapses if its client set a retention time."""

    @property
    def key(self) -> Key:
        """Its place in the journal."""
        return ("offset", self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetTombstone:
    """A committed offset was deleted."""

    group_id: str
    topic: str
    partition: int

    @property
    def key(self) -> Key:
        """The place in the journal that it empties."""
        return ("offset", self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicTombstone:
    """The group is no classic one any more; its offsets stay."""

    group_id: str

    @property
    def key(self) -> Key:
        """The place in the journal that it empties."""
        return GROUP_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingOffsetRecord:
    """An offset that is committed when its producer's transaction is (``OffsetCommit`` in a transactional batch)."""

    group_id: str
    producer_id: int
    topic: str
    partition: int
    committed: CommittedOffset | None
    """None: a later commit without a transaction took its place, and counts whatever the transaction does."""

    @property
    def key(self) -> Key:
        """Its place in the journal."""
        return ("pending", self.producer_id, self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingOffsetTombstone:
    """The transaction of a pending offset has ended."""

    group_id: str
    producer_id: int
    topic: str
    partition: int

    @property
    def key(self) -> Key:
        """The place in the journal that it empties."""
        return ("pending", self.producer_id, self.topic, self.partition)


Record: TypeAlias = (
    GroupRecord
    | GroupTombstone
    | OffsetRecord
    | OffsetTombstone
    | PendingOffsetRecord
    | PendingOffsetTombstone
    | ClassicTombstone
    | ConsumerRecord
    | ShareRecord
    | StreamsRecord
)
