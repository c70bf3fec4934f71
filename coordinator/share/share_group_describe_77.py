"""ShareGroupDescribe (77, v1): share groups with epochs, members and assignments (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.handling.group_descriptions import DESCRIBES_GROUPS, described_with_rights
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.share.feature import ShareGroups
from loadwise.coordinator.share.group import ShareGroup
from loadwise.coordinator.share.state import ShareMember
from loadwise.coordinator.turns import Turns, one_by_one
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ShareGroupDescribeRequest, ShareGroupDescribeResponse

_Group = ShareGroupDescribeResponse.DescribedGroup
_Member = _Group.Member


def handle(call: Call[ShareGroupDescribeRequest], cluster: Cluster) -> Turns[ShareGroupDescribeResponse]:
    """Describe each group separately; one of another kind is not found."""
    find = ShareGroups.of(cluster).shares.group
    groups = yield from described_with_rights(
        call, cluster, _Group, kind="share", find=find, describe=_describe, topics=_topics
    )
    return ShareGroupDescribeResponse(groups=groups)


def _describe(cluster: Cluster, group: ShareGroup) -> Turns[_Group]:
    members = yield from one_by_one(_member(cluster, member) for member in list(group.members.values()))
    return _Group(
        error_code=ErrorCode.NONE,
        error_message=None,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.generation,
        assignment_epoch=group.hard_state.target.epoch,
        assignor_name=group.protocol_name,
        members=members,
    )


def _member(cluster: Cluster, member: ShareMember) -> Turns[_Member]:
    subscription, row = member.metadata, _Member.Assignment.TopicPartitions
    topics = []
    for topic_id, numbers in member.current.partitions.items():
        topic = cluster.topics.get_by_id(topic_id)
        if topic is not None:
            topics.append(row(topic_id=topic.id, topic_name=topic.name, partitions=sorted(numbers)))
        yield
    topics.sort(key=lambda each: each.topic_name)
    return _Member(
        member_id=member.member_id,
        rack_id=subscription.rack,
        member_epoch=member.current.epoch,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=sorted(subscription.topics),
        assignment=_Member.Assignment(topic_partitions=topics),
    )


def _topics(group: _Group) -> Iterable[str]:
    return (each.topic_name for member in group.members for each in member.assignment.topic_partitions)


guard = DESCRIBES_GROUPS
