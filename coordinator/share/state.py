"""The state of a share group, which only records change."""

from __future__ import annotations

from collections.abc import Iterator, Set
from enum import Enum
from typing import assert_never
from uuid import UUID

from loadwise.coordinator.groups.consumer_records import Tombstone
from loadwise.coordinator.groups.heartbeat_member import HeartbeatMember
from loadwise.coordinator.share.records import (
    ShareGroupEpoch,
    ShareMemberAssignment,
    ShareMemberSubscription,
    ShareRecord,
    ShareState,
    ShareTarget,
    ShareTopic,
)


class ShareGroupState(Enum):
    """The state of a share group, by its name in ShareGroupDescribe and ListGroups."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


class ShareMember(HeartbeatMember[ShareMemberSubscription, ShareMemberAssignment]):
    """One member of a share group."""

    __slots__ = ()


class SharesState:
    """The persistent state of a share group; only `apply` changes it."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1  # Kafka 4.3's first epoch; a first member is at 2 without partitions, then at 3
        """The group epoch, which grows when members or subscriptions change."""
        self.metadata_hash = 0
        self.target = ShareTarget(group_id=group_id, epoch=1, partitions={})
        self.members: dict[str, ShareMember] = {}
        self.begun: dict[UUID, int] = {}
        """The number of initialized partitions of each topic, from partition 0 on."""
        self._told: dict[UUID, set[int]] = {}
        """The partitions with more state than their initialization."""

    @property
    def known_topics(self) -> Set[UUID]:
        """Return the topics in which the group has a state."""
        return self.begun.keys() | self._told.keys()

    def known(self, topic_id: UUID) -> Set[int]:
        """Return the partitions of a topic in which the group has a state."""
        return {*range(self.begun.get(topic_id, 0)), *self.told(topic_id)}

    def told(self, topic_id: UUID) -> Set[int]:
        """Return the partitions of a topic that have delivered a record, or whose start was set."""
        return self._told.get(topic_id, set())

    def topics(self) -> set[str]:
        """Return the names of all subscribed topics."""
        names: set[str] = set()
        return names.union(*(member.metadata.topics for member in self.members.values()))

    def records(self) -> Iterator[ShareRecord]:
        """Return the records that rebuild this state, without the state of partitions."""
        yield from (member.metadata for member in self.members.values())
        yield ShareGroupEpoch(group_id=self.group_id, epoch=self.epoch, metadata_hash=self.metadata_hash)
        yield self.target
        yield from (member.current for member in self.members.values())

    def apply(self, record: ShareRecord) -> None:
        """Apply a new or replayed record; the order of keys does not matter."""
        match record:
            case ShareMemberSubscription():
                self._member(record.member_id).metadata = record
            case ShareMemberAssignment():
                self._member(record.member_id).current = record
            case ShareGroupEpoch():
                self.epoch, self.metadata_hash = record.epoch, record.metadata_hash
            case ShareTarget():
                self.target = record
            case ShareTopic():
                self.begun[record.topic_id] = record.partitions
            case ShareState():
                self._told.setdefault(record.topic_id, set()).add(record.partition)
            case Tombstone(key=("share-member" | "share-current", str(member_id))):
                self.members.pop(member_id, None)
            case Tombstone(key=("share-topic", str(topic_id))):
                self.begun.pop(UUID(topic_id), None)
            case Tombstone(key=("share-state", str(topic_id), int(partition))):
                left = self._told[UUID(topic_id)]
                left.discard(partition)
                if not left:
                    del self._told[UUID(topic_id)]
            case Tombstone():
                raise AssertionError(f"no record of a share group has the key {record.key}")
            case _:
                assert_never(record)

    def _member(self, member_id: str) -> ShareMember:
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = ShareMember(
                ShareMemberSubscription(group_id=self.group_id, member_id=member_id),
                ShareMemberAssignment(group_id=self.group_id, member_id=member_id),
            )
        return member
