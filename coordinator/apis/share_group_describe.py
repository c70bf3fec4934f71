"""ShareGroupDescribe (77): share groups with epochs, members and assignments (KIP-932)."""

from __future__ import annotations

from loadwise.coordinator.apis.access import Access, after, allowed, bits, item_by_item, names
from loadwise.coordinator.apis.group_descriptions import described
from loadwise.coordinator.authorization.acls import Operation, ResourceType
from loadwise.coordinator.calls import Call, Handler, Message, Outcome, Service
from loadwise.coordinator.groups.share.group import ShareGroup
from loadwise.coordinator.groups.share.state import ShareMember
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api
from loadwise.protocol.share_group import ShareGroupDescribeRequest, ShareGroupDescribeResponse

_Group = ShareGroupDescribeResponse.DescribedGroup
_Member = _Group.Member
_NOT_ASKED = -(2**31)


def handle(call: Call, cluster: Cluster) -> Message:
    """Describe each group by itself; one of another kind is not found.

    What is named again and again is refused where it would be more than all members that there can be.
    """
    groups = described(
        call.body.group_ids,
        lambda group_id: _describe(call, cluster, group_id),
        lambda group_id: _refused(
            group_id, ErrorCode.INVALID_REQUEST, f"Group {group_id} is named too often in one request."
        ),
        max_members=cluster.settings.groups.max_members,
    )
    if call.body.include_authorized_operations:
        access = Access(call, cluster)
        for group in groups:
            if group.error_code is ErrorCode.NONE:
                group.authorized_operations = bits(access.operations(ResourceType.GROUP, group.group_id))
    return call.response(throttle_time_ms=0, groups=groups)


def _describe(call: Call, cluster: Cluster, group_id: str) -> Message:
    if not group_id:
        return _refused(group_id, ErrorCode.INVALID_GROUP_ID, None)
    if not cluster.coordinates(call, group_id):
        return _refused(group_id, ErrorCode.NOT_COORDINATOR, None)
    group = cluster.groups.share(group_id)
    if group is None:
        is_there = cluster.groups.get(group_id) is not None
        message = f"Group {group_id} is not a share group." if is_there else f"Group {group_id} not found."
        return _refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, message)
    return _Group(
        error_code=ErrorCode.NONE,
        error_message=None,
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.generation,
        assignment_epoch=group.hard_state.target.epoch,
        assignor_name=group.protocol_name,
        members=[_member(group, cluster, member) for member in group.members.values()],
        authorized_operations=_NOT_ASKED,
    )


def _refused(group_id: str, error: ErrorCode, message: str | None) -> Message:
    return _Group(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
        authorized_operations=_NOT_ASKED,
    )


def _member(group: ShareGroup, cluster: Cluster, member: ShareMember) -> Message:
    subscription = member.subscription
    topics = []
    for name, numbers in sorted(group.assignment(member.member_id).items()):
        topic = cluster.topics.get(name)
        assert topic is not None, "only topics that there are have a name"
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


def _guard(call: Call, cluster: Cluster, handle: Handler) -> Outcome:
    """Describe no group either that reads a topic which the client may not describe."""
    access = Access(call, cluster)

    def checked(response: Message) -> Message:
        for index, group in enumerate(response.groups):
            topics = {each.topic_name for member in group.members for each in member.assignment.topic_partitions}
            if any(allowed(access, Operation.DESCRIBE, ResourceType.TOPIC, name) for name in topics):
                message = "The group has described topic(s) that the client is not authorized to describe."
                response.groups[index] = _refused(group.group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)
        return response

    is_described = names(Operation.DESCRIBE, ResourceType.GROUP)
    return item_by_item(is_described, call, cluster, lambda rest, _: after(rest, handle(rest, cluster), checked))


SERVICE = Service(Api.of(ShareGroupDescribeRequest, ShareGroupDescribeResponse), handle, _guard)
