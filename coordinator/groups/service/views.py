"""Views of groups: state, members, assignments, lag and history.

All kinds of groups share one description of plain values, so that JSON and the page show the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from loadwise.coordinator.cluster.topics import Topics
from loadwise.coordinator.groups.effects import Transition
from loadwise.coordinator.groups.group import Group, GroupMember
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.groups.service.groups import Groups


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """One member."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: Mapping[str, Sequence[int]] | None
    """Partitions by topic; None if the bytes are not Kafka's consumer protocol."""


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
    """The offset of the next record; None if the partition does not exist."""
    lag: int | None
    """Records that the group has not read; None if one of the two above is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentView(Transition):
    """One transition of the group."""

    at_ms: int
    """By the coordinator's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """The complete view of a group."""

    group_id: str
    type: str
    """Its type in ListGroups: ``classic``, ``consumer`` (KIP-848), ``share`` or ``streams``."""
    state: str
    """Its state in ListGroups."""
    generation: int
    """The generation of a classic group, the epoch of a consumer group."""
    protocol: str | None
    """The assignment protocol or the server's assignor; None if none is chosen."""
    leader: str | None
    """The leader's member id, or None."""
    members: Sequence[MemberView]
    partitions: Sequence[PartitionView]
    lag: int
    """Known lag of all partitions together."""
    history: Sequence[MomentView]
    """The newest transitions, oldest first."""


def view_groups(groups: Groups, topics: Topics) -> list[GroupView]:
    """Return views of all groups, sorted by id."""
    return [view_group(groups, topics, group_id) for group_id in sorted(groups.all())]


def view_group(groups: Groups, topics: Topics, group_id: str) -> GroupView:
    """Return the view of an existing group."""
    group = groups.all()[group_id]
    members = [_member(group, member) for member in group.members.values()]
    partitions = list(_partitions(members, groups, topics, group_id))
    history = [MomentView(at_ms=each.at_ms, **asdict(each.transition)) for each in groups.history.of(group_id)]
    return GroupView(
        group_id=group_id,
        type=group.type,
        state=group.state.value,
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader,
        members=members,
        partitions=partitions,
        lag=sum(each.lag for each in partitions if each.lag is not None),
        history=history,
    )


def _member(group: Group, member: GroupMember) -> MemberView:
    return MemberView(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        assignment=group.assignment(member.member_id),
    )


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
