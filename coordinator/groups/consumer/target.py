"""Who should have what in the end: a consumer group put before an assignor. Mirrors ``TargetAssignmentBuilder``.

The only module of the coordinator that needs the assignors, and so numpy: it is imported when the first target is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.model import Floats, GroupSnapshot, Member, Owners
from loadwise.coordinator.groups.consumer.assignors import ServerAssignor
from loadwise.coordinator.groups.consumer.member import ConsumerMember
from loadwise.coordinator.groups.consumer_records import Partitions
from loadwise.coordinator.groups.topic_view import Loads, TopicView

_WORTH = 0.05
"""By what part the highest load has to come down for new targets to be worth it."""


def snapshot(
    members: Iterable[tuple[ConsumerMember, frozenset[str], Partitions]],
    topics: TopicView,
    assignor: ServerAssignor,
    loads: Loads,
) -> GroupSnapshot:
    """The group as its assignor sees it: of each member its topics and its target so far, which is what it keeps.

    O(partitions + members).
    """
    partitions: dict[str, int] = {}
    ordered: dict[frozenset[str], tuple[str, ...]] = {}  # one tuple a subscription, which the snapshot hashes once
    rows = []
    for member, wanted, target in members:
        names = ordered.get(wanted)
        if names is None:
            names = ordered[wanted] = tuple(sorted(wanted))
            for name in names:
                topic = topics.get(name)
                if topic is not None:
                    partitions[name] = len(topic.partitions)
        owned = {}
        for topic_id, numbers in target.items():
            topic = topics.get_by_id(topic_id)
            if topic is not None:
                owned[topic.name] = tuple(numbers)
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
    known_loads = loads if assignor.uses_load else None
    return GroupSnapshot.of(rows, partitions, load=known_loads, load_unit="records/s", racks=racks)


def is_uneven(group: GroupSnapshot, threshold: float, assignor: ServerAssignor) -> bool:
    """Whether a member's load is above the mean by more than ``threshold``, and the assignor knows better by a part."""
    if group.load is None or not len(group.members):
        return False
    weight = np.nan_to_num(group.load)
    highest, mean = _highest(weight, group.owner), weight.sum() / len(group.members)
    if not mean > 0 or highest <= (1 + threshold) * mean:
        return False
    return _highest(weight, algorithm(assignor.algorithm).assign(group).owner) < highest * (1 - _WORTH)


def _highest(weight: Floats, owner: Owners) -> float:
    owned = owner >= 0
    return float(np.bincount(owner[owned], weight[owned], 1).max())


def targets(group: GroupSnapshot, topics: TopicView, assignor: ServerAssignor) -> dict[str, Partitions]:
    """Every member's target, by member id."""
    ids = {}
    for name in group.topics:
        topic = topics.get(name)
        assert topic is not None
        ids[name] = topic.id
    by_member = algorithm(assignor.algorithm).assign(group).by_member()
    return {
        member_id: {ids[name]: frozenset(numbers) for name, numbers in of_member.items()}
        for member_id, of_member in by_member.items()
    }
