"""What a consumer group is: its members, targets and epochs, changed by records alone. Mirrors ``ConsumerGroup``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TypeVar, assert_never
from uuid import UUID

from loadwise.coordinator.groups.consumer.member import ConsumerMember
from loadwise.coordinator.groups.consumer_records import (
    ConsumerRecord,
    ConsumerTombstone,
    Epochs,
    GroupEpoch,
    MemberAssignment,
    MemberSubscription,
    MemberTarget,
    Partitions,
    ResolvedRegex,
    TargetEpoch,
)
from loadwise.coordinator.groups.topic_view import TopicView, fingerprint

K = TypeVar("K")

_NO_PARTITIONS: Partitions = {}


class ConsumerGroupState(Enum):
    """The state of a consumer group, by the names that ConsumerGroupDescribe and ListGroups give."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ConsumerState:
    """The hard state of a consumer group; `apply` is the only way to change it."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1  # where Kafka 4.3 begins; a first member that wants anything is at 2
        """The group epoch: it grows when who wants what has changed."""
        self.metadata_hash = 0
        self.target_epoch = 1
        """The group epoch that the targets were made for (Kafka's assignment epoch)."""
        self.members: dict[str, ConsumerMember] = {}
        self.regexes: dict[str, frozenset[str]] = {}
        """Regular expression to the topics that it stands for."""
        self._targets: dict[str, Partitions] = {}
        self._holders: dict[UUID, dict[int, str]] = {}  # who is assigned a partition, or has yet to give it up
        self._static_ids: dict[str, str] = {}
        self._topics: Counter[frozenset[str]] = Counter()
        self._regexes: Counter[str] = Counter()
        self._assignors: Counter[str] = Counter()
        self.subscription_bytes = 0
        """Size of the subscriptions of all members."""
        self._classic = 0
        self._classic_protocols: Counter[str] = Counter()
        self._behind: set[str] = set()  # members that have not their whole target yet
        self._fingerprint = 0
        self._fingerprint_of: object = None  # all that it depends on, as it was when it was made

    # ---- what can be asked ----

    def target(self, member_id: str) -> Partitions:
        """What a member should have in the end."""
        return self._targets.get(member_id, _NO_PARTITIONS)

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """The member with a group instance id (KIP-345)."""
        member_id = self._static_ids.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def holder(self, topic_id: UUID, partition: int) -> str | None:
        """The member that has a partition, or has not given it up yet."""
        holders = self._holders.get(topic_id)
        return None if holders is None else holders.get(partition)

    def subscribed_topics(self, subscription: MemberSubscription) -> frozenset[str]:
        """Names of the topics that a member subscribes to, together with those of its regular expression."""
        if not subscription.regex:
            return subscription.topics
        resolved = self.regexes.get(subscription.regex, frozenset())
        return subscription.topics | resolved if subscription.topics else resolved

    def topics(self) -> set[str]:
        """Names of all topics that members subscribe to."""
        names: set[str] = set()
        return names.union(*self._topics, *(self.regexes.get(regex, ()) for regex in self._regexes))

    def subscribed_regexes(self) -> Iterable[str]:
        """The regular expressions that members subscribe with."""
        return self._regexes

    def is_subscribed_with(self, regex: str) -> bool:
        """Whether a member subscribes with this regular expression."""
        return regex in self._regexes

    def preferred_assignor(self) -> str | None:
        """The assignor that most members ask for; of equals the one asked for first."""
        return max(self._assignors, key=self._assignors.__getitem__, default=None)

    @property
    def classic_members(self) -> int:
        """How many members speak the classic protocol."""
        return self._classic

    def supports_any(self, protocols: Iterable[str]) -> bool:
        """Whether all members of the classic protocol, if there are any, offer one of these."""
        return any(self._classic_protocols[name] == self._classic for name in protocols)

    @property
    def name(self) -> ConsumerGroupState:
        """Kafka's name of the state."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        return ConsumerGroupState.RECONCILING if self._behind else ConsumerGroupState.STABLE

    def fingerprint(self, topics: TopicView) -> int:
        """A number that changes with the topics subscribed to, their ids and their numbers of partitions.

        O(topics), but O(1) again while no topic changes and all members subscribe to what others did before them.
        """
        of = (topics.version, frozenset(self._topics), frozenset(self._regexes), tuple(self.regexes.items()))
        if of != self._fingerprint_of:
            self._fingerprint, self._fingerprint_of = fingerprint(self.topics(), topics), of
        return self._fingerprint

    def records(self) -> Iterator[ConsumerRecord]:
        """The records that rebuild this state."""
        group_id = self.group_id
        yield from (member.subscription for member in self.members.values())
        yield GroupEpoch(group_id=group_id, epoch=self.epoch, metadata_hash=self.metadata_hash)
        for regex, topics in self.regexes.items():
            yield ResolvedRegex(group_id=group_id, regex=regex, topics=topics)
        for member_id, partitions in self._targets.items():
            yield MemberTarget(group_id=group_id, member_id=member_id, partitions=partitions)
        yield TargetEpoch(group_id=group_id, epoch=self.target_epoch)
        yield from (member.current for member in self.members.values())

    # ---- what changes it ----

    def apply(self, record: ConsumerRecord) -> None:
        """Take a record in, when it is written or when it is replayed; the order of keys does not matter."""
        match record:
            case MemberAssignment():
                member = self._member(record.member_id)
                self._release(member.current)
                member.current = record
                self._hold(record)
                self._compare(member)
            case MemberSubscription():
                member = self._member(record.member_id)
                self._count(member.subscription, -1)
                member.subscription = record
                self._count(record, 1)
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
            case ConsumerTombstone():
                self._drop(record.key)
            case _:
                assert_never(record)

    def _member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = ConsumerMember.new(self.group_id, member_id)
            self._count(member.subscription, 1)
            self._compare(member)
        return member

    def _compare(self, member: ConsumerMember) -> None:
        if member.is_reconciled_to(self.target_epoch):
            self._behind.discard(member.member_id)
        else:
            self._behind.add(member.member_id)

    def _drop(self, key: tuple[str | int, ...]) -> None:
        match key:
            case ("member", str(member_id)):
                member = self.members.pop(member_id, None)
                if member is not None:
                    self._count(member.subscription, -1)
                    self._release(member.current)
                self._behind.discard(member_id)
            case ("target", str(member_id)):
                self._targets.pop(member_id, None)
            case ("current", str(member_id)):
                member = self.members.get(member_id)
                if member is not None:
                    self._release(member.current)
                    member.current = MemberAssignment(group_id=self.group_id, member_id=member_id)
                    self._compare(member)
            case ("regex", str(regex)):
                self.regexes.pop(regex, None)
            case _:
                raise AssertionError(f"no record of a consumer group has the key {key}")

    def _count(self, subscription: MemberSubscription, step: int) -> None:
        self.subscription_bytes += step * subscription.size
        _add(self._topics, subscription.topics, step)
        if subscription.regex:
            _add(self._regexes, subscription.regex, step)
        if subscription.assignor is not None:
            _add(self._assignors, subscription.assignor, step)
        if subscription.classic is not None:
            self._classic += step
            for name, _ in subscription.classic.protocols:
                _add(self._classic_protocols, name, step)
        if subscription.instance_id is not None:
            if step > 0:
                self._static_ids[subscription.instance_id] = subscription.member_id
            elif self._static_ids.get(subscription.instance_id) == subscription.member_id:
                del self._static_ids[subscription.instance_id]

    def _hold(self, current: MemberAssignment) -> None:
        for topic_id, numbers in _all(current):
            self._holders.setdefault(topic_id, {}).update(dict.fromkeys(numbers, current.member_id))

    def _release(self, current: MemberAssignment) -> None:
        for topic_id, numbers in _all(current):
            holders = self._holders.get(topic_id, {})
            for number in numbers:
                if holders.get(number) == current.member_id:
                    del holders[number]
            if not holders:
                self._holders.pop(topic_id, None)


def _all(current: MemberAssignment) -> Iterator[tuple[UUID, Iterable[int]]]:
    parts: tuple[Epochs, Epochs] = (current.assigned, current.pending_revocation)
    for part in parts:
        yield from part.items()


def _name(row: tuple[str, object]) -> str:
    return row[0]


def _add(counter: Counter[K], key: K, step: int) -> None:
    counter[key] += step
    if not counter[key]:
        del counter[key]
