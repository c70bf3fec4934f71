"""What there is to see of groups: state, members, who reads what, lag, and how they came there.

One description for every kind of group; plain values only, so that JSON and the page show the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from loadwise.coordinator.cluster.topics import Topics
from loadwise.coordinator.groups.consumer.group import ConsumerGroup
from loadwise.coordinator.groups.offsets import Partition
from loadwise.coordinator.groups.service.groups import Group, Groups
from loadwise.protocol.consumer import PROTOCOL_TYPE, Assignment
from loadwise.protocol.errors import MalformedBytesError


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """One member."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: Mapping[str, Sequence[int]] | None
    """Partitions by topic; None where the bytes are no assignment of Kafka's consumer protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition that the group has committed, or that a member owns."""

    topic: str
    partition: int
    member_id: str | None
    """Its owner; None if it has none."""
    committed: int | None
    """The next offset that the group reads; None if it has committed none."""
    end: int | None
    """The offset that the next record gets; None if there is no such partition (any more)."""
    lag: int | None
    """Records that the group has before it; None where the two above do not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentView:
    """One transition of the group."""

    at_ms: int
    """By the coordinator's clock."""
    before: str
    after: str
    generation: int
    members: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """What each kind of group says of itself."""

    type: str
    """``classic`` or ``consumer`` (KIP-848), as ListGroups says."""
    state: str
    """As ListGroups says."""
    generation: int
    """The generation of a classic group, the epoch of a consumer group."""
    protocol: str | None
    """The assignment protocol or the server's assignor; None if none is chosen."""
    leader: str | None
    """The leader's member id; None where there is none."""
    members: Sequence[MemberView]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """All there is to see of a group."""

    group_id: str
    type: str
    state: str
    generation: int
    protocol: str | None
    leader: str | None
    members: Sequence[MemberView]
    partitions: Sequence[PartitionView]
    lag: int
    """Lag of all partitions together, as far as it is known."""
    history: Sequence[MomentView]
    """The newest transitions, oldest first."""


def view_groups(groups: Groups, topics: Topics) -> list[GroupView]:
    """All groups, by id."""
    return [view_group(groups, topics, group_id) for group_id in sorted(groups.all())]


def view_group(groups: Groups, topics: Topics, group_id: str) -> GroupView:
    """One group that is there."""
    description = describe(groups.all()[group_id], topics)
    partitions = list(_partitions(description.members, groups, topics, group_id))
    history = [
        MomentView(
            at_ms=moment.at_ms,
            before=moment.transition.before,
            after=moment.transition.after,
            generation=moment.transition.generation,
            members=moment.transition.members,
            reason=moment.transition.reason,
        )
        for moment in groups.history.of(group_id)
    ]
    return GroupView(
        group_id=group_id,
        type=description.type,
        state=description.state,
        generation=description.generation,
        protocol=description.protocol,
        leader=description.leader,
        members=description.members,
        partitions=partitions,
        lag=sum(each.lag for each in partitions if each.lag is not None),
        history=history,
    )


def describe(group: Group, topics: Topics) -> GroupDescription:
    """A group of either protocol in the common form."""
    if isinstance(group, ConsumerGroup):
        return GroupDescription(
            type=group.TYPE,
            state=group.state.value,
            generation=group.generation,
            protocol=group.assignor.name,
            leader=None,
            members=[
                MemberView(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.subscription.client_id,
                    client_host=member.subscription.client_host,
                    assignment=_by_name(member.held(), topics),
                )
                for member in group.members.values()
            ],
        )
    return GroupDescription(
        type=group.TYPE,
        state=group.state.value,
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader,
        members=[
            MemberView(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                assignment=_assignment(group.protocol_type, member.assignment),
            )
            for member in group.members.values()
        ],
    )


def _by_name(partitions: Mapping[UUID, Iterable[int]], topics: Topics) -> dict[str, list[int]]:
    named = {}
    for topic_id, numbers in partitions.items():
        topic = topics.get_by_id(topic_id)
        if topic is not None:
            named[topic.name] = sorted(numbers)
    return named


def _assignment(protocol_type: str | None, data: bytes) -> Mapping[str, Sequence[int]] | None:

    if protocol_type != PROTOCOL_TYPE:
        return None
    try:
        return Assignment.decode(data).partitions
    except MalformedBytesError:
        return None  # other people's bytes: the view says that it cannot read them


def _partitions(
    members: Sequence[MemberView], groups: Groups, topics: Topics, group_id: str
) -> Iterator[PartitionView]:
    committed = groups.offsets.of(group_id)
    owners = {
        Partition(topic, number): member.member_id
        for member in members
        for topic, numbers in (member.assignment or {}).items()
        for number in numbers
    }
    for partition in sorted({*committed, *owners}):
        log = topics.log(partition.topic, partition.number)
        offset = committed[partition].offset if partition in committed else None
        end = None if log is None else log.end_offset
        yield PartitionView(
            topic=partition.topic,
            partition=partition.number,
            member_id=owners.get(partition),
            committed=offset,
            end=end,
            lag=None if offset is None or end is None else max(end - offset, 0),
        )
