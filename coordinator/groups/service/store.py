"""The groups by id, with their records, offsets, deadlines and history, for the service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from loadwise.coordinator.groups.classic.group import ClassicGroup
from loadwise.coordinator.groups.consumer.group import ConsumerGroup
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits
from loadwise.coordinator.groups.consumer_records import ConsumerRecord, Tombstone
from loadwise.coordinator.groups.deadlines import Deadlines
from loadwise.coordinator.groups.group import Group
from loadwise.coordinator.groups.kind import GroupKind
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.offsets import Offsets
from loadwise.coordinator.groups.pending_offsets import PendingOffsets
from loadwise.coordinator.groups.records import (
    GroupRecord,
    GroupTombstone,
    KindRecord,
    OffsetRecord,
    OffsetTombstone,
    PendingOffsetRecord,
    PendingOffsetTombstone,
    Record,
)
from loadwise.coordinator.groups.service.history import History
from loadwise.coordinator.groups.service.journal import Journal
from loadwise.coordinator.groups.service.loads import LogLoads, LogView
from loadwise.coordinator.groups.topic_view import TopicView
from loadwise.coordinator.keeper import NOTHING, Keeper


class GroupStore:
    """All groups of a coordinator. Each change of it is an appended record."""

    def __init__(
        self,
        limits: GroupLimits,
        consumer_limits: ConsumerGroupLimits,
        topics: TopicView,
        logs: LogView | None,
        *,
        kinds: Mapping[str, GroupKind],
        configs_of: Callable[[str], Mapping[str, str]],
        keeper: Keeper = NOTHING,
    ) -> None:
        self.limits = limits
        self.consumer_limits = consumer_limits
        """Those of consumer groups without configs of their own."""
        self._configs_of = configs_of
        self.kinds = kinds
        """The kinds of groups that features add, by type."""
        self.topics = topics
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.pending_offsets = PendingOffsets()
        """The offsets of open transactions."""
        self.journal = Journal(keeper)
        """The appended records; replaying them rebuilds this object."""
        self.history = History()
        """The history of groups, which is not in the journal."""
        self.deadlines: Deadlines[str] = Deadlines()
        self.before_append: Callable[[Record], None] | None = None
        """Called with each record before it is stored, if set."""
        self._loads = None if logs is None else LogLoads(topics, logs, self.offsets)

    # ---- groups by protocol ----

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """Return the classic group of this id; None without a group of this kind."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """Return the consumer group of this id; None without a group of this kind."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def new_classic_group(self, group_id: str) -> ClassicGroup:
        """Return a classic group without members; it is not added yet."""
        return ClassicGroup(group_id, self.limits)

    def new_consumer_group(self, group_id: str, records: Iterable[ConsumerRecord], now_ms: int) -> ConsumerGroup:
        """Return a consumer group from its records; it is not added yet."""
        return ConsumerGroup.replay(
            group_id,
            records,
            self.topics,
            now_ms,
            self.consumer_limits.of_group(self._configs_of(group_id)),
            max_classic_size=self.limits.max_size,
            loads=self._loads,
        )

    def configure(self, group: Group) -> None:
        """Give a group the limits that hold for it now; its own configs override the brokers'."""
        if isinstance(group, ConsumerGroup):
            group.limits = self.consumer_limits.of_group(self._configs_of(group.group_id))
        elif (kind := self.kinds.get(group.type)) is not None:
            kind.configure(group)

    # ---- changes ----

    def add(self, group: Group) -> None:
        """Add a group with the records that rebuild it."""
        for record in group.records():
            self.append(record)
        self.put(group)

    def put(self, group: Group) -> None:
        """Add a group whose records are stored otherwise, and replace the one of this id."""
        self.groups[group.group_id] = group
        self.update_deadline(group.group_id)

    def remove(self, group: Group) -> None:
        """Remove a group and its records; its committed offsets stay."""
        for record in list(self.journal.of_group(group.group_id)):
            if isinstance(record, GroupRecord | ConsumerRecord | KindRecord):
                self.append(Tombstone(group_id=group.group_id, key=record.key))
        del self.groups[group.group_id]
        self.update_deadline(group.group_id)

    def update_deadline(self, group_id: str) -> None:
        """Schedule the group's next tick."""
        group = self.groups.get(group_id)
        self.deadlines.set(group_id, None if group is None else group.next_deadline_ms)

    def append(self, record: Record) -> None:
        """Store a record, and apply it if it is a tombstone or an offset; groups apply their own."""
        if self.before_append is not None:
            self.before_append(record)
        self.journal.append(record)
        match record:
            case GroupTombstone():
                self.groups.pop(record.group_id, None)
                self.deadlines.set(record.group_id, None)
                self.offsets.forget(record.group_id)
                self.pending_offsets.forget(record.group_id)
            case OffsetRecord() | OffsetTombstone():
                self.offsets.apply(record)
            case PendingOffsetRecord() | PendingOffsetTombstone():
                self.pending_offsets.apply(record)
            case _:
                pass

    def replay(self, records: Iterable[Record], now_ms: int) -> None:
        """Rebuild groups from records in their original order; the journal has them already.

        A group with only offsets becomes a classic group without members.
        """
        of_consumer_groups: dict[str, list[ConsumerRecord]] = {}
        of_kinds: dict[tuple[str, str], list[KindRecord]] = {}
        for record in records:
            if isinstance(record, GroupRecord):
                self.groups[record.group_id] = ClassicGroup.replay(record, now_ms, self.limits)
            elif isinstance(record, ConsumerRecord):
                of_consumer_groups.setdefault(record.group_id, []).append(record)
            elif isinstance(record, KindRecord):
                of_kinds.setdefault((record.kind, record.group_id), []).append(record)
            elif isinstance(record, OffsetRecord | PendingOffsetRecord) and record.group_id not in self.groups:
                self.groups[record.group_id] = self.new_classic_group(record.group_id)
        for group_id, of_group in of_consumer_groups.items():
            self.groups[group_id] = self.new_consumer_group(group_id, of_group, now_ms)
        for (kind, group_id), of_kind in of_kinds.items():
            self.groups[group_id] = self.kinds[kind].replay(group_id, of_kind, self.topics, now_ms)
        for group_id in self.groups:
            self.update_deadline(group_id)
