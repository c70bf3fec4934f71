"""Changes a consumer group: epoch, targets, members' steps, and removals.

`loadwise.coordinator.groups.consumer.group` and `…classic_members` decide when each is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING
from uuid import UUID

from loadwise.coordinator.groups.consumer.assignors import SERVER_ASSIGNORS, ServerAssignor
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits
from loadwise.coordinator.groups.consumer.member import ConsumerMember
from loadwise.coordinator.groups.consumer.reconciliation import Reconciliation
from loadwise.coordinator.groups.consumer.state import ConsumerGroupState, ConsumerState
from loadwise.coordinator.groups.consumer.topic_regex import matching
from loadwise.coordinator.groups.consumer_records import (
    ConsumerRecord,
    GroupEpoch,
    MemberState,
    MemberSubscription,
    MemberTarget,
    Partitions,
    ResolvedRegex,
    TargetEpoch,
    Tombstone,
)
from loadwise.coordinator.groups.deadlines import Deadlines
from loadwise.coordinator.groups.effects import Append, Downgrade, Effect, Transition
from loadwise.coordinator.groups.topic_view import LoadView, TopicView
from loadwise.coordinator.turns import Turns

if TYPE_CHECKING:  # imports numpy, which is optional
    from loadwise.coordinator.groups.consumer.load_watch import LoadWatch


class ConsumerTimer(Enum):
    """What a member can time out of."""

    SESSION = "sent no heartbeat within its session timeout"
    REBALANCE = "did not revoke its partitions within its rebalance timeout"
    JOIN = "did not rejoin within its rebalance timeout"
    LOAD = ""
    """Not a member's timer: partitions' load must be read again."""
    SYNC = "did not sync within its rebalance timeout"


class Rebalancer:
    """The state of a consumer group, and the operations on it."""

    def __init__(
        self,
        group_id: str,
        topics: TopicView,
        limits: ConsumerGroupLimits,
        *,
        max_classic_size: int,
        loads: LoadView | None,
    ) -> None:
        self.hard_state = ConsumerState(group_id)
        self.topics = topics
        self.limits = limits
        self.max_classic_size = max_classic_size
        self.deadlines: Deadlines[tuple[ConsumerTimer, str]] = Deadlines()
        self.now_ms = 0
        self.reason = ""
        """Why the group epoch was last incremented, for the history."""
        self.effects: list[Effect] = []
        self.is_downgraded = False
        """Whether the group was converted to a classic one, which replaces this one."""
        self._group_id = group_id
        self._topics_version: int | None = None  # the topics' version of the group epoch
        self._resolved_at_ms = 0  # when all regular expressions were last resolved
        self._loads = loads
        self._load: LoadWatch | None = None
        self._assigned_at_ms: int | None = None
        self._assigned_partitions = 0

    @property
    def assignor(self) -> ServerAssignor:
        """Return the assignor that most members request."""
        return SERVER_ASSIGNORS[self.hard_state.preferred_assignor() or self.limits.assignors[0]]

    def take_effects(self) -> list[Effect]:
        """Return the effects since the last call."""
        effects, self.effects = self.effects, []
        return effects

    # ---- members and epochs ----

    def subscribe(
        self, member: ConsumerMember, subscription: MemberSubscription, may_describe: Callable[[str], bool] | None
    ) -> Turns[bool]:
        """Apply a member's subscription; return whether its topics changed.

        If topics have changed, regular expressions are resolved again with the rights of this member's client, as in
        Kafka: ``may_describe`` returns which topics it may describe (None: all). This also happens at intervals,
        because the client's rights may have changed.
        """
        before = member.subscription
        is_new = member.member_id not in self.hard_state.members
        if subscription != before or is_new:
            yield from self.write(subscription)
        changed = subscription.topics != before.topics or subscription.regex != before.regex
        has_new_topics = self._topics_version != self.topics.version
        is_due = has_new_topics or self.now_ms >= self._resolved_at_ms + self.limits.regex_refresh_interval_ms
        if not changed and not is_due:
            return changed
        self._topics_version = self.topics.version  # the one that is begun with
        resolved = yield from self._resolve_regexes(may_describe, again=is_due)
        if changed:
            yield from self.refresh(f"{member.member_id} {'joined' if is_new else 'changed its subscription'}")
        elif resolved or (yield from self.hard_state.fingerprint(self.topics)) != self.hard_state.metadata_hash:
            yield from self.refresh("topics changed" if has_new_topics else "its client may describe other topics now")
        return changed

    def refresh(self, reason: str) -> Turns[None]:
        """Increment the group epoch, and drop regular expressions without subscribers."""
        self.reason = reason
        for regex in [regex for regex in self.hard_state.regexes if not self.hard_state.is_subscribed_with(regex)]:
            yield from self.write(Tombstone(group_id=self._group_id, key=("regex", regex)))
        fingerprint = yield from self.hard_state.fingerprint(self.topics)
        yield from self.write(
            GroupEpoch(group_id=self._group_id, epoch=self.hard_state.epoch + 1, metadata_hash=fingerprint)
        )

    def _resolve_regexes(self, may_describe: Callable[[str], bool] | None, *, again: bool) -> Turns[bool]:
        changed = False
        if again:
            self._resolved_at_ms = self.now_ms
        for regex in list(self.hard_state.subscribed_regexes()):
            if again or regex not in self.hard_state.regexes:
                topics = yield from matching(regex, [topic.name for topic in self.topics], may_describe)
                if topics != self.hard_state.regexes.get(regex):
                    changed = True
                    yield from self.write(ResolvedRegex(group_id=self._group_id, regex=regex, topics=topics))
        return changed

    def update_targets(self) -> Turns[None]:
        """Compute new targets if the group epoch requires it and the interval is over."""
        state = self.hard_state
        if state.target_epoch >= state.epoch:
            return
        interval_ms = self.limits.assignment_interval_of(len(state.members), self._assigned_partitions)
        if self._assigned_at_ms is not None and self.now_ms < self._assigned_at_ms + interval_ms:
            return
        from loadwise.coordinator.groups.consumer.target import (  # noqa: PLC0415  (numpy, for those who need it)
            snapshot,
            steered_targets,
            targets,
        )

        load, assignor = self._read_load(), self.assignor
        if assignor.is_steered:
            new = yield from steered_targets(self._rows(), self.topics)
        else:
            group = yield from snapshot(self._rows(), self.topics, assignor, load, self.now_ms)
            new = yield from targets(group, self.topics, assignor)
        assigned = 0
        for member_id, partitions in new.items():
            if partitions != state.target(member_id):
                yield from self.write(MemberTarget(group_id=self._group_id, member_id=member_id, partitions=partitions))
            assigned += sum(map(len, partitions.values()))
            yield len(partitions)
        yield from self.write(TargetEpoch(group_id=self._group_id, epoch=state.epoch))
        self._assigned_at_ms, self._assigned_partitions = self.now_ms, assigned
        if load is not None:
            load.targets_made(self.now_ms)

    # ---- load ----

    def _read_load(self) -> LoadWatch | None:
        """Return the group's load with a current reading; None if its assignor does not use it."""
        assignor = self.assignor
        if self._loads is None or not assignor.uses_load:
            return None
        from loadwise.coordinator.groups.consumer.load_watch import LoadWatch  # noqa: PLC0415  (numpy, as above)

        if self._load is None or self._load.assignor != assignor.algorithm:
            self._load = LoadWatch(self._group_id, self._loads, assignor.algorithm, self.limits.live)
        self._load.read(self.hard_state.topics(), self.now_ms)
        return self._load

    def _look_at_load(self) -> Turns[None]:
        """Increment the group epoch if new targets are worth their price."""
        load, state = self._read_load(), self.hard_state
        decision = None if load is None or state.name is not ConsumerGroupState.STABLE else load.decide(self.now_ms)
        if load is None or decision is None:
            return
        if load.act(decision):
            yield from self.refresh(f"for the load: {decision}")
        elif note := load.note(decision):
            self.effects.append(
                Transition(
                    before=state.name.value,
                    after=state.name.value,
                    generation=state.epoch,
                    members=len(state.members),
                    reason=note,
                )
            )

    def watch_load(self) -> Turns[None]:
        """Read partitions' load at intervals while the assignor uses it."""
        key = (ConsumerTimer.LOAD, "")
        if not (self.hard_state.members and self.assignor.uses_load):
            self.deadlines.set(key, None)
            self._load = None
            return
        if key not in self.deadlines:
            self.deadlines.set(key, self.now_ms + self.limits.load_interval_ms)
        load, state = self._load, self.hard_state
        if load is not None and not load.watches and state.name is ConsumerGroupState.STABLE:
            from loadwise.coordinator.groups.consumer.target import snapshot  # noqa: PLC0415  (numpy, as above)

            group = yield from snapshot(self._rows(), self.topics, self.assignor, load, self.now_ms)
            load.settled(group, state.epoch, self.now_ms)

    # ---- members' steps ----

    def _rows(self) -> Iterator[tuple[ConsumerMember, frozenset[str], Partitions]]:
        for member in self.hard_state.members.values():
            yield (
                member,
                self.hard_state.subscribed_topics(member.subscription),
                self.hard_state.target(member.member_id),
            )

    def reconcile(
        self, member: ConsumerMember, owned: Mapping[UUID, Sequence[int]] | None, *, subscription_changed: bool
    ) -> Turns[None]:
        """Move a member one step towards its target."""
        state = self.hard_state
        if not subscription_changed and member.is_reconciled_to(state.target_epoch):
            return
        wanted = state.subscribed_topics(member.subscription)

        def is_subscribed(topic_id: UUID) -> bool:
            topic = self.topics.get_by_id(topic_id)
            return topic is not None and topic.name in wanted

        step = Reconciliation(
            target=state.target(member.member_id),
            target_epoch=state.target_epoch,
            subscription_changed=subscription_changed,
            owned=owned,
            is_subscribed=is_subscribed,
            is_free=lambda topic_id, number: state.holder(topic_id, number) in (None, member.member_id),
        )
        after = yield from step.next(member.current)
        if after != member.current:
            yield from self.write(after)
            self.set_rebalance_timer(member)

    def replace(self, replaced: ConsumerMember, member_id: str) -> Turns[ConsumerMember]:
        """Replace the previous member of a static member's instance (KIP-345)."""
        target, current = self.hard_state.target(replaced.member_id), replaced.current
        yield from self.forget(replaced.member_id)
        yield from self.write(replace(replaced.subscription, member_id=member_id))
        yield from self.write(MemberTarget(group_id=self._group_id, member_id=member_id, partitions=target))
        yield from self.write(replace(current, member_id=member_id, epoch=0, previous_epoch=0))
        return self.hard_state.members[member_id]

    def remove(self, member_ids: Iterable[str], reason: str) -> Turns[None]:
        """Remove members, and convert the group if only classic members are left."""
        for member_id in member_ids:
            yield from self.forget(member_id)
        if self.may_downgrade():
            self.downgrade(reason, rebalance=True)
        else:
            yield from self.refresh(reason)

    def may_downgrade(self) -> bool:
        """Return whether only classic members are left, and the group may be converted."""
        members = len(self.hard_state.members)
        is_allowed = self.limits.migration_policy.downgrades and members <= self.max_classic_size
        return is_allowed and 0 < members == self.hard_state.classic_members

    def downgrade(self, reason: str, *, rebalance: bool) -> None:
        """Convert the group to a classic one."""
        self.is_downgraded = True
        self.effects.append(Downgrade(reason=reason, rebalance=rebalance))

    def forget(self, member_id: str) -> Turns[None]:
        """Drop all state of a member."""
        for kind in ("current", "target", "member"):
            yield from self.write(Tombstone(group_id=self._group_id, key=(kind, member_id)))
        for timer in ConsumerTimer:
            self.deadlines.set((timer, member_id), None)

    # ---- time ----

    def expire(self) -> Turns[None]:
        """Remove members whose timers have expired."""
        for timer, member_id in self.deadlines.due(self.now_ms):
            if timer is ConsumerTimer.LOAD:
                yield from self._look_at_load()
            elif member_id in self.hard_state.members and not self.is_downgraded:
                yield from self.remove([member_id], f"{member_id} {timer.value}")

    def set_timer(self, timer: ConsumerTimer, member_id: str, after_ms: int | None) -> None:
        """Set, move or clear a timer of a member."""
        self.deadlines.set((timer, member_id), None if after_ms is None else self.now_ms + max(after_ms, 1))

    def restart_session(self, member: ConsumerMember) -> None:
        """A member is alive."""
        classic = member.subscription.classic
        timeout_ms = self.limits.session_timeout_ms if classic is None else classic.session_timeout_ms
        self.set_timer(ConsumerTimer.SESSION, member.member_id, timeout_ms)

    def set_rebalance_timer(self, member: ConsumerMember) -> None:
        """Start the rebalance timer of a member that must revoke partitions."""
        is_slow = member.current.state is MemberState.UNREVOKED_PARTITIONS and not member.is_classic
        self.set_timer(
            ConsumerTimer.REBALANCE, member.member_id, member.subscription.rebalance_timeout_ms if is_slow else None
        )

    # ---- records ----

    def write(self, record: ConsumerRecord) -> Turns[None]:
        """Apply and append a record."""
        yield from self.hard_state.apply(record)
        self.effects.append(Append(record))
