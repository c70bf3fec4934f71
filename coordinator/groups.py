"""All groups and their committed offsets: finds the group for an event, keeps the records, knows the next deadline.

Mirrors Kafka's ``GroupCoordinatorService`` and ``GroupCoordinatorShard`` where they check a request before the group
sees it, and answers for groups that do not exist. No I/O and no clock here either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loadwise.coordinator.classic import ClassicGroup, GroupLimits
from loadwise.coordinator.deadlines import Deadlines
from loadwise.coordinator.effects import (
    Append,
    DeleteReply,
    Effect,
    HeartbeatReply,
    JoinReply,
    LeaveReply,
    Left,
    Reply,
    ReplyBody,
    SyncReply,
    Transition,
)
from loadwise.coordinator.events import (
    NO_MEMBER_ID,
    Delete,
    Event,
    ExpireSession,
    ForceRebalance,
    Heartbeat,
    Join,
    Leave,
    Sync,
    Tick,
)
from loadwise.coordinator.history import History
from loadwise.coordinator.journal import Journal
from loadwise.coordinator.offsets import CommittedOffset, Offsets, Partition
from loadwise.coordinator.records import GroupRecord, GroupTombstone, OffsetRecord, OffsetTombstone, Record
from loadwise.protocol.error_codes import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """Who commits offsets, as it says itself."""

    member_id: str = NO_MEMBER_ID
    instance_id: str | None = None
    generation: int = -1


class Groups:
    """The coordinator's groups, by id."""

    def __init__(self, limits: GroupLimits | None = None) -> None:
        self.limits = limits or GroupLimits()
        self.offsets = Offsets()
        self.journal = Journal()
        """The records that were appended; replaying them rebuilds this object."""
        self.history = History()
        """How groups came to be what they are; not kept by the journal."""
        self._groups: dict[str, ClassicGroup] = {}
        self._deadlines: Deadlines[str] = Deadlines()

    @classmethod
    def replay(cls, journal: Iterable[Record], now_ms: int, limits: GroupLimits | None = None) -> Groups:
        """Rebuild groups and offsets from the records that another one kept."""
        groups = cls(limits)
        for record in journal:
            groups.journal.append(record)
            if isinstance(record, GroupRecord):
                group = ClassicGroup.replay(record, now_ms, groups.limits)
                groups._groups[record.group_id] = group
                groups._deadlines.set(record.group_id, group.next_deadline_ms)
            else:
                groups._apply(record)
        return groups

    def get(self, group_id: str) -> ClassicGroup | None:
        """The group of this id; None if there is none."""
        return self._groups.get(group_id)

    def all(self) -> Mapping[str, ClassicGroup]:
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
        if group is not None:
            return self._run(group, event, now_ms)
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
                replies += self._run(group, Tick(), now_ms)
        return replies

    def commit(
        self,
        group_id: str,
        who: Committer,
        offsets: Mapping[Partition, CommittedOffset],
        *,
        names_missing_groups: bool,
    ) -> ErrorCode:
        """Commit offsets, all or none. ``names_missing_groups``: OffsetCommit v9 and later have a code for those.

        The empty group id is a group like any other here, as it was before groups had members.
        """
        group = self._groups.get(group_id)
        if group is None:
            if who.generation >= 0:
                return ErrorCode.GROUP_ID_NOT_FOUND if names_missing_groups else ErrorCode.ILLEGAL_GENERATION
            # A "simple" group: somebody who assigns partitions to itself and only keeps its offsets here.
            group = self._groups[group_id] = ClassicGroup(group_id, self.limits)
        error = group.commit_error(who.member_id, who.instance_id, who.generation)
        if error is ErrorCode.NONE:
            for (topic, number), committed in offsets.items():
                self._append(
                    OffsetRecord(
                        group_id=group_id,
                        topic=topic,
                        partition=number,
                        offset=committed.offset,
                        leader_epoch=committed.leader_epoch,
                        metadata=committed.metadata,
                    )
                )
        return error

    def reload(self, group_id: str, now_ms: int) -> list[Reply]:
        """Rebuild a group from its records, as when another broker takes it over; who waits is told."""
        group = self._groups[group_id]
        replies = self._carry_out(group, group.unload(), now_ms)
        record = self.journal.group(group_id)
        if record is None:
            rebuilt = ClassicGroup(group_id, self.limits)
        else:
            rebuilt = ClassicGroup.replay(record, now_ms, self.limits)
        self._groups[group_id] = rebuilt
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
        elif group_id not in self._groups:
            error = ErrorCode.GROUP_ID_NOT_FOUND if isinstance(event, Delete) else ErrorCode.UNKNOWN_MEMBER_ID
        if error is ErrorCode.NONE or isinstance(event, Tick | ExpireSession | ForceRebalance):
            return None
        return Reply(event.token, _refused(event, error))

    def _run(self, group: ClassicGroup, event: Event, now_ms: int) -> list[Reply]:
        return self._carry_out(group, group.handle(event, now_ms), now_ms)

    def _carry_out(self, group: ClassicGroup, effects: Sequence[Effect], now_ms: int) -> list[Reply]:
        replies = []
        for effect in effects:
            if isinstance(effect, Append):
                self._append(effect.record)
            elif isinstance(effect, Transition):
                self.history.add(group.group_id, effect, now_ms)
            else:
                replies.append(effect)
        alive = group.group_id in self._groups
        self._deadlines.set(group.group_id, group.next_deadline_ms if alive else None)
        return replies

    def _append(self, record: Record) -> None:
        self.journal.append(record)
        if not isinstance(record, GroupRecord):
            self._apply(record)

    def _apply(self, record: OffsetRecord | OffsetTombstone | GroupTombstone) -> None:
        if isinstance(record, GroupTombstone):
            self._groups.pop(record.group_id, None)
            self._deadlines.set(record.group_id, None)
            self.offsets.forget(record.group_id)
            return
        self.offsets.apply(record)
        if record.group_id not in self._groups:
            self._groups[record.group_id] = ClassicGroup(record.group_id, self.limits)


def _empty(group_id: str) -> GroupRecord:
    return ClassicGroup(group_id).record()


def _refused(event: Join | Sync | Heartbeat | Leave | Delete, error: ErrorCode) -> ReplyBody:
    match event:
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
