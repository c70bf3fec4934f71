"""Computes a consumer group's targets with an assignor. Mirrors ``TargetAssignmentBuilder``.

The only module of the coordinator that needs the assignors, and so numpy. It is imported for the first target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.model import RECORDS_PER_S, GroupSnapshot, Member
from loadwise.assignor.steered import SteeredMember, steered
from loadwise.coordinator.groups.consumer.assignors import ServerAssignor
from loadwise.coordinator.groups.consumer.load_watch import LoadWatch
from loadwise.coordinator.groups.consumer.member import ConsumerMember
from loadwise.coordinator.groups.consumer_records import Partitions
from loadwise.coordinator.groups.topic_view import TopicView
from loadwise.coordinator.turns import Turns


def snapshot(
    members: Iterable[tuple[ConsumerMember, frozenset[str], Partitions]],
    topics: TopicView,
    assignor: ServerAssignor,
    load: LoadWatch | None,
    now_ms: int,
) -> Turns[GroupSnapshot]:
    """Return the group as its assignor gets it, with members' topics and previous targets.

    ``load`` is None for an assignor that does not use it. O(partitions + members).
    """
    partitions: dict[str, int] = {}
    ordered: dict[frozenset[str], tuple[str, ...]] = {}  # one tuple per subscription, so that it is hashed once
    rows = []
    for member, wanted, target in members:
        names = ordered.get(wanted)
        if names is None:
            names = ordered[wanted] = tuple(sorted(wanted))
            for name in names:
                topic = topics.get(name)
                if topic is not None:
                    partitions[name] = len(topic.partitions)
                yield
        owned = {}
        for topic_id, numbers in target.items():
            topic = topics.get_by_id(topic_id)
            if topic is not None:
                owned[topic.name] = tuple(numbers)
            yield
        rows.append(
            Member(
                id=member.member_id,
                topics=names,
                owned=owned,
                instance_id=member.subscription.instance_id,
                rack=member.subscription.rack if assignor.uses_racks else None,
            )
        )
    racks: dict[str, Sequence[Sequence[str]]] = {}
    if assignor.uses_racks and any(member.rack for member in rows):
        found = ((name, topics.racks(name)) for name in partitions)
        racks = {name: known for name, known in found if known is not None}
    yield len(partitions)
    if load is None:
        return GroupSnapshot.of(rows, partitions, racks=racks)
    equipped = load.with_capacities(rows, now_ms)
    group = GroupSnapshot.of(equipped, partitions, load=load.demand(), load_unit=RECORDS_PER_S, racks=racks)
    return replace(group, even_up_to=load.even_up_to(now_ms))


def targets(group: GroupSnapshot, topics: TopicView, assignor: ServerAssignor) -> Turns[dict[str, Partitions]]:
    """Return every member's target, by member id. A topic that was deleted since the snapshot is in none."""
    yield group.size
    by_member = algorithm(assignor.algorithm).assign(group).by_member()
    yield group.size
    found: dict[str, Partitions] = {}
    for member_id, of_member in by_member.items():
        target: dict[UUID, frozenset[int]] = {}
        for name, numbers in of_member.items():
            topic = topics.get(name)
            if topic is not None:
                target[topic.id] = frozenset(numbers)
            yield
        found[member_id] = target
    return found


def steered_targets(
    members: Iterable[tuple[ConsumerMember, frozenset[str], Partitions]], topics: TopicView
) -> Turns[dict[str, Partitions]]:
    """Return every member's target by the plan in members' rack ids; arguments as of `snapshot`."""
    sizes: dict[bytes, int] = {}
    rows = []
    for member, wanted, target in members:
        read = []
        for name in wanted:
            topic = topics.get(name)
            if topic is not None:
                read.append(topic.id.bytes)
                sizes[topic.id.bytes] = len(topic.partitions)
            yield
        subscription = member.subscription
        rows.append(
            SteeredMember(
                id=member.member_id,
                instance_id=subscription.instance_id,
                rack_id=subscription.rack,
                topics=read,
                owned={topic_id.bytes: numbers for topic_id, numbers in target.items()},
            )
        )
        yield len(target)
    by_member = steered(rows, sizes)
    yield sum(sizes.values())
    return {
        member_id: {UUID(bytes=topic_id): frozenset(numbers) for topic_id, numbers in of_member.items()}
        for member_id, of_member in by_member.items()
    }
