"""Kafka's ``SimpleAssignor`` of share groups (``group.share.assignors=simple``).

A partition may have several members. If there are fewer partitions than members, several members share each partition,
so that every member has one; otherwise each partition has one member. Members keep their partitions up to their fair
share. Kafka uses the order of hash maps; this uses member ids, topics and partition numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TypeAlias
from uuid import UUID

from loadwise.coordinator.groups.consumer_records import Partitions
from loadwise.coordinator.turns import Turns

_Partition: TypeAlias = tuple[int, int]
"""The row of a topic among those that are shared, and the partition's number."""


def assign(
    subscriptions: Mapping[str, frozenset[UUID]], partitions: Mapping[UUID, int], owned: Mapping[str, Partitions]
) -> Turns[dict[str, Partitions]]:
    """Return each member's partitions, by member id.

    ``subscriptions``: the topics of each member. ``partitions``: the partition count of each topic. ``owned``: the
    members' current partitions. Members with equal subscriptions share all partitions evenly; otherwise each topic is
    shared separately. O(members times partitions).
    """
    members = sorted(subscriptions)
    topics = sorted(frozenset().union(*subscriptions.values()) & partitions.keys(), key=attrgetter("int"))
    are_equal = len(set(subscriptions.values())) <= 1
    shared: dict[str, dict[UUID, frozenset[int]]] = {member: {} for member in members}
    for pool in [topics] if are_equal else ([topic] for topic in topics):
        readers = members if are_equal else [each for each in members if pool[0] in subscriptions[each]]
        for member, theirs in (yield from _shared(readers, pool, partitions, owned)).items():
            numbers: dict[int, list[int]] = {}
            for row, number in theirs:
                numbers.setdefault(row, []).append(number)
            for row, its in numbers.items():
                shared[member][pool[row]] = frozenset(its)
                yield
    return dict(shared)


def _shared(
    members: Sequence[str], topics: Sequence[UUID], partitions: Mapping[UUID, int], owned: Mapping[str, Partitions]
) -> Turns[dict[str, set[_Partition]]]:
    """Share the partitions of topics among members that subscribe to all of them."""
    readers: dict[_Partition, list[str]] = {}
    for row, topic in enumerate(topics):
        readers |= {(row, number): [] for number in range(partitions[topic])}
        yield
    if not readers or not members:
        return {}
    readers_each = -(-len(members) // len(readers))
    total = readers_each * len(readers)
    wanted = {
        member: -(-total * (index + 1) // len(members)) - -(-total * index // len(members))
        for index, member in enumerate(members)
    }
    shared: dict[str, set[_Partition]] = {member: set() for member in members}
    for member, theirs in shared.items():
        owns = owned.get(member, {})
        for row, topic in enumerate(topics):
            for partition in {(row, number) for number in owns.get(topic, ())} & readers.keys():
                theirs.add(partition)
                readers[partition].append(member)
            yield
    for partition, its in readers.items():
        # Members with too many partitions give some up first.
        for member in sorted(its, key=lambda each: len(shared[each]) - wanted[each], reverse=True):
            if len(its) > readers_each:
                its.remove(member)
                shared[member].discard(partition)
        yield
    for member in members:
        for partition in sorted(shared[member])[wanted[member] :]:
            shared[member].discard(partition)
            readers[partition].remove(member)
            yield
    unfilled = [member for member in members if len(shared[member]) < wanted[member]]
    for partition, its in readers.items():
        for member in list(unfilled):
            if len(its) >= readers_each:
                break
            if member not in its:
                its.append(member)
                shared[member].add(partition)
                # The next partition starts with the next member.
                unfilled.remove(member)
                if len(shared[member]) < wanted[member]:
                    unfilled.append(member)
        yield
    return shared
