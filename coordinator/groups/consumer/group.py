"""The consumer group protocol (KIP-848) as a state machine: epochs, targets and steps.

Mirrors Kafka 4.3's ``consumerGroup…`` methods of ``GroupMetadataManager``. `ConsumerGroup.handle` takes an event and
the time, and returns effects. It does no I/O and uses no clock and no random numbers. Three numbers describe
its progress::

    group epoch        grows when members, subscriptions or topics change
    target epoch       the group epoch of the targets
    member epoch       the target epoch that a member has reached

A heartbeat advances all three: it applies the member's changes, computes new targets if the group epoch is
ahead of them, and moves its own member one step towards its target (`…consumer.reconciliation`).

It differs from Kafka in two ways. A regular expression is resolved at once, and again as soon as topics have changed.
Kafka does both in the background, the latter at most every 10 s. If assignors have equally many
votes, the first one wins; Kafka's choice depends on a hash map.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, assert_never
from uuid import UUID

from loadwise.coordinator.errors import BadRegexError
from loadwise.coordinator.groups.consumer import classic_members
from loadwise.coordinator.groups.consumer.assignors import ServerAssignor
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits
from loadwise.coordinator.groups.consumer.member import ConsumerMember
from loadwise.coordinator.groups.consumer.rebalancer import ConsumerTimer, Rebalancer
from loadwise.coordinator.groups.consumer.state import ConsumerGroupState
from loadwise.coordinator.groups.consumer.topic_regex import matcher
from loadwise.coordinator.groups.consumer_records import LEFT_FOR_NOW, ConsumerRecord, MemberState, MemberSubscription
from loadwise.coordinator.groups.effects import (
    Append,
    ConsumerHeartbeatReply,
    DeleteReply,
    Effect,
    LeaveReply,
    Left,
    Reply,
    ReplyBody,
    Transition,
)
from loadwise.coordinator.groups.events import (
    NO_MEMBER_ID,
    CommitOffsets,
    Committer,
    ConsumerHeartbeat,
    Delete,
    Event,
    ExpireSession,
    ForceRebalance,
    Heartbeat,
    Join,
    KindHeartbeat,
    Leave,
    Leaver,
    Sync,
    Tick,
    Token,
)
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.records import GroupTombstone
from loadwise.coordinator.groups.topic_view import LoadView, TopicView, by_name
from loadwise.coordinator.turns import Turns, whole
from loadwise.protocol.consumer import PROTOCOL_TYPE
from loadwise.protocol.error_codes import ErrorCode


class ConsumerGroup:
    """One group of the consumer protocol. `handle` is the only way to change it."""

    type: Final = "consumer"
    """Its type in ListGroups."""
    protocol_type: Final = PROTOCOL_TYPE
    leader: Final = None
    """No member leads, because the coordinator assigns."""

    def __init__(
        self,
        group_id: str,
        topics: TopicView,
        limits: ConsumerGroupLimits | None = None,
        *,
        max_classic_size: int = 2**31 - 1,
        loads: LoadView | None = None,
    ) -> None:
        self.group_id = group_id
        self.is_dead = False
        self._topics = topics
        limits = limits or ConsumerGroupLimits()
        self._rebalancer = Rebalancer(group_id, topics, limits, max_classic_size=max_classic_size, loads=loads)
        self.hard_state = self._rebalancer.hard_state

    @classmethod
    def replay(
        cls,
        group_id: str,
        records: Iterable[ConsumerRecord],
        topics: TopicView,
        now_ms: int,
        limits: ConsumerGroupLimits | None = None,
        *,
        max_classic_size: int = 2**31 - 1,
        loads: LoadView | None = None,
    ) -> ConsumerGroup:
        """Rebuild a group from its records; all timers start again."""
        group = cls(group_id, topics, limits, max_classic_size=max_classic_size, loads=loads)
        for record in records:
            whole(group.hard_state.apply(record))
        group._rebalancer.now_ms = now_ms
        for member in group.hard_state.members.values():
            group._rebalancer.restart_session(member)
            group._rebalancer.set_rebalance_timer(member)
        return group

    # ---- queries ----

    @property
    def limits(self) -> ConsumerGroupLimits:
        """Return the limits that hold now; those of sessions and rebalances hold from the next heartbeat on."""
        return self._rebalancer.limits

    @limits.setter
    def limits(self, limits: ConsumerGroupLimits) -> None:
        self._rebalancer.limits = limits

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when the next `Tick` is due; None if nothing expires."""
        return self._rebalancer.deadlines.next_ms

    @property
    def assignor(self) -> ServerAssignor:
        """Return the assignor that most members request."""
        return self._rebalancer.assignor

    @property
    def members(self) -> Mapping[str, ConsumerMember]:
        """Return the members by id."""
        return self.hard_state.members

    @property
    def generation(self) -> int:
        """Return the group epoch."""
        return self.hard_state.epoch

    @property
    def state(self) -> ConsumerGroupState:
        """Return the group's state."""
        return ConsumerGroupState.DEAD if self.is_dead else self.hard_state.name

    @property
    def protocol_name(self) -> str:
        """Return the name of its assignor."""
        return self.assignor.name

    @property
    def num_members(self) -> int:
        """Return the number of members."""
        return len(self.hard_state.members)

    @property
    def size_bytes(self) -> int:
        """Return the approximate bytes of its members' subscriptions."""
        return self.hard_state.subscription_bytes

    def records(self) -> Sequence[ConsumerRecord]:
        """Return the records that rebuild it."""
        return list(self.hard_state.records())

    def assignment(self, member_id: str) -> Mapping[str, Sequence[int]]:
        """Return a member's partitions by topic name, including those that it must still revoke."""
        return by_name(self.hard_state.members[member_id].held(), self._topics)

    def subscribed_topics(self) -> Container[str]:
        """Return the topics that members subscribe to, by name or regular expression."""
        return self.hard_state.topics()

    def expires_from_ms(self, committed: CommittedOffset) -> int:
        """Return the commit time, when an offset's retention starts."""
        return committed.committed_ms

    def validate_offset_commit(self, who: Committer, partitions: Iterable[Partition]) -> ErrorCode:
        """Return whether this client may commit for all these partitions.

        Mirrors ``ConsumerGroup.validateOffsetCommit``. A member may commit with an older epoch for partitions that it
        had then and has not revoked, because it may not know its new epoch yet (KIP-1251).
        """
        member = self.hard_state.members.get(who.member_id)
        if who.generation < 0 and not self.hard_state.members:
            return ErrorCode.NONE  # an administrator, or a consumer that assigns itself
        if who.producer_id is not None and who.generation < 0 and not who.member_id:
            return ErrorCode.NONE  # in a transaction the member is optional
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not member.is_classic and not who.knows_epochs:
            return ErrorCode.UNSUPPORTED_VERSION
        epoch = member.current.epoch
        had_all = who.generation < epoch and all(
            member.assignment_epoch(self._topic_id(each.topic), each.number, who.generation + 1) <= who.generation
            for each in partitions
        )
        if who.generation == epoch or had_all:
            return ErrorCode.NONE
        has_generations = member.is_classic or who.producer_id is not None
        return ErrorCode.ILLEGAL_GENERATION if has_generations else ErrorCode.STALE_MEMBER_EPOCH

    def _topic_id(self, name: str) -> UUID | None:
        topic = self._topics.get(name)
        return None if topic is None else topic.id

    def validate_offset_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Return whether this client may fetch offsets. Mirrors ``ConsumerGroup.validateOffsetFetch``."""
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.hard_state.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if epoch == member.current.epoch:
            return ErrorCode.NONE
        return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH

    def validate_offset_delete(self) -> ErrorCode:
        """Allow administrators to delete offsets of topics without subscribers."""
        return ErrorCode.GROUP_ID_NOT_FOUND if self.is_dead else ErrorCode.NONE

    # ---- events ----

    def handle(self, event: Event, now_ms: int) -> Turns[list[Effect]]:
        """Handle an event, then everything due at ``now_ms``; time never goes back.

        A heartbeat costs O(1) for a member at its target, O(its partitions) while it moves, and O(all partitions) if
        new targets are computed.
        """
        rebalancer = self._rebalancer
        rebalancer.now_ms = now_ms
        before, epoch = self.state, self.hard_state.epoch
        match event:
            case ConsumerHeartbeat():
                is_leaving = event.epoch < 0
                reply = yield from (self._on_leaving_heartbeat(event) if is_leaving else self._on_heartbeat(event))
                self._reply(event.token, reply)
            case Join():
                yield from classic_members.join(rebalancer, event)
            case Sync():
                classic_members.sync(rebalancer, event)
            case Heartbeat():
                yield from classic_members.heartbeat(rebalancer, event)
            case Leave():
                yield from self._on_leave(event)
            case Delete():
                self._on_delete(event)
            case ExpireSession():
                if event.member_id in self.hard_state.members:
                    yield from rebalancer.remove([event.member_id], f"the session of {event.member_id} ended")
            case ForceRebalance():
                if self.hard_state.members:
                    yield from rebalancer.refresh("forced by a test")
            case CommitOffsets() | Tick():
                pass
            case KindHeartbeat():
                raise AssertionError(f"{type(event).__name__} must be refused before it reaches a consumer group")
            case _:
                assert_never(event)
        yield from rebalancer.expire()
        yield from rebalancer.watch_load()
        if not rebalancer.is_downgraded and (self.state is not before or self.hard_state.epoch != epoch):
            self._append_transition(before, epoch)
        return rebalancer.take_effects()

    def unload(self, error: ErrorCode, now_ms: int) -> list[Effect]:  # noqa: ARG002
        """Return no effects, because no client waits in a consumer group."""
        return []

    # ---- heartbeats ----

    def _on_heartbeat(self, event: ConsumerHeartbeat) -> Turns[ConsumerHeartbeatReply]:
        refusal = self.heartbeat_refusal(event)
        if refusal is not None:
            return refusal
        member = yield from self._admit(event)
        before = member.current
        changed = yield from self._rebalancer.subscribe(
            member, _updated(member.subscription, event), event.may_describe
        )
        member = self.hard_state.members[event.member_id]
        yield from self._rebalancer.update_targets()
        yield from self._rebalancer.reconcile(member, event.owned, subscription_changed=changed)
        self._rebalancer.restart_session(member)
        is_full = None not in (event.rebalance_timeout_ms, event.owned) and (
            event.topics is not None or event.regex is not None
        )
        is_new = event.epoch == 0 or is_full or member.current.assigned != before.assigned
        return ConsumerHeartbeatReply(
            member_id=member.member_id,
            epoch=member.current.epoch,
            heartbeat_interval_ms=self.limits.heartbeat_interval_ms,
            assigned=member.current.assigned if is_new else None,
        )

    def heartbeat_refusal(self, event: ConsumerHeartbeat) -> ConsumerHeartbeatReply | None:
        """Return the error for a heartbeat of a new or current member; None if it is valid."""
        return self._refusal(event) or self._regex_refusal(event)

    def _refusal(self, event: ConsumerHeartbeat) -> ConsumerHeartbeatReply | None:
        members = self.hard_state.members
        if len(members) >= self.limits.max_size and event.member_id not in members:
            return _refused(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group already has {len(members)} members")
        if event.instance_id is not None:
            static = self.hard_state.static_member(event.instance_id)
            if event.epoch == 0:
                released = static is None or static.is_classic or static.current.epoch == LEFT_FOR_NOW
                return None if released else _unreleased(event, static)
            if static is None:
                return _refused(ErrorCode.UNKNOWN_MEMBER_ID, f"no member has the instance id {event.instance_id!r}")
            if static.member_id != event.member_id:
                return _fenced_instance(event, static)
            return _epoch_refusal(static, event)
        member = members.get(event.member_id)
        if member is not None:
            return _epoch_refusal(member, event)
        return None if event.epoch == 0 else self._unknown(event.member_id)

    def _regex_refusal(self, event: ConsumerHeartbeat) -> ConsumerHeartbeatReply | None:
        if event.regex and not self.hard_state.is_subscribed_with(event.regex):
            try:
                matcher(event.regex)
            except BadRegexError as problem:
                return _refused(ErrorCode.INVALID_REGULAR_EXPRESSION, str(problem))
        return None

    def _admit(self, event: ConsumerHeartbeat) -> Turns[ConsumerMember]:
        """Return the heartbeat's member; a new static member replaces the previous one."""
        if event.instance_id is not None and event.epoch == 0:
            replaced = self.hard_state.static_member(event.instance_id)
            if replaced is not None:
                return (yield from self._rebalancer.replace(replaced, event.member_id))
        return self.hard_state.members.get(event.member_id) or ConsumerMember.new(self.group_id, event.member_id)

    # ---- leaving ----

    def _on_leaving_heartbeat(self, event: ConsumerHeartbeat) -> Turns[ConsumerHeartbeatReply]:
        if event.instance_id is None:
            if event.member_id not in self.hard_state.members:
                return self._unknown(event.member_id)
        else:
            static = self.hard_state.static_member(event.instance_id)
            if static is None:
                return _refused(ErrorCode.UNKNOWN_MEMBER_ID, f"no member has the instance id {event.instance_id!r}")
            if static.member_id != event.member_id:
                return _fenced_instance(event, static)
            if event.epoch == LEFT_FOR_NOW:
                # It keeps its partitions until it returns or its session expires.
                at_epoch_0 = {topic: dict.fromkeys(numbers, 0) for topic, numbers in static.current.assigned.items()}
                yield from self._rebalancer.write(
                    replace(static.current, epoch=LEFT_FOR_NOW, assigned=at_epoch_0, pending_revocation={})
                )
                self._rebalancer.set_timer(ConsumerTimer.REBALANCE, static.member_id, None)
                return ConsumerHeartbeatReply(member_id=static.member_id, epoch=LEFT_FOR_NOW)
        yield from self._rebalancer.remove([event.member_id], f"{event.member_id} left")
        return ConsumerHeartbeatReply(member_id=event.member_id, epoch=event.epoch)

    def _on_leave(self, event: Leave) -> Turns[None]:
        """Remove classic members that leave, or members that an administrator removes."""
        found = [self._leaver(leaver) for leaver in event.leavers]
        leaving = list(dict.fromkeys(each for each in found if not isinstance(each, ErrorCode)))
        if leaving:
            yield from self._rebalancer.remove(leaving, f"{', '.join(leaving)} left")
        errors = (each if isinstance(each, ErrorCode) else ErrorCode.NONE for each in found)
        left = [Left(*leaver, error) for leaver, error in zip(event.leavers, errors, strict=True)]
        self._reply(event.token, LeaveReply(leavers=left))

    def _leaver(self, leaver: Leaver) -> str | ErrorCode:
        if leaver.instance_id is None:
            return leaver.member_id if leaver.member_id in self.hard_state.members else ErrorCode.UNKNOWN_MEMBER_ID
        static = self.hard_state.static_member(leaver.instance_id)
        if static is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return (
            static.member_id if leaver.member_id in (NO_MEMBER_ID, static.member_id) else ErrorCode.FENCED_INSTANCE_ID
        )

    def _on_delete(self, event: Delete) -> None:
        if self.is_dead:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif self.hard_state.members:
            error = ErrorCode.NON_EMPTY_GROUP
        else:
            error = ErrorCode.NONE
            self.is_dead = True
            self._rebalancer.effects.append(Append(GroupTombstone(group_id=self.group_id)))
        self._reply(event.token, DeleteReply(error=error))

    # ---- answers ----

    def _append_transition(self, before: ConsumerGroupState, epoch: int) -> None:
        if self.hard_state.epoch == epoch:
            reason = {
                ConsumerGroupState.STABLE: "every member has reached its target",
                ConsumerGroupState.RECONCILING: "there are new targets",
            }.get(self.state, "it was deleted")
        else:
            reason = self._rebalancer.reason
        self._rebalancer.effects.append(
            Transition(
                before=before.value,
                after=self.state.value,
                generation=self.hard_state.epoch,
                members=len(self.hard_state.members),
                reason=reason,
            )
        )

    def _reply(self, token: Token, body: ReplyBody) -> None:
        self._rebalancer.effects.append(Reply(token, body))

    def _unknown(self, member_id: str) -> ConsumerHeartbeatReply:
        return _refused(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id!r} is not a member of group {self.group_id!r}")


def _updated(before: MemberSubscription, event: ConsumerHeartbeat) -> MemberSubscription:
    timeout_ms = event.rebalance_timeout_ms
    return replace(
        before,
        instance_id=before.instance_id if event.instance_id is None else event.instance_id,
        rack=before.rack if event.rack is None else event.rack,
        rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms is None else timeout_ms,
        assignor=before.assignor if event.assignor is None else event.assignor,
        topics=before.topics if event.topics is None else frozenset(event.topics),
        regex=before.regex if event.regex is None else event.regex,
        client_id=event.client_id,
        client_host=event.client_host,
        classic=None,
    )


def _epoch_refusal(member: ConsumerMember, event: ConsumerHeartbeat) -> ConsumerHeartbeatReply | None:
    """Mirrors ``throwIfConsumerGroupMemberEpochIsInvalid``."""
    current = member.current
    if event.epoch == 0:
        return None
    # A member with its previous epoch and no partition outside its assignment has missed an answer.
    missed = event.epoch == current.previous_epoch and member.holds_all(event.owned)
    if event.epoch > current.epoch or (event.epoch < current.epoch and not missed):
        message = f"the member has epoch {event.epoch}, and the coordinator expects {current.epoch}"
    elif current.state is MemberState.UNKNOWN and event.owned != {}:
        message = "the member is in an unknown state"
    else:
        return None
    return _refused(ErrorCode.FENCED_MEMBER_EPOCH, f"{message}: it must abandon all its partitions and rejoin")


def _unreleased(event: ConsumerHeartbeat, owner: ConsumerMember | None) -> ConsumerHeartbeatReply:
    assert owner is not None
    message = f"the instance id {event.instance_id!r} is owned by member {owner.member_id!r}"
    return _refused(ErrorCode.UNRELEASED_INSTANCE_ID, message)


def _fenced_instance(event: ConsumerHeartbeat, owner: ConsumerMember) -> ConsumerHeartbeatReply:
    message = f"member {event.member_id!r} was fenced by {owner.member_id!r}, which has its instance id"
    return _refused(ErrorCode.FENCED_INSTANCE_ID, message)


def _refused(error: ErrorCode, message: str) -> ConsumerHeartbeatReply:
    return ConsumerHeartbeatReply(error=error, message=message)
