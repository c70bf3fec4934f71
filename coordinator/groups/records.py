"""What a coordinator remembers over a restart: Kafka's ``GroupMetadata`` and ``OffsetCommit`` records.

Replaying them in order rebuilds groups and committed offsets. Timers are not stored: a rebuilt group arms them afresh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from loadwise.coordinator.groups.consumer_records import ConsumerRecord

Key: TypeAlias = tuple[str | int, ...]
"""What a record replaces an older one under, within its group."""

GROUP_KEY: Key = ("group",)


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
    """The member's metadata under the chosen protocol; what it offered besides is not kept, as in Kafka."""
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

    @property
    def key(self) -> Key:
        """Its place in the journal."""
        return GROUP_KEY


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
    """Leader epoch of the last record read; -1 if the client does not say."""
    metadata: str
    """Free text of the client."""

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


Record: TypeAlias = GroupRecord | GroupTombstone | OffsetRecord | OffsetTombstone | ClassicTombstone | ConsumerRecord
