"""Classic members in a consumer group, so that consumers can be upgraded one by one (KIP-848).

Mirrors Kafka's ``classicGroup…ToConsumerGroup``. For such a member, each step of its reconciliation is a rebalance. Its
heartbeat gets REBALANCE_IN_PROGRESS when there is a step; it rejoins, gets its member epoch as the generation, and
syncs its assignment. It is never the leader, so it never assigns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from loadwise.coordinator.groups.consumer.member import ConsumerMember
from loadwise.coordinator.groups.consumer.rebalancer import ConsumerTimer, Rebalancer
from loadwise.coordinator.groups.consumer_records import ClassicMemberMetadata, MemberState
from loadwise.coordinator.groups.effects import HeartbeatReply, JoinReply, Reply, SyncReply
from loadwise.coordinator.groups.events import NO_MEMBER_ID, Heartbeat, Join, Sync
from loadwise.coordinator.groups.topic_view import TopicView, by_name
from loadwise.coordinator.turns import Turns
from loadwise.protocol.consumer import NEWEST_VERSION, PROTOCOL_TYPE, Assignment, Subscription
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.errors import MalformedBytesError
from loadwise.protocol.primitive import INT16


def join(group: Rebalancer, event: Join) -> Turns[None]:
    """Handle a join of a new member, or one for its next step."""
    member_id = event.member_id or event.fresh_member_id
    error = _join_error(group, event, member_id)
    if error is not ErrorCode.NONE:
        # Kafka fails the others with an exception, whose response has no member id.
        told = event.fresh_member_id if error is ErrorCode.MEMBER_ID_REQUIRED else NO_MEMBER_ID
        group.effects.append(Reply(event.token, JoinReply(error=error, member_id=told)))
        return
    subscription = Subscription.decode(event.protocols[0].metadata)
    static = None if event.instance_id is None else group.hard_state.static_member(event.instance_id)
    was_last_consumer = static is not None and not static.is_classic
    if static is not None and event.member_id == NO_MEMBER_ID:
        member = yield from group.replace(static, member_id)
    else:
        member = group.hard_state.members.get(member_id) or ConsumerMember.new(group.hard_state.group_id, member_id)
    subscribed = replace(
        member.subscription,
        instance_id=event.instance_id or member.subscription.instance_id,
        rack=subscription.rack or member.subscription.rack,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        topics=frozenset(subscription.topics),
        regex="",
        client_id=event.client_id,
        client_host=event.client_host,
        classic=ClassicMemberMetadata(session_timeout_ms=event.session_timeout_ms, protocols=tuple(event.protocols)),
    )
    changed = yield from group.subscribe(member, subscribed, event.may_describe)
    member = group.hard_state.members[member_id]
    downgrades = was_last_consumer and group.may_downgrade()
    if not downgrades:
        yield from group.update_targets()
    if not (downgrades and group.hard_state.target_epoch < group.hard_state.epoch):
        owned = _by_id(subscription.owned, group.topics)
        yield from group.reconcile(member, owned, subscription_changed=changed)
    group.set_timer(ConsumerTimer.JOIN, member_id, None)
    if downgrades:
        is_stale = group.hard_state.target_epoch < group.hard_state.epoch
        group.downgrade(f"{member_id} uses the classic protocol now", rebalance=is_stale)
    else:
        group.restart_session(member)
        group.set_timer(ConsumerTimer.SYNC, member_id, event.rebalance_timeout_ms)
    reply = JoinReply(
        member_id=member_id,
        generation=member.current.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=event.protocols[0].name,
    )
    group.effects.append(Reply(event.token, reply))


def sync(group: Rebalancer, event: Sync) -> None:
    """Return a member's assignment."""
    member, error = _member(group, event.member_id, event.instance_id)
    if member is not None and error is ErrorCode.NONE:
        error = _sync_error(group, member, event)
    if member is None or error is not ErrorCode.NONE:
        group.effects.append(Reply(event.token, SyncReply(error=error)))
        return
    group.set_timer(ConsumerTimer.SYNC, member.member_id, None)
    group.restart_session(member)
    reply = SyncReply(
        protocol_type=event.protocol_type,
        protocol_name=event.protocol_name,
        assignment=assignment_bytes(member, member.current.assigned, group.topics),
    )
    group.effects.append(Reply(event.token, reply))


def heartbeat(group: Rebalancer, event: Heartbeat) -> Turns[None]:
    """Keep a member alive, and report whether there is a step."""
    member, error = _member(group, event.member_id, event.instance_id)
    if member is not None and error is ErrorCode.NONE:
        if event.generation != member.current.epoch:
            error = ErrorCode.ILLEGAL_GENERATION
        else:
            group.restart_session(member)
            if all(each.is_classic for each in group.hard_state.members.values()):
                yield from group.update_targets()  # no other heartbeat does it
            if _has_a_step_to_take(group, member):
                error = ErrorCode.REBALANCE_IN_PROGRESS
                _expect_join(group, member)
    group.effects.append(Reply(event.token, HeartbeatReply(error=error)))


def assignment_bytes(member: ConsumerMember, partitions: Mapping[UUID, Iterable[int]], topics: TopicView) -> bytes:
    """Encode a classic member's partitions in the version of its own subscription."""
    classic = member.subscription.classic
    assert classic is not None
    data = Assignment(partitions=by_name(partitions, topics)).encode()
    version = min(*INT16.unpack_from(classic.protocols[0].metadata), NEWEST_VERSION)
    return INT16.pack(version) + data[INT16.size :]


def _join_error(group: Rebalancer, event: Join, member_id: str) -> ErrorCode:
    state, policy = group.hard_state, group.limits.migration_policy
    if not (policy.upgrades or policy.downgrades):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if len(state.members) >= group.limits.max_size and member_id not in state.members:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if event.protocol_type != PROTOCOL_TYPE or not state.supports_any(name for name, _ in event.protocols):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if event.member_id == NO_MEMBER_ID and event.instance_id is None and event.requires_member_id:
        return ErrorCode.MEMBER_ID_REQUIRED
    if event.member_id != NO_MEMBER_ID and event.instance_id is not None:
        static = state.static_member(event.instance_id)
        if static is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if static.member_id != event.member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    try:
        Subscription.decode(event.protocols[0].metadata)
    except MalformedBytesError:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka's answer: it throws IllegalStateException
    return ErrorCode.NONE


def _member(group: Rebalancer, member_id: str, instance_id: str | None) -> tuple[ConsumerMember | None, ErrorCode]:
    if instance_id is None:
        member = group.hard_state.members.get(member_id)
    else:
        member = group.hard_state.static_member(instance_id)
        if member is not None and member.member_id != member_id:
            return None, ErrorCode.FENCED_INSTANCE_ID
    if member is None or not member.is_classic:
        return None, ErrorCode.UNKNOWN_MEMBER_ID
    return member, ErrorCode.NONE


def _sync_error(group: Rebalancer, member: ConsumerMember, event: Sync) -> ErrorCode:
    classic = member.subscription.classic
    assert classic is not None
    if event.generation != member.current.epoch:
        return ErrorCode.ILLEGAL_GENERATION
    names = (PROTOCOL_TYPE, classic.protocols[0].name)
    for given, known in zip((event.protocol_type, event.protocol_name), names, strict=True):
        if given is not None and given != known:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    # A member with partitions to revoke has already rejoined for that; it learns later changes afterwards.
    if (
        group.hard_state.target_epoch > member.current.epoch
        and member.current.state is not MemberState.UNREVOKED_PARTITIONS
    ):
        _expect_join(group, member)
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _has_a_step_to_take(group: Rebalancer, member: ConsumerMember) -> bool:
    current, state = member.current, group.hard_state
    if current.epoch < state.target_epoch or current.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return current.state is MemberState.UNRELEASED_PARTITIONS and all(
        number in current.assigned.get(topic_id, ()) or state.holder(topic_id, number) is None
        for topic_id, numbers in state.target(member.member_id).items()
        for number in numbers
    )


def _expect_join(group: Rebalancer, member: ConsumerMember) -> None:
    if (ConsumerTimer.JOIN, member.member_id) not in group.deadlines:
        group.set_timer(ConsumerTimer.JOIN, member.member_id, member.subscription.rebalance_timeout_ms)


def _by_id(partitions: Mapping[str, Sequence[int]], topics: TopicView) -> dict[UUID, Sequence[int]]:
    found = ((topics.get(name), numbers) for name, numbers in partitions.items())
    return {topic.id: numbers for topic, numbers in found if topic is not None}
