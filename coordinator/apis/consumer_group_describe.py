"""ConsumerGroupDescribe (69): consumer groups with epochs, members, assignments and targets (KIP-848).

v1 whether a member speaks the classic protocol (KIP-1099).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from loadwise.coordinator.apis.group_descriptions import described
from loadwise.coordinator.calls import Call, Message, Service
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
    return call.response(throttle_time_ms=0, groups=groups)


def _repeated(group_id: str) -> Message:
    return _Group(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=f"Group {group_id} is named too often in one request.",
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
    fields = {"group_id": group_id, "authorized_operations": _NOT_ASKED}
    if group is not None and cluster.coordinates(call, group_id):
        state = group.hard_state
        return _Group(
            error_code=ErrorCode.NONE,
            error_message=None,
            group_state=group.state.value,
            group_epoch=state.epoch,
            assignment_epoch=state.target_epoch,
            assignor_name=group.assignor.name,
            members=[_member(cluster, group, member) for member in state.members.values()],
            **fields,
        )
    if not group_id:
        error, message = ErrorCode.INVALID_GROUP_ID, None
    elif not cluster.coordinates(call, group_id):
        error, message = ErrorCode.NOT_COORDINATOR, None
    elif cluster.groups.get(group_id) is None:
        error, message = ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found."
    else:
        error, message = ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group."
    return _Group(
        error_code=error,
        error_message=message,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
        **fields,
    )


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


SERVICE = Service(Api.of(ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse), handle)
