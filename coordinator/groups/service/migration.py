"""Converts a group to another protocol with the same members and partitions (KIP-848).

A KIP-848 consumer that joins a classic group upgrades it; the last one that leaves downgrades it. Mirrors Kafka's
``ConsumerGroup.fromClassicGroup`` and ``ClassicGroup.fromConsumerGroup``.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from loadwise.coordinator.errors import CannotConvertError
from loadwise.coordinator.groups.classic.group import ClassicGroup
from loadwise.coordinator.groups.classic.member import ClassicMember
from loadwise.coordinator.groups.consumer.classic_members import assignment_bytes
from loadwise.coordinator.groups.consumer.group import ConsumerGroup
from loadwise.coordinator.groups.consumer.member import ConsumerMember
from loadwise.coordinator.groups.consumer.state import ConsumerState
from loadwise.coordinator.groups.consumer_records import (
    ClassicMemberMetadata,
    ConsumerRecord,
    GroupEpoch,
    MemberAssignment,
    MemberSubscription,
    MemberTarget,
    TargetEpoch,
)
from loadwise.coordinator.groups.effects import Downgrade, Transition
from loadwise.coordinator.groups.group import Group
from loadwise.coordinator.groups.service.store import GroupStore
from loadwise.coordinator.groups.topic_view import TopicView
from loadwise.coordinator.turns import whole
from loadwise.protocol.consumer import PROTOCOL_TYPE, Assignment, Subscription
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.errors import MalformedBytesError


def check_upgrade(store: GroupStore, group_id: str) -> None:
    """Check that a group may be upgraded, if it must be. Raises `CannotConvertError`."""
    group, limits = store.classic_group(group_id), store.consumer_limits
    if group is None or not group.members:
        return
    refusal = None
    if not limits.migration_policy.upgrades:
        refusal = "online upgrade is disabled"
    elif group.protocol_type != PROTOCOL_TYPE:
        refusal = f"its protocol type is {group.protocol_type!r}"
    elif len(group.members) > limits.max_size:
        refusal = f"it has more than {limits.max_size} members"
    if refusal is not None:
        raise CannotConvertError(f"cannot upgrade classic group {group_id!r}: {refusal}")


def consumer_group(store: GroupStore, group_id: str, now_ms: int) -> ConsumerGroup:
    """Return the consumer group that replaces the group of this id; it is not added yet.

    It has the members of a classic group. Raises `CannotConvertError` if they cannot be converted.
    """
    classic = store.classic_group(group_id)
    records: list[ConsumerRecord] = []
    if classic is not None and classic.members:
        records = _upgrade_records(classic, store.topics)
    return store.new_consumer_group(group_id, records, now_ms)


def replace(store: GroupStore, before: Group | None, after: ConsumerGroup) -> None:
    """Replace a group by a consumer group."""
    if before is not None:
        store.remove(before)
    store.add(after)


def classic_group(store: GroupStore, group_id: str, effect: Downgrade, now_ms: int) -> tuple[ClassicGroup, Transition]:
    """Replace a consumer group with only classic members by a classic group."""
    before = store.consumer_group(group_id)
    assert before is not None, "only a consumer group can be downgraded"
    members = [_classic_member(before, member, store.topics) for member in before.members.values()]
    classic = ClassicGroup.of_members(group_id, before.generation, members, now_ms, store.limits)
    state = before.state.value
    store.remove(before)
    store.add(classic)
    turned = Transition(
        before=state,
        after=classic.state.value,
        generation=classic.generation,
        members=len(classic.members),
        reason=f"converted to the classic protocol: {effect.reason}",
    )
    return classic, turned


def _upgrade_records(group: ClassicGroup, topics: TopicView) -> list[ConsumerRecord]:
    group_id = group.group_id
    name = group.protocol_name
    if name is None or not all(member.offers(name) for member in group.members.values()):
        # Kafka answers this, because it assumes that all members support the chosen protocol.
        problem = f"not all of its members support the last chosen protocol, {name!r}"
        raise CannotConvertError(
            f"cannot upgrade classic group {group_id!r}: {problem}", ErrorCode.UNKNOWN_SERVER_ERROR
        )
    try:
        records = [record for member in group.members.values() for record in _member_records(group, member, topics)]
    except MalformedBytesError as problem:
        raise CannotConvertError(f"cannot upgrade classic group {group_id!r}: {problem}") from problem
    state = ConsumerState(group_id)
    for record in records:
        whole(state.apply(record))
    fingerprint = whole(state.fingerprint(topics))
    records.append(GroupEpoch(group_id=group_id, epoch=group.generation, metadata_hash=fingerprint))
    records.append(TargetEpoch(group_id=group_id, epoch=group.generation))
    return records


def _member_records(group: ClassicGroup, member: ClassicMember, topics: TopicView) -> Iterator[ConsumerRecord]:
    group_id, member_id = group.group_id, member.member_id
    subscription = Subscription.decode(member.metadata(group.protocol_name or ""))
    assignment = Assignment.decode(member.assignment)
    if assignment.user_data:
        raise CannotConvertError(f"cannot upgrade classic group {group_id!r}: its assignor's user data would be lost")
    numbers: dict[UUID, frozenset[int]] = {}
    for topic_name, partitions in assignment.partitions.items():
        topic = topics.get(topic_name)
        if topic is not None and len(partitions):
            numbers[topic.id] = frozenset(map(int, partitions))
    yield MemberSubscription(
        group_id=group_id,
        member_id=member_id,
        instance_id=member.instance_id,
        rack=subscription.rack or None,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMemberMetadata(session_timeout_ms=member.session_timeout_ms, protocols=tuple(member.protocols)),
    )
    yield MemberTarget(group_id=group_id, member_id=member_id, partitions=numbers)
    yield MemberAssignment(
        group_id=group_id,
        member_id=member_id,
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned={topic_id: dict.fromkeys(each, group.generation) for topic_id, each in numbers.items()},
    )


def _classic_member(group: ConsumerGroup, member: ConsumerMember, topics: TopicView) -> ClassicMember:
    subscription = member.subscription
    assert subscription.classic is not None
    return ClassicMember(
        member_id=member.member_id,
        instance_id=subscription.instance_id,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        session_timeout_ms=subscription.classic.session_timeout_ms,
        rebalance_timeout_ms=subscription.rebalance_timeout_ms,
        protocols=subscription.classic.protocols,
        assignment=assignment_bytes(member, group.hard_state.target(member.member_id), topics),
    )
