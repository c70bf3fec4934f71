"""All groups and their offsets: passes events to groups, and carries out the effects.

Mirrors Kafka's ``GroupCoordinatorShard``. Events reach a group in their order. All effects of that and of
``Group.unload`` go through `Groups._carry_out`, so that none is lost.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Container, Generator, Iterable, Mapping, Sequence
from typing import NamedTuple, assert_never

from loadwise.coordinator.errors import CannotConvertError
from loadwise.coordinator.groups.classic.group import ClassicGroup
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits
from loadwise.coordinator.groups.effects import Append, CommitReply, Downgrade, Effect, Reply, Transition
from loadwise.coordinator.groups.events import (
    NO_MEMBER_ID,
    CommitOffsets,
    ConsumerHeartbeat,
    Delete,
    Event,
    ForceRebalance,
    Join,
    KindHeartbeat,
    Request,
    Tick,
)
from loadwise.coordinator.groups.group import Group
from loadwise.coordinator.groups.kind import GroupKind
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.groups.records import OffsetRecord, PendingOffsetRecord, Record
from loadwise.coordinator.groups.service import commits, migration
from loadwise.coordinator.groups.service.admission import Admission
from loadwise.coordinator.groups.service.loads import LogView
from loadwise.coordinator.groups.service.store import GroupStore
from loadwise.coordinator.groups.topic_view import NO_TOPICS, TopicView
from loadwise.coordinator.keeper import NOTHING, Keeper
from loadwise.coordinator.turns import Turns, advance, whole
from loadwise.protocol.error_codes import ErrorCode

log = logging.getLogger("loadwise.coordinator")

OURS = 0
"""The token of internal requests; no client waits under it, since clients' tokens start at 1."""


class _Work(NamedTuple):
    """An event on its way through a group."""

    event: Event
    turns: Turns[list[Reply]]


class Groups(GroupStore):
    """The coordinator's groups, by id.

    ``configs_of`` returns a group's own configs. ``records`` rebuild groups and offsets at the time ``now_ms``;
    ``keeper`` has them already.
    """

    def __init__(
        self,
        limits: GroupLimits | None = None,
        consumer_limits: ConsumerGroupLimits | None = None,
        topics: TopicView = NO_TOPICS,
        logs: LogView | None = None,
        *,
        kinds: Iterable[GroupKind] = (),
        configs_of: Callable[[str], Mapping[str, str]] = lambda _: {},
        records: Iterable[Record] = (),
        now_ms: int = 0,
        keeper: Keeper = NOTHING,
    ) -> None:
        super().__init__(
            limits or GroupLimits(),
            consumer_limits or ConsumerGroupLimits(),
            topics,
            logs,
            kinds={each.kind: each for each in kinds},
            configs_of=configs_of,
            keeper=keeper,
        )
        self._admission = Admission(self.limits, self.kinds)
        self._next_cleanup_ms: int | None = None
        self._unfinished: dict[str, deque[_Work]] = {}
        """The events of groups with long work, in their order; the group whose turn it is first."""
        stored = list(records)
        self.journal.load(stored)
        for record in stored:
            if isinstance(record, OffsetRecord):
                self.offsets.apply(record)
            elif isinstance(record, PendingOffsetRecord):
                self.pending_offsets.apply(record)
        self.replay(stored, now_ms)
        self._plan_cleanup(now_ms)

    # ---- queries ----

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when `expire` must be called next; None if nothing is due."""
        deadlines = (self.deadlines.next_ms, self._next_cleanup_ms)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def get(self, group_id: str) -> Group | None:
        """Return the group of this id, or None."""
        return self.groups.get(group_id)

    def all(self) -> Mapping[str, Group]:
        """Return all groups by id."""
        return self.groups

    def fetch_error(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Return whether this client may fetch offsets; for a missing group it may."""
        group = self.get(group_id)
        return ErrorCode.NONE if group is None else group.validate_offset_fetch(member_id, epoch)

    # ---- events ----

    def handle(self, group_id: str, event: Event, now_ms: int, *, is_here: bool = True) -> list[Reply]:
        """Handle an event in its group; the replies may belong to earlier events.

        Long work is continued by `go_on`, and the group's next events wait for it. Commits do not, because they change
        no member. ``is_here``: whether the call's broker coordinates the group.
        """
        if isinstance(event, CommitOffsets):
            return self._commit(group_id, event, now_ms, is_here=is_here)
        return self._begin(group_id, event, self._handle(group_id, event, now_ms, is_here=is_here))

    @property
    def has_unfinished(self) -> bool:
        """Return whether `go_on` has something to do."""
        return bool(self._unfinished)

    def is_busy(self, group_id: str) -> bool:
        """Return whether events of a group are not handled yet."""
        return group_id in self._unfinished

    def go_on(self) -> list[Reply]:
        """Continue the work of one group for a while."""
        group_id = next(iter(self._unfinished))
        return self._continue(group_id, self._unfinished.pop(group_id))

    def finish(self, group_id: str) -> list[Reply]:
        """Do all work of a group in this turn."""
        replies: list[Reply] = []
        while self.is_busy(group_id):
            replies += self._continue(group_id, self._unfinished.pop(group_id))
        return replies

    def _begin(self, group_id: str, event: Event, turns: Turns[list[Reply]]) -> list[Reply]:
        work = _Work(event, turns)
        earlier = self._unfinished.get(group_id)
        if earlier is None:
            return self._continue(group_id, deque([work]))
        earlier.append(work)
        return []

    def _continue(self, group_id: str, works: deque[_Work]) -> list[Reply]:
        """Continue a group's first work for a while, and keep what is left for later turns."""
        event, turns = works[0]
        replies: list[Reply] = []
        try:
            advance(turns)
        except StopIteration as end:
            replies = end.value
            works.popleft()
        except Exception:
            log.exception("group %r failed to handle %s", group_id, type(event).__name__)
            if isinstance(event, Request):
                replies = [self._admission.refused(event, ErrorCode.UNKNOWN_SERVER_ERROR)]
            works.popleft()
        if works:
            self._unfinished[group_id] = works
        return replies

    def _handle(self, group_id: str, event: Event, now_ms: int, *, is_here: bool) -> Turns[list[Reply]]:
        error, message = self._admission.refusal(self.groups, group_id, event, is_here=is_here)
        if error is not ErrorCode.NONE:
            return [self._admission.refused(event, error, message)] if isinstance(event, Request) else []
        if isinstance(event, Join):
            return (yield from self._join(group_id, event, now_ms))
        if isinstance(event, ConsumerHeartbeat):
            return (yield from self._consumer_heartbeat(group_id, event, now_ms))
        if isinstance(event, KindHeartbeat):
            return (yield from self._kind_heartbeat(group_id, event, now_ms))
        return (yield from self._tell(group_id, event, now_ms))

    def expire(self, now_ms: int) -> list[Reply]:
        """Complete everything that is due."""
        replies: list[Reply] = []
        for group_id in self.deadlines.due(now_ms):
            replies += self._begin(group_id, Tick(), self._tell(group_id, Tick(), now_ms))
        if self._next_cleanup_ms is not None and self._next_cleanup_ms <= now_ms:
            replies += self._clean_up(now_ms)
        return replies

    def _clean_up(self, now_ms: int) -> list[Reply]:
        """Delete expired offsets, and groups without members and offsets. Mirrors ``cleanupGroupMetadata``."""
        replies: list[Reply] = []
        for group in list(self.groups.values()):
            commits.expire(self, group, now_ms)
            kind = self.kinds.get(group.type)
            is_unused = not self.offsets.of(group.group_id) and not self.pending_offsets.of(group.group_id)
            is_unused = is_unused and not group.members and not self.is_busy(group.group_id)
            if is_unused and (kind is None or not kind.is_kept_empty):
                replies += self.delete(group.group_id, now_ms)[1]
        self._next_cleanup_ms = None
        self._plan_cleanup(now_ms)
        return replies

    def _plan_cleanup(self, now_ms: int) -> None:
        if self._next_cleanup_ms is None and self.groups:
            self._next_cleanup_ms = now_ms + self.limits.offsets_retention_check_interval_ms

    def reload(self, group_id: str, now_ms: int) -> list[Reply]:
        """Rebuild a group from its records, as another broker would; waiting clients get an error."""
        replies = self.finish(group_id)
        before = self.groups[group_id]
        replies += whole(self._carry_out(before, before.unload(ErrorCode.NOT_COORDINATOR, now_ms), now_ms))
        self.groups.pop(group_id)
        self.replay(self.journal.of_group(group_id), now_ms)
        after = self.groups.get(group_id)
        if after is None:
            after = self.new_classic_group(group_id)
            self.put(after)
        moved = Transition(
            before=before.state.value,
            after=after.state.value,
            generation=after.generation,
            members=len(after.members),
            reason="another broker is its coordinator now",
        )
        self.history.add(group_id, moved, now_ms)
        return replies

    def delete(self, group_id: str, now_ms: int, *, is_here: bool = True) -> tuple[ErrorCode, list[Reply]]:
        """Delete a group without members, and its offsets, once its work is done.

        ``is_here`` as in `handle`. The replies are for waiting clients.
        """
        replies = self.handle(group_id, Delete(token=OURS), now_ms, is_here=is_here) + self.finish(group_id)
        (error,) = [reply.body.error for reply in replies if reply.token == OURS]
        return error, [reply for reply in replies if reply.token != OURS]

    # ---- offsets ----

    def forget_offsets(self, group_id: str, partitions: Collection[Partition]) -> None:
        """Delete the offsets of these partitions, also those of open transactions."""
        commits.forget(self, group_id, partitions)

    def end_transaction(self, producer_id: int, offsets_partition: int, *, committed: bool) -> Turns[None]:
        """End a producer's transaction for the groups of a ``__consumer_offsets`` partition."""
        return commits.end_transaction(self, producer_id, offsets_partition, committed=committed)

    def forget_topics(self, topics: Container[str]) -> None:
        """Delete all groups' offsets of deleted topics, as Kafka does. O(all offsets)."""
        commits.forget_topics(self, topics)

    # ---- finding or creating the group ----

    def _join(self, group_id: str, event: Join, now_ms: int) -> Turns[list[Reply]]:
        group = self.groups.get(group_id)
        if group is not None and not isinstance(group, ClassicGroup) and not group.members:
            # It has no members, so a new member may convert it to the other protocol.
            if event.member_id != NO_MEMBER_ID:
                return [self._admission.refused(event, ErrorCode.UNKNOWN_MEMBER_ID)]
            self.remove(group)
            group = None
        if group is None:
            group = self.new_classic_group(group_id)
            self.add(group)  # a join creates the group, even if it fails
        return (yield from self._tell(group_id, event, now_ms))

    def _consumer_heartbeat(self, group_id: str, event: ConsumerHeartbeat, now_ms: int) -> Turns[list[Reply]]:
        if self.consumer_group(group_id) is not None:
            return (yield from self._tell(group_id, event, now_ms))
        classic = self.groups.get(group_id)
        if event.epoch != 0:
            what = "there is no group" if classic is None else f"there is a {classic.type} group"
            message = f"{what} {group_id!r}"
            return [self._admission.refused(event, ErrorCode.GROUP_ID_NOT_FOUND, message)]
        replies: list[Reply] = []
        try:
            migration.check_upgrade(self, group_id)
            if classic is not None:
                # Kafka makes waiting members rejoin before it checks whether the group can be upgraded.
                left = classic.unload(ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
                replies = whole(self._carry_out(classic, left, now_ms))
            fresh = migration.consumer_group(self, group_id, now_ms)
        except CannotConvertError as problem:
            return [*replies, self._admission.refused(event, problem.error, str(problem))]
        refusal = fresh.heartbeat_refusal(event)
        if refusal is not None:
            return [*replies, Reply(event.token, refusal)]  # the group does not change
        migration.replace(self, classic, fresh)
        return replies + (yield from self._tell(group_id, event, now_ms))

    def _kind_heartbeat(self, group_id: str, event: KindHeartbeat, now_ms: int) -> Turns[list[Reply]]:
        kind, group = self.kinds[event.kind], self.groups.get(group_id)
        if group is not None and group.type == event.kind:
            return (yield from self._tell(group_id, event, now_ms))
        if event.epoch != 0:
            return [
                self._admission.refused(
                    event, ErrorCode.GROUP_ID_NOT_FOUND, f"{kind.missing(event)} {group_id} not found."
                )
            ]
        # It replaces an empty classic group, unless its first member is refused.
        fresh = kind.replay(group_id, (), self.topics, now_ms)
        effects = yield from _effects(fresh, event, now_ms)
        if not fresh.members:
            return [effect for effect in effects if isinstance(effect, Reply)]
        if group is not None:
            self.remove(group)
        self.put(fresh)
        return (yield from self._carry_out(fresh, effects, now_ms))

    def _commit(self, group_id: str, event: CommitOffsets, now_ms: int, *, is_here: bool) -> list[Reply]:
        error, _ = self._admission.refusal(self.groups, group_id, event, is_here=is_here)
        if error is ErrorCode.NONE:
            error = commits.commit(self, group_id, event.who, event.offsets)
        replies = [Reply(event.token, CommitReply(error=error))]
        if error is not ErrorCode.NONE or event.who.producer_id is not None:
            # A commit in a transaction does not keep a member alive.
            return replies
        return replies + self._begin(group_id, Tick(), self._tell(group_id, event, now_ms))

    # ---- handling events and effects ----

    def _tell(self, group_id: str, event: Event, now_ms: int) -> Turns[list[Reply]]:
        group = self.groups.get(group_id)
        if group is None:
            return []
        self.configure(group)
        return (yield from self._carry_out(group, (yield from _effects(group, event, now_ms)), now_ms))

    def _carry_out(self, group: Group, effects: Sequence[Effect], now_ms: int) -> Turns[list[Reply]]:
        replies: list[Reply] = []
        for effect in effects:
            match effect:
                case Reply():
                    replies.append(effect)
                case Append(record):
                    self.append(record)
                    yield
                case Transition():
                    self.history.add(group.group_id, effect, now_ms)
                case Downgrade():
                    replies += self._downgrade(group.group_id, effect, now_ms)
                case _:
                    assert_never(effect)
        self.update_deadline(group.group_id)
        self._plan_cleanup(now_ms)
        return replies

    def _downgrade(self, group_id: str, effect: Downgrade, now_ms: int) -> list[Reply]:
        classic, turned = migration.classic_group(self, group_id, effect, now_ms)
        self.history.add(group_id, turned, now_ms)
        if not effect.rebalance:
            return []
        return whole(self._carry_out(classic, classic.handle(ForceRebalance(), now_ms), now_ms))


def _effects(group: Group, event: Event, now_ms: int) -> Turns[list[Effect]]:
    effects = group.handle(event, now_ms)
    return (yield from effects) if isinstance(effects, Generator) else effects
