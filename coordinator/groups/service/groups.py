"""All groups and their committed offsets: finds the group for an event, keeps the records, knows the next deadline.

Mirrors Kafka's ``GroupCoordinatorService`` and ``GroupCoordinatorShard`` where they check a request before the group
sees it, and answers for groups that do not exist. No I/O and no clock here either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from loadwise.coordinator.errors import CannotConvertError
from loadwise.coordinator.groups.classic.group import ClassicGroup
from loadwise.coordinator.groups.consumer.assignors import SERVER_ASSIGNORS
from loadwise.coordinator.groups.consumer.group import ConsumerGroup
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits
from loadwise.coordinator.groups.consumer_records import ConsumerRecord, ConsumerTombstone
from loadwise.coordinator.groups.deadlines import Deadlines
from loadwise.coordinator.groups.effects import (
    Append,
    ConsumerHeartbeatReply,
    DeleteReply,
    Downgrade,
    Effect,
    HeartbeatReply,
    JoinReply,
    LeaveReply,
    Left,
    ReadLoads,
    Reply,
    ReplyBody,
    SyncReply,
    Transition,
)
from loadwise.coordinator.groups.events import (
    NO_MEMBER_ID,
    ConsumerHeartbeat,
    Delete,
    Event,
    ExpireSession,
    ForceRebalance,
    Heartbeat,
    Join,
    Leave,
    LoadsRead,
    Sync,
    Tick,
)
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.offsets import CommittedOffset, Offsets, Partition
from loadwise.coordinator.groups.records import (
    ClassicTombstone,
    GroupRecord,
    GroupTombstone,
    OffsetRecord,
    OffsetTombstone,
    Record,
)
from loadwise.coordinator.groups.service.conversion import downgraded, upgrade_records
from loadwise.coordinator.groups.service.history import History
from loadwise.coordinator.groups.service.journal import Journal
from loadwise.coordinator.groups.service.loads import LoadMeter, LogView
from loadwise.coordinator.groups.service.quota import Quota
from loadwise.coordinator.groups.topic_view import NO_TOPICS, TopicView
from loadwise.protocol.error_codes import ErrorCode

Group: TypeAlias = ClassicGroup | ConsumerGroup
"""A group of either protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """Who commits offsets, as it says itself."""

    member_id: str = NO_MEMBER_ID
    instance_id: str | None = None
    generation: int = -1


class Groups:
    """The coordinator's groups, by id."""

    def __init__(
        self,
        limits: GroupLimits | None = None,
        consumer_limits: ConsumerGroupLimits | None = None,
        topics: TopicView = NO_TOPICS,
        logs: LogView | None = None,
    ) -> None:
        self.limits = limits or GroupLimits()
        self.consumer_limits = consumer_limits or ConsumerGroupLimits()
        self.topics = topics
        self.offsets = Offsets()
        self.journal = Journal()
        """The records that were appended; replaying them rebuilds this object."""
        self.history = History()
        """How groups came to be what they are; not kept by the journal."""
        horizon_ms = self.consumer_limits.drain_horizon_ms
        self._loads = None if logs is None else LoadMeter(topics, logs, self.offsets, horizon_ms=horizon_ms)
        self._groups: dict[str, Group] = {}
        self._quota = Quota(self.limits)
        self._deadlines: Deadlines[str] = Deadlines()

    @classmethod
    def replay(
        cls,
        journal: Iterable[Record],
        now_ms: int,
        limits: GroupLimits | None = None,
        consumer_limits: ConsumerGroupLimits | None = None,
        topics: TopicView = NO_TOPICS,
    ) -> Groups:
        """Rebuild groups and offsets from the records that another one kept."""
        groups = cls(limits, consumer_limits, topics)
        records = list(journal)
        for record in records:
            groups.journal.append(record)
            if isinstance(record, OffsetRecord):
                groups.offsets.apply(record)
        groups._replay(records, now_ms)
        for group_id, group in groups._groups.items():
            groups._deadlines.set(group_id, group.next_deadline_ms)
        return groups

    def get(self, group_id: str) -> Group | None:
        """The group of this id; None if there is none."""
        return self._groups.get(group_id)

    def all(self) -> Mapping[str, Group]:
        """All groups by id."""
        return self._groups

    @property
    def next_deadline_ms(self) -> int | None:
        """When `expire` is due at the latest; None while nothing can happen by time alone."""
        return self._deadlines.next_ms

    def handle(self, group_id: str, event: Event, now_ms: int, *, is_here: bool = True) -> list[Reply]:
        """Let an event take effect in its group; the replies may be for other waits than the event's.

        ``is_here``: whether the broker that was asked coordinates the group.
        """
        refusal = self._refusal(group_id, event, is_here)
        if refusal is not None:
            return [refusal]
        group = self._groups.get(group_id)
        if isinstance(event, ConsumerHeartbeat):
            return self._consumer_heartbeat(group_id, group, event, now_ms)
        if isinstance(group, ConsumerGroup) and isinstance(event, Join) and not group.members:
            if event.member_id != NO_MEMBER_ID:
                return [Reply(event.token, _refused(event, ErrorCode.UNKNOWN_MEMBER_ID))]
            self._bury(group)
            group = None
        if group is not None:
            return self._carry_out(group, group.handle(event, now_ms), now_ms)
        if isinstance(event, Join):
            group = self._groups[group_id] = ClassicGroup(group_id, self.limits)
            effects = group.handle(event, now_ms)
            if not any(isinstance(effect, Append) for effect in effects):
                effects.insert(0, Append(group.record() if not group.members else _empty(group_id)))
            return self._carry_out(group, effects, now_ms)
        return []

    def expire(self, now_ms: int) -> list[Reply]:
        """Let everything that is due take effect."""
        replies: list[Reply] = []
        for group_id in self._deadlines.due(now_ms):
            group = self._groups.get(group_id)
            if group is not None:
                replies += self._carry_out(group, group.handle(Tick(), now_ms), now_ms)
        return replies

    def commit(
        self,
        group_id: str,
        who: Committer,
        offsets: Mapping[Partition, CommittedOffset],
        *,
        names_missing_groups: bool,
    ) -> Mapping[Partition, ErrorCode]:
        """Commit offsets, and answer with those that are refused. Empty: all are committed.

        ``names_missing_groups``: OffsetCommit v9 and later have a code for those, and know KIP-848. The empty group id
        is a group like any other here, as it was before groups had members.
        """
        group = self._groups.get(group_id)
        is_one_too_many = group is None and len(self._groups) >= self.limits.max_groups
        if is_one_too_many or self.offsets.size_with(offsets) > self.limits.max_offset_bytes:
            return dict.fromkeys(offsets, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
        if group is None:
            if who.generation >= 0:
                error = ErrorCode.GROUP_ID_NOT_FOUND if names_missing_groups else ErrorCode.ILLEGAL_GENERATION
                return dict.fromkeys(offsets, error)
            # A "simple" group: somebody who assigns partitions to itself and only keeps its offsets here.
            group = self._groups[group_id] = ClassicGroup(group_id, self.limits)
        refused: dict[Partition, ErrorCode] = {}
        if isinstance(group, ConsumerGroup):
            refused = group.commit_errors(who.member_id, who.generation, offsets, speaks_epochs=names_missing_groups)
        else:
            error = group.commit_error(who.member_id, who.instance_id, who.generation)
            if error is not ErrorCode.NONE:
                return dict.fromkeys(offsets, error)
        for partition, committed in offsets.items():
            if partition not in refused:
                self._append(
                    OffsetRecord(
                        group_id=group_id,
                        topic=partition.topic,
                        partition=partition.number,
                        offset=committed.offset,
                        leader_epoch=committed.leader_epoch,
                        metadata=committed.metadata,
                    )
                )
        return refused

    def fetch_error(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether this client may read committed offsets; whoever names no member may."""
        group = self._groups.get(group_id)
        return group.fetch_error(member_id, epoch) if isinstance(group, ConsumerGroup) else ErrorCode.NONE

    def reload(self, group_id: str, now_ms: int) -> list[Reply]:
        """Rebuild a group from its records, as when another broker takes it over; who waits is told."""
        group = self._groups[group_id]
        replies = self._carry_out(group, group.unload(), now_ms)
        self._groups.pop(group_id)
        self._replay(self.journal.of_group(group_id), now_ms)
        rebuilt = self._groups.setdefault(group_id, ClassicGroup(group_id, self.limits))
        moved = Transition(
            before=group.state.value,
            after=rebuilt.state.value,
            generation=rebuilt.generation,
            members=len(rebuilt.members),
            reason="another broker coordinates it now",
        )
        self.history.add(group_id, moved, now_ms)
        self._deadlines.set(group_id, rebuilt.next_deadline_ms)
        return replies

    def delete(self, group_id: str, now_ms: int, *, is_here: bool = True) -> ErrorCode:
        """Delete a group that has no members, and its offsets; ``is_here`` as in `handle`."""
        (reply,) = self.handle(group_id, Delete(token=0), now_ms, is_here=is_here)
        return reply.body.error

    def forget_offsets(self, group_id: str, partitions: Iterable[Partition]) -> None:
        """Delete committed offsets; partitions without one are passed over."""
        committed = self.offsets.of(group_id)
        for partition in partitions:
            if partition in committed:
                self._append(OffsetTombstone(group_id=group_id, topic=partition.topic, partition=partition.number))

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted: delete what all groups committed for it, as Kafka does."""
        for group_id in self.offsets.group_ids():
            self.forget_offsets(group_id, [each for each in self.offsets.of(group_id) if each.topic == topic])

    # ---- inside ----

    def _replay(self, records: Iterable[Record], now_ms: int) -> None:
        """Rebuild groups from the records that count: what a tombstone deletes is not among them any more."""
        of_consumer_groups: dict[str, list[ConsumerRecord]] = {}
        for record in records:
            if isinstance(record, GroupRecord):
                self._groups[record.group_id] = ClassicGroup.replay(record, now_ms, self.limits)
            elif isinstance(record, ConsumerRecord):
                of_consumer_groups.setdefault(record.group_id, []).append(record)
            elif isinstance(record, OffsetRecord) and record.group_id not in self._groups:
                self._groups[record.group_id] = ClassicGroup(record.group_id, self.limits)
        for group_id, kept in of_consumer_groups.items():
            self._groups[group_id] = self._consumer_group(group_id, kept, now_ms)

    def _refusal(self, group_id: str, event: Event, is_here: bool) -> Reply | None:
        """What Kafka answers before the group is asked; None if the group is to be asked."""
        error = ErrorCode.NONE
        if not group_id and not isinstance(event, Delete):
            error = ErrorCode.INVALID_GROUP_ID
        elif isinstance(event, Join):
            limits = self.limits
            if not limits.min_session_timeout_ms <= event.session_timeout_ms <= limits.max_session_timeout_ms:
                error = ErrorCode.INVALID_SESSION_TIMEOUT
            elif not is_here:
                error = ErrorCode.NOT_COORDINATOR
            elif group_id not in self._groups and event.member_id != NO_MEMBER_ID:
                error = ErrorCode.UNKNOWN_MEMBER_ID
        elif not is_here:
            error = ErrorCode.NOT_COORDINATOR
        elif group_id not in self._groups and not isinstance(event, ConsumerHeartbeat):
            error = ErrorCode.GROUP_ID_NOT_FOUND if isinstance(event, Delete) else ErrorCode.UNKNOWN_MEMBER_ID
        if error is ErrorCode.NONE:
            error = self._quota.error(self._groups, group_id, event)
        if error is ErrorCode.NONE or isinstance(event, Tick | ExpireSession | ForceRebalance):
            return None
        return Reply(event.token, _refused(event, error))

    def _consumer_heartbeat(
        self, group_id: str, group: Group | None, event: ConsumerHeartbeat, now_ms: int
    ) -> list[Reply]:
        if isinstance(group, ConsumerGroup):
            return self._carry_out(group, self._beat(group, event, now_ms), now_ms)
        if event.epoch != 0:
            missing = f"there is no group {group_id!r}" if group is None else f"group {group_id!r} is a classic group"
            return [Reply(event.token, _no_consumer_group(missing))]
        before: list[Effect] = []
        records: list[ConsumerRecord] = []
        if group is not None:
            before = [Append(ClassicTombstone(group_id=group_id))]
        if group is not None and group.members:
            try:
                records = upgrade_records(group, self.topics, self.consumer_limits)
            except CannotConvertError as problem:
                return [Reply(event.token, _no_consumer_group(str(problem)))]
            before += map(Append, records)
        fresh = self._consumer_group(group_id, records, now_ms)
        effects = self._beat(fresh, event, now_ms)
        if any(isinstance(effect, Append) for effect in effects):
            if group is not None:
                before += group.unload(ErrorCode.REBALANCE_IN_PROGRESS)
            self._groups[group_id] = fresh
            effects = [*before, *effects]
        return self._carry_out(fresh, effects, now_ms)

    def _beat(self, group: ConsumerGroup, event: ConsumerHeartbeat, now_ms: int) -> list[Effect]:
        """A heartbeat; before that of a member that comes, what there is to do in the topics, so that it can count."""
        asked = SERVER_ASSIGNORS[event.assignor] if event.assignor else group.assignor
        if event.epoch == 0 and asked.uses_load and self._loads is not None:
            names = group.kept.topics().union(event.topics or ())
            group.handle(LoadsRead(loads=self._loads.read(group.group_id, names, now_ms)), now_ms)
        return group.handle(event, now_ms)

    def _consumer_group(self, group_id: str, records: Iterable[ConsumerRecord], now_ms: int) -> ConsumerGroup:
        limits, most = self.consumer_limits, self.limits.max_size
        return ConsumerGroup.replay(group_id, records, self.topics, now_ms, limits, max_classic_size=most)

    def _downgrade(self, group: ConsumerGroup, effect: Downgrade, now_ms: int) -> list[Reply]:
        """Let a consumer group go on as a classic one."""
        before = group.state.value
        classic = downgraded(group, self.topics, self.limits, now_ms)
        self._bury(group)
        self._groups[group.group_id] = classic
        self._append(classic.record())
        turned = Transition(
            before=before,
            after=classic.state.value,
            generation=classic.generation,
            members=len(classic.members),
            reason=f"it speaks the classic protocol now: {effect.reason}",
        )
        self.history.add(group.group_id, turned, now_ms)
        if not effect.rebalance:
            return []
        return self._carry_out(classic, classic.handle(ForceRebalance(), now_ms), now_ms)

    def _bury(self, group: ConsumerGroup) -> None:
        """Forget all records of a consumer group but its offsets."""
        for record in list(group.kept.records()):
            self._append(ConsumerTombstone(group_id=group.group_id, key=record.key))
        del self._groups[group.group_id]

    def _carry_out(self, group: Group, effects: Sequence[Effect], now_ms: int) -> list[Reply]:
        replies: list[Reply] = []
        for effect in effects:
            if isinstance(effect, Append):
                self._append(effect.record)
            elif isinstance(effect, Transition):
                self.history.add(group.group_id, effect, now_ms)
            elif isinstance(effect, Downgrade):
                assert isinstance(group, ConsumerGroup)
                replies += self._downgrade(group, effect, now_ms)
            elif isinstance(effect, ReadLoads):
                assert isinstance(group, ConsumerGroup)
                loads = {} if self._loads is None else self._loads.read(group.group_id, effect.topics, now_ms)
                replies += self._carry_out(group, group.handle(LoadsRead(loads=loads), now_ms), now_ms)
            else:
                replies.append(effect)
        now_there = self._groups.get(group.group_id)
        self._deadlines.set(group.group_id, None if now_there is None else now_there.next_deadline_ms)
        return replies

    def _append(self, record: Record) -> None:
        self.journal.append(record)
        if isinstance(record, GroupTombstone | OffsetRecord | OffsetTombstone):
            self._apply(record)  # the others say what a group has done to itself already

    def _apply(self, record: OffsetRecord | OffsetTombstone | GroupTombstone) -> None:
        if isinstance(record, GroupTombstone):
            self._groups.pop(record.group_id, None)
            self._deadlines.set(record.group_id, None)
            self.offsets.forget(record.group_id)
            if self._loads is not None:
                self._loads.forget(record.group_id)
            return
        self.offsets.apply(record)
        if record.group_id not in self._groups:
            self._groups[record.group_id] = ClassicGroup(record.group_id, self.limits)


def _empty(group_id: str) -> GroupRecord:
    return ClassicGroup(group_id).record()


def _no_consumer_group(message: str) -> ConsumerHeartbeatReply:
    return ConsumerHeartbeatReply(error=ErrorCode.GROUP_ID_NOT_FOUND, message=message)


def _refused(event: Join | Sync | Heartbeat | Leave | Delete | ConsumerHeartbeat, error: ErrorCode) -> ReplyBody:
    match event:
        case ConsumerHeartbeat():
            return ConsumerHeartbeatReply(error=error)
        case Join():
            return JoinReply(error=error, member_id=event.member_id)
        case Sync():
            return SyncReply(error=error)
        case Heartbeat():
            return HeartbeatReply(error=error)
        case Delete():
            return DeleteReply(error=error)
        case Leave() if error is ErrorCode.UNKNOWN_MEMBER_ID:
            # Kafka says it of every member, not of the request.
            return LeaveReply(leavers=[Left(*leaver, error) for leaver in event.leavers])
        case Leave():
            return LeaveReply(error=error)
