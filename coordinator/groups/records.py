"""The records of groups: Kafka's ``GroupMetadata`` and ``OffsetCommit``.

Replaying them in order rebuilds groups and committed offsets. Timers are not stored; a rebuilt group starts them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from loadwise.coordinator.groups.consumer_records import ConsumerRecord, Key, Keyed
from loadwise.coordinator.groups.partitions import CommittedOffset

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
    """The member's metadata under the chosen protocol; the other protocols are not stored, as in Kafka."""
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """A group, stored when it becomes stable or empty, or when a static member is replaced."""

    group_id: str
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str | None
    members: Sequence[MemberRecord]
    since_ms: int | None = None
    """When the group entered its state, by the coordinator's clock; None if it never had members."""

    @property
    def key(self) -> Key:
        """Return its place in the journal."""
        return GROUP_KEY

    @property
    def size_bytes(self) -> int:
        """Return the size of Kafka's batch for it in ``__consumer_offsets``, version 3 of the format."""
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
    """When it expires, if its client set a retention time."""

    @property
    def key(self) -> Key:
        """Return its place in the journal."""
        return ("offset", self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetTombstone:
    """A committed offset was deleted."""

    group_id: str
    topic: str
    partition: int

    @property
    def key(self) -> Key:
        """Return the place in the journal that it deletes."""
        return ("offset", self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingOffsetRecord:
    """An offset that is committed when its producer's transaction is (``OffsetCommit`` in a transactional batch)."""

    group_id: str
    producer_id: int
    topic: str
    partition: int
    committed: CommittedOffset | None
    """None: a later commit without a transaction replaced it, whether or not the transaction commits."""

    @property
    def key(self) -> Key:
        """Return its place in the journal."""
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
        """Return the place in the journal that it deletes."""
        return ("pending", self.producer_id, self.topic, self.partition)


class KindRecord(Keyed):
    """A record of a group of a `GroupKind`."""

    __slots__ = ()

    kind: ClassVar[str]
    """The type of its group."""


Record: TypeAlias = (
    GroupRecord
    | GroupTombstone
    | OffsetRecord
    | OffsetTombstone
    | PendingOffsetRecord
    | PendingOffsetTombstone
    | ConsumerRecord
    | KindRecord
)
