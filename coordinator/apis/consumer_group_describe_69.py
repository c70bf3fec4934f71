"""ConsumerGroupDescribe (69, v0 to v1): describes consumer groups (KIP-848).

v1 whether a member uses the classic protocol (KIP-1099).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.groups.consumer.group import ConsumerGroup
from loadwise.coordinator.groups.consumer.member import ConsumerMember
from loadwise.coordinator.handling.group_descriptions import DESCRIBES_GROUPS, described_with_rights
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns, one_by_one
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

_Group = ConsumerGroupDescribeResponse.DescribedGroup
_Member = _Group.Member
_CLASSIC, _CONSUMER = 0, 1


def handle(call: Call[ConsumerGroupDescribeRequest], cluster: Cluster) -> Turns[ConsumerGroupDescribeResponse]:
    """Describe each group separately; a classic one is not found."""
    groups = yield from described_with_rights(
        call, cluster, _Group, kind="consumer", find=cluster.groups.consumer_group, describe=_describe, topics=_topics
    )
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(cluster: Cluster, group: ConsumerGroup) -> Turns[_Group]:
    state = group.hard_state
    members = yield from one_by_one(_member(cluster, group, member) for member in list(state.members.values()))
    return _Group(
        error_code=ErrorCode.NONE,
        error_message=None,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=state.epoch,
        assignment_epoch=state.target_epoch,
        assignor_name=group.assignor.name,
        members=members,
    )


def _member(cluster: Cluster, group: ConsumerGroup, member: ConsumerMember) -> Turns[_Member]:
    subscription, current, target = member.subscription, member.current, group.hard_state.target(member.member_id)
    assignment = yield from _assignment(cluster, member.held())
    target_assignment = yield from _assignment(cluster, target)
    return _Member(
        member_id=member.member_id,
        instance_id=subscription.instance_id,
        rack_id=subscription.rack,
        member_epoch=current.epoch,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=sorted(subscription.topics),
        subscribed_topic_regex=subscription.regex,
        assignment=assignment,
        target_assignment=target_assignment,
        member_type=_CONSUMER if subscription.classic is None else _CLASSIC,
    )


def _assignment(cluster: Cluster, partitions: Mapping[UUID, Iterable[int]]) -> Turns[_Member.Assignment]:
    row = _Member.Assignment.TopicPartitions
    rows = []
    for topic_id, numbers in partitions.items():
        topic = cluster.topics.get_by_id(topic_id)
        if topic is not None:
            rows.append(row(topic_id=topic_id, topic_name=topic.name, partitions=sorted(numbers)))
        yield
    return _Member.Assignment(topic_partitions=rows)


def _topics(group: _Group) -> Iterable[str]:
    for member in group.members:
        for each in (*member.assignment.topic_partitions, *member.target_assignment.topic_partitions):
            yield each.topic_name


guard = DESCRIBES_GROUPS
