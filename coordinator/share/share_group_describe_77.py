"""ShareGroupDescribe (77, v1): share groups with epochs, members and assignments (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable

from loadwise.coordinator.apis.group_descriptions import DESCRIBES_GROUPS, described_with_rights
from loadwise.coordinator.calls import Call
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.share.feature import ShareGroups
from loadwise.coordinator.share.group import ShareGroup
from loadwise.coordinator.share.state import ShareMember
from loadwise.coordinator.turns import Turns
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


def _describe(cluster: Cluster, group: ShareGroup) -> _Group:
    return _Group(
        error_code=ErrorCode.NONE,
        error_message=None,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.generation,
        assignment_epoch=group.hard_state.target.epoch,
        assignor_name=group.protocol_name,
        members=[_member(group, cluster, member) for member in group.members.values()],
    )


def _member(group: ShareGroup, cluster: Cluster, member: ShareMember) -> _Member:
    subscription = member.metadata
    topics = []
    for name, numbers in sorted(group.assignment(member.member_id).items()):
        topic = cluster.topics.get(name)
        assert topic is not None, "only existing topics have a name"
        topics.append(_Member.Assignment.TopicPartitions(topic_id=topic.id, topic_name=name, partitions=numbers))
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
