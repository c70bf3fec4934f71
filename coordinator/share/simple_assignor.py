"""Kafka's ``SimpleAssignor`` of share groups (``group.share.assignors=simple``).

A partition may have several members. If there are fewer partitions than members, several members share each partition,
so that every member has one; otherwise each partition has one member. Members keep their partitions up to their fair
share. Kafka uses the order of hash maps; this uses member ids, topics and partition numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from loadwise.coordinator.groups.consumer_records import Partitions

_Partition: TypeAlias = tuple[UUID, int]


def assign(
    subscriptions: Mapping[str, frozenset[UUID]], partitions: Mapping[UUID, int], owned: Mapping[str, Partitions]
) -> dict[str, Partitions]:
    """Return each member's partitions, by member id.

    ``subscriptions``: the topics of each member. ``partitions``: the partition count of each topic. ``owned``: the
    members' current partitions. Members with equal subscriptions share all partitions evenly; otherwise each topic is
    shared separately. O(members times partitions).
    """
    members = sorted(subscriptions)
    topics = sorted(frozenset().union(*subscriptions.values()) & set(partitions))
    if len(set(subscriptions.values())) <= 1:
        pools = [(members, [(topic, number) for topic in topics for number in range(partitions[topic])])]
    else:
        pools = [
            ([each for each in members if topic in subscriptions[each]], [(topic, n) for n in range(partitions[topic])])
            for topic in topics
        ]
    shared: dict[str, dict[UUID, set[int]]] = {member: {} for member in members}
    for readers, pool in pools:
        for member, theirs in _shared(readers, pool, owned).items():
            for topic, number in theirs:
                shared[member].setdefault(topic, set()).add(number)
    return {
        member: {topic: frozenset(numbers) for topic, numbers in theirs.items()} for member, theirs in shared.items()
    }


def _shared(
    members: Sequence[str], pool: Sequence[_Partition], owned: Mapping[str, Partitions]
) -> dict[str, set[_Partition]]:
    """Share the partitions of a pool among members that subscribe to all of them."""
    if not pool or not members:
        return {}
    readers_each = -(-len(members) // len(pool))
    total = readers_each * len(pool)
    wanted = {
        member: -(-total * (index + 1) // len(members)) - -(-total * index // len(members))
        for index, member in enumerate(members)
    }
    known = set(pool)
    shared = {
        member: {(topic, number) for topic, numbers in owned.get(member, {}).items() for number in numbers} & known
        for member in members
    }
    readers: dict[_Partition, list[str]] = {partition: [] for partition in pool}
    for member in members:
        for partition in shared[member]:
            readers[partition].append(member)
    for partition, theirs in readers.items():
        # Members with too many partitions give some up first.
        for member in sorted(theirs, key=lambda each: len(shared[each]) - wanted[each], reverse=True):
            if len(theirs) > readers_each:
                theirs.remove(member)
                shared[member].discard(partition)
    for member in members:
        for partition in sorted(shared[member])[wanted[member] :]:
            shared[member].discard(partition)
            readers[partition].remove(member)
    unfilled = [member for member in members if len(shared[member]) < wanted[member]]
    for partition, theirs in readers.items():
        for member in list(unfilled):
            if len(theirs) >= readers_each:
                break
            if member not in theirs:
                theirs.append(member)
                shared[member].add(partition)
                # The next partition starts with the next member.
                unfilled.remove(member)
                if len(shared[member]) < wanted[member]:
                    unfilled.append(member)
    return shared
