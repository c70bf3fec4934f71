"""ConsumerGroupDescribe (69, v0 to v1): describes consumer groups (KIP-848).

v1 whether a member uses the classic protocol (KIP-1099).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from loadwise.coordinator.apis.group_descriptions import DESCRIBES_GROUPS, described_with_rights
from loadwise.coordinator.calls import Call
from loadwise.coordinator.groups.consumer.group import ConsumerGroup
from loadwise.coordinator.groups.consumer.member import ConsumerMember
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns
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


def _describe(cluster: Cluster, group: ConsumerGroup) -> _Group:
    state = group.hard_state
    return _Group(
        error_code=ErrorCode.NONE,
        error_message=None,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=state.epoch,
        assignment_epoch=state.target_epoch,
        assignor_name=group.assignor.name,
        members=[_member(cluster, group, member) for member in state.members.values()],
    )


def _member(cluster: Cluster, group: ConsumerGroup, member: ConsumerMember) -> _Member:
    subscription = member.subscription
    return _Member(
        member_id=member.member_id,
        instance_id=subscription.instance_id,
        rack_id=subscription.rack,
        member_epoch=member.current.epoch,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=sorted(subscription.topics),
        subscribed_topic_regex=subscription.regex,
        assignment=_assignment(cluster, member.held()),
        target_assignment=_assignment(cluster, group.hard_state.target(member.member_id)),
        member_type=_CLASSIC if member.is_classic else _CONSUMER,
    )


def _assignment(cluster: Cluster, partitions: Mapping[UUID, Iterable[int]]) -> _Member.Assignment:
    row = _Member.Assignment.TopicPartitions
    rows = []
    for topic_id, numbers in partitions.items():
        topic = cluster.topics.get_by_id(topic_id)
        if topic is not None:
            rows.append(row(topic_id=topic_id, topic_name=topic.name, partitions=sorted(numbers)))
    return _Member.Assignment(topic_partitions=rows)


def _topics(group: _Group) -> Iterable[str]:
    for member in group.members:
        for each in (*member.assignment.topic_partitions, *member.target_assignment.topic_partitions):
            yield each.topic_name


guard = DESCRIBES_GROUPS
