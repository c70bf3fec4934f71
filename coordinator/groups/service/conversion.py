"""A group goes on under the other protocol, with the same members and partitions (KIP-848's migration).

Upward when a consumer of KIP-848 joins a classic group, downward when the last one leaves. Mirrors Kafka's
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
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits
from loadwise.coordinator.groups.consumer.member import ConsumerMember
from loadwise.coordinator.groups.consumer.state import ConsumerState
from loadwise.coordinator.groups.consumer_records import (
    ClassicSide,
    ConsumerRecord,
    GroupEpoch,
    MemberAssignment,
    MemberSubscription,
    MemberTarget,
    TargetEpoch,
)
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.topic_view import TopicView
from loadwise.protocol.consumer import PROTOCOL_TYPE, Assignment, Subscription
from loadwise.protocol.errors import MalformedBytesError


def upgrade_records(group: ClassicGroup, topics: TopicView, limits: ConsumerGroupLimits) -> list[ConsumerRecord]:
    """The records of a consumer group with a classic group's members. Raises `CannotConvertError`."""
    group_id = group.group_id
    refusal = None
    if not limits.migration_policy.upgrades:
        refusal = "online upgrade is disabled"
    elif group.protocol_type != PROTOCOL_TYPE:
        refusal = f"its protocol type is {group.protocol_type!r}"
    elif len(group.members) > limits.max_size:
        refusal = f"it has more than {limits.max_size} members"
    if refusal is not None:
        raise CannotConvertError(f"cannot upgrade classic group {group_id!r}: {refusal}")
    try:
        records = [record for member in group.members.values() for record in _member_records(group, member, topics)]
    except MalformedBytesError as problem:
        raise CannotConvertError(f"cannot upgrade classic group {group_id!r}: {problem}") from problem
    state = ConsumerState(group_id)
    for record in records:
        state.apply(record)
    fingerprint = state.fingerprint(topics)
    records.append(GroupEpoch(group_id=group_id, epoch=group.generation, metadata_hash=fingerprint))
    records.append(TargetEpoch(group_id=group_id, epoch=group.generation))
    return records


def downgraded(group: ConsumerGroup, topics: TopicView, limits: GroupLimits, now_ms: int) -> ClassicGroup:
    """A stable classic group with a consumer group's members, all of which speak the classic protocol."""
    members = [_classic_member(group, member, topics) for member in group.members.values()]
    return ClassicGroup.of_members(group.group_id, group.generation, members, now_ms, limits)


def _member_records(group: ClassicGroup, member: ClassicMember, topics: TopicView) -> Iterator[ConsumerRecord]:
    group_id, member_id = group.group_id, member.member_id
    name = group.protocol_name or member.protocols[0].name
    subscription = Subscription.decode(member.metadata(name))
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
        classic=ClassicSide(session_timeout_ms=member.session_timeout_ms, protocols=tuple(member.protocols)),
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
    said = member.subscription
    assert said.classic is not None
    return ClassicMember(
        member_id=member.member_id,
        instance_id=said.instance_id,
        client_id=said.client_id,
        client_host=said.client_host,
        session_timeout_ms=said.classic.session_timeout_ms,
        rebalance_timeout_ms=said.rebalance_timeout_ms,
        protocols=said.classic.protocols,
        assignment=assignment_bytes(member, group.kept.target(member.member_id), topics),
    )
