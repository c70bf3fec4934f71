"""The state of a consumer group, which only records change. Mirrors ``ConsumerGroup``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TypeVar, assert_never
from uuid import UUID

from loadwise.coordinator.groups.consumer.member import ConsumerMember
from loadwise.coordinator.groups.consumer_records import (
    ConsumerRecord,
    Epochs,
    GroupEpoch,
    MemberAssignment,
    MemberSubscription,
    MemberTarget,
    Partitions,
    ResolvedRegex,
    TargetEpoch,
    Tombstone,
)
from loadwise.coordinator.groups.topic_view import TopicView, fingerprint
from loadwise.coordinator.turns import Turns

K = TypeVar("K")

_NO_PARTITIONS: Partitions = {}


class ConsumerGroupState(Enum):
    """The state of a consumer group, by its name in ConsumerGroupDescribe and ListGroups."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class Subscriptions:
    """Counts of what the members of a group subscribe with."""

    def __init__(self) -> None:
        self.topics: Counter[frozenset[str]] = Counter()
        self.regexes: Counter[str] = Counter()
        self.assignors: Counter[str] = Counter()
        self.static_ids: dict[str, str] = {}
        """Group instance id to member id (KIP-345)."""
        self.size_bytes = 0
        self.classic = 0
        """The number of classic members."""
        self.classic_protocols: Counter[str] = Counter()

    def count(self, subscription: MemberSubscription, step: int) -> None:
        """Add a subscription with ``step`` 1, and take it away with -1."""
        self.size_bytes += step * subscription.size
        _add(self.topics, subscription.topics, step)
        if subscription.regex:
            _add(self.regexes, subscription.regex, step)
        if subscription.assignor is not None:
            _add(self.assignors, subscription.assignor, step)
        if subscription.classic is not None:
            self.classic += step
            for name, _ in subscription.classic.protocols:
                _add(self.classic_protocols, name, step)
        if subscription.instance_id is not None:
            if step > 0:
                self.static_ids[subscription.instance_id] = subscription.member_id
            elif self.static_ids.get(subscription.instance_id) == subscription.member_id:
                del self.static_ids[subscription.instance_id]


class ConsumerState:
    """The persistent state of a consumer group; only `apply` changes it."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1  # Kafka 4.3's first epoch; a first member with a subscription is at 2
        """The group epoch, which grows when members or subscriptions change."""
        self.metadata_hash = 0
        self.target_epoch = 1
        """The group epoch of the targets (Kafka's assignment epoch)."""
        self.members: dict[str, ConsumerMember] = {}
        self.regexes: dict[str, frozenset[str]] = {}
        """Regular expression to its topics."""
        self._targets: dict[str, Partitions] = {}
        self._holders: dict[UUID, dict[int, str]] = {}  # the member that has a partition or must still revoke it
        self._subscriptions = Subscriptions()
        self._behind: set[str] = set()  # members that have not reached their target
        self._fingerprint = 0
        self._fingerprint_of: object = None  # its inputs when it was computed

    # ---- queries ----

    def target(self, member_id: str) -> Partitions:
        """Return a member's target."""
        return self._targets.get(member_id, _NO_PARTITIONS)

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """Return the member with a group instance id (KIP-345)."""
        member_id = self._subscriptions.static_ids.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def holder(self, topic_id: UUID, partition: int) -> str | None:
        """Return the member that has a partition, or must still revoke it."""
        holders = self._holders.get(topic_id)
        return None if holders is None else holders.get(partition)

    def subscribed_topics(self, subscription: MemberSubscription) -> frozenset[str]:
        """Return the names of a member's topics, including those of its regular expression."""
        if not subscription.regex:
            return subscription.topics
        resolved = self.regexes.get(subscription.regex, frozenset())
        return subscription.topics | resolved if subscription.topics else resolved

    def topics(self) -> set[str]:
        """Return the names of all subscribed topics."""
        names: set[str] = set()
        subscribed = self._subscriptions
        return names.union(*subscribed.topics, *(self.regexes.get(regex, ()) for regex in subscribed.regexes))

    def subscribed_regexes(self) -> Iterable[str]:
        """Return the regular expressions of members."""
        return self._subscriptions.regexes

    def is_subscribed_with(self, regex: str) -> bool:
        """Return whether a member uses this regular expression."""
        return regex in self._subscriptions.regexes

    def preferred_assignor(self) -> str | None:
        """Return the assignor that most members request; in a tie the first."""
        assignors = self._subscriptions.assignors
        return max(assignors, key=assignors.__getitem__, default=None)

    @property
    def classic_members(self) -> int:
        """Return the number of classic members."""
        return self._subscriptions.classic

    @property
    def subscription_bytes(self) -> int:
        """Return the size of the subscriptions of all members."""
        return self._subscriptions.size_bytes

    def supports_any(self, protocols: Iterable[str]) -> bool:
        """Return whether all classic members, if any, support one of these protocols."""
        subscribed = self._subscriptions
        return any(subscribed.classic_protocols[name] == subscribed.classic for name in protocols)

    @property
    def name(self) -> ConsumerGroupState:
        """Return Kafka's name of the state."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        return ConsumerGroupState.RECONCILING if self._behind else ConsumerGroupState.STABLE

    def fingerprint(self, topics: TopicView) -> Turns[int]:
        """Return a hash of the subscribed topics, their ids and partition counts.

        O(topics), but O(1) while topics and subscriptions stay the same.
        """
        subscribed = (frozenset(self._subscriptions.topics), frozenset(self._subscriptions.regexes))
        of = (topics.version, *subscribed, tuple(self.regexes.items()))
        if of != self._fingerprint_of:
            found = yield from fingerprint(self.topics(), topics)
            self._fingerprint, self._fingerprint_of = found, of
        return self._fingerprint

    def records(self) -> Iterator[ConsumerRecord]:
        """Return the records that rebuild this state."""
        group_id = self.group_id
        yield from (member.subscription for member in self.members.values())
        yield GroupEpoch(group_id=group_id, epoch=self.epoch, metadata_hash=self.metadata_hash)
        for regex, topics in self.regexes.items():
            yield ResolvedRegex(group_id=group_id, regex=regex, topics=topics)
        for member_id, partitions in self._targets.items():
            yield MemberTarget(group_id=group_id, member_id=member_id, partitions=partitions)
        yield TargetEpoch(group_id=group_id, epoch=self.target_epoch)
        yield from (member.current for member in self.members.values())

    # ---- changes ----

    def apply(self, record: ConsumerRecord) -> Turns[None]:
        """Apply a new or replayed record; the order of keys does not matter. O(the member's topics)."""
        match record:
            case MemberAssignment():
                member = self._member(record.member_id)
                yield from self._release(member.current)
                member.current = record
                yield from self._hold(record)
                self._compare(member)
            case MemberSubscription():
                member = self._member(record.member_id)
                self._subscriptions.count(member.subscription, -1)
                member.subscription = record
                self._subscriptions.count(record, 1)
            case MemberTarget():
                self._targets[record.member_id] = record.partitions
            case GroupEpoch():
                self.epoch, self.metadata_hash = record.epoch, record.metadata_hash
            case TargetEpoch():
                self.target_epoch = record.epoch
                for member in self.members.values():
                    self._compare(member)
            case ResolvedRegex():
                self.regexes[record.regex] = record.topics
            case Tombstone():
                yield from self._drop(record.key)
            case _:
                assert_never(record)

    def _member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = ConsumerMember.new(self.group_id, member_id)
            self._subscriptions.count(member.subscription, 1)
            self._compare(member)
        return member

    def _compare(self, member: ConsumerMember) -> None:
        if member.is_reconciled_to(self.target_epoch):
            self._behind.discard(member.member_id)
        else:
            self._behind.add(member.member_id)

    def _drop(self, key: tuple[str | int, ...]) -> Turns[None]:
        match key:
            case ("member", str(member_id)):
                member = self.members.pop(member_id, None)
                if member is not None:
                    self._subscriptions.count(member.subscription, -1)
                    yield from self._release(member.current)
                self._behind.discard(member_id)
            case ("target", str(member_id)):
                self._targets.pop(member_id, None)
            case ("current", str(member_id)):
                member = self.members.get(member_id)
                if member is not None:
                    yield from self._release(member.current)
                    member.current = MemberAssignment(group_id=self.group_id, member_id=member_id)
                    self._compare(member)
            case ("regex", str(regex)):
                self.regexes.pop(regex, None)
            case _:
                raise AssertionError(f"no record of a consumer group has the key {key}")

    def _hold(self, current: MemberAssignment) -> Turns[None]:
        for topic_id, numbers in _all(current):
            self._holders.setdefault(topic_id, {}).update(dict.fromkeys(numbers, current.member_id))
            yield

    def _release(self, current: MemberAssignment) -> Turns[None]:
        for topic_id, numbers in _all(current):
            holders = self._holders.get(topic_id, {})
            for number in numbers:
                if holders.get(number) == current.member_id:
                    del holders[number]
            if not holders:
                self._holders.pop(topic_id, None)
            yield


def _all(current: MemberAssignment) -> Iterator[tuple[UUID, Iterable[int]]]:
    parts: tuple[Epochs, Epochs] = (current.assigned, current.pending_revocation)
    for part in parts:
        yield from part.items()


def _add(counter: Counter[K], key: K, step: int) -> None:
    counter[key] += step
    if not counter[key]:
        del counter[key]
