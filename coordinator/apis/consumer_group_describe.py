"""ConsumerGroupDescribe (69): consumer groups with epochs, members, assignments and targets (KIP-848).

v1 whether a member speaks the classic protocol (KIP-1099).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from loadwise.coordinator.apis.access import Access, after, allowed, bits, item_by_item, names
from loadwise.coordinator.apis.group_descriptions import described
from loadwise.coordinator.authorization.acls import Operation, ResourceType
from loadwise.coordinator.calls import Call, Handler, Message, Outcome, Service
from loadwise.coordinator.groups.consumer.group import ConsumerGroup
from loadwise.coordinator.groups.consumer.member import ConsumerMember
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api

_Group = ConsumerGroupDescribeResponse.DescribedGroup
_Member = _Group.Member
_CLASSIC, _CONSUMER = 0, 1
_NOT_ASKED = -(2**31)


def handle(call: Call, cluster: Cluster) -> Message:
    """Describe each group by itself; one of the classic protocol is not found.

    What is named again and again is refused where it would be more than all members that there can be.
    """
    groups = described(
        call.body.group_ids,
        lambda group_id: _describe(call, cluster, group_id),
        _repeated,
        max_members=cluster.settings.groups.max_members,
    )
    if call.body.include_authorized_operations:
        access = Access(call, cluster)
        for group in groups:
            if group.error_code is ErrorCode.NONE:
                group.authorized_operations = bits(access.operations(ResourceType.GROUP, group.group_id))
    return call.response(throttle_time_ms=0, groups=groups)


def _repeated(group_id: str) -> Message:
    return _refused(group_id, ErrorCode.INVALID_REQUEST, f"Group {group_id} is named too often in one request.")


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


def _describe(call: Call, cluster: Cluster, group_id: str) -> Message:
    group = cluster.groups.consumer(group_id)
    if group is not None and cluster.coordinates(call, group_id):
        state = group.hard_state
        return _Group(
            error_code=ErrorCode.NONE,
            error_message=None,
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=state.epoch,
            assignment_epoch=state.target_epoch,
            assignor_name=group.assignor.name,
            members=[_member(cluster, group, member) for member in state.members.values()],
            authorized_operations=_NOT_ASKED,
        )
    if not group_id:
        return _refused(group_id, ErrorCode.INVALID_GROUP_ID, None)
    if not cluster.coordinates(call, group_id):
        return _refused(group_id, ErrorCode.NOT_COORDINATOR, None)
    if cluster.groups.get(group_id) is None:
        return _refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return _refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def _member(cluster: Cluster, group: ConsumerGroup, member: ConsumerMember) -> Message:
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


def _assignment(cluster: Cluster, partitions: Mapping[UUID, Iterable[int]]) -> Message:
    row = _Member.Assignment.TopicPartitions
    rows = []
    for topic_id, numbers in partitions.items():
        topic = cluster.topics.get_by_id(topic_id)
        if topic is not None:
            rows.append(row(topic_id=topic_id, topic_name=topic.name, partitions=sorted(numbers)))
    return _Member.Assignment(topic_partitions=rows)


def _guard(call: Call, cluster: Cluster, handle: Handler) -> Outcome:
    """Describe no group either that reads a topic which the client may not describe."""
    access = Access(call, cluster)

    def checked(response: Message) -> Message:
        for index, group in enumerate(response.groups):
            topics = {
                each.topic_name
                for member in group.members
                for assignment in (member.assignment, member.target_assignment)
                for each in assignment.topic_partitions
            }
            if any(allowed(access, Operation.DESCRIBE, ResourceType.TOPIC, name) for name in topics):
                message = "The group has described topic(s) that the client is not authorized to describe."
                response.groups[index] = _refused(group.group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)
        return response

    is_described = names(Operation.DESCRIBE, ResourceType.GROUP)
    return item_by_item(is_described, call, cluster, lambda rest, _: after(rest, handle(rest, cluster), checked))


SERVICE = Service(Api.of(ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse), handle, _guard)
