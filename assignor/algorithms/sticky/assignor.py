"""Sticky: equal counts first, then partitions on their readers' racks, then as few moves as possible.

Kafka's ``AbstractStickyAssignor`` (KIP-54, KIP-341, KIP-881) has these aims in this order. Java reaches them if all
members subscribe to the same topics and racks do not matter. There `uniform` returns Java's assignment. In other groups
Java comes close, and this module finds the best assignment. `transport` finds how many partitions of each class (same
subscribers, same racks) every member gets; then the partitions are chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from loadwise.assignor.algorithms.sticky.topics import spread_topics
from loadwise.assignor.algorithms.sticky.transport import Transport
from loadwise.assignor.algorithms.sticky.uniform import uniform_owner
from loadwise.assignor.model import Assignment, GroupSnapshot, Ints, Owners, Traits, stable_order


@dataclass(frozen=True, slots=True)
class Sticky:
    """Kafka's ``sticky`` and, staged, ``cooperative-sticky``."""

    name: ClassVar[str] = "sticky"
    traits: ClassVar[Traits] = Traits(owned=True, cooperative=True)

    def assign(self, group: GroupSnapshot) -> Assignment:
        """Return counts that differ as little as the subscriptions allow, and keep owned partitions.

        O(P log P) for equal subscriptions without racks; see `Transport` for other groups.
        """
        return Assignment(group, sticky_owner(group, np.arange(group.size), listed=group.listed))


def sticky_owner(group: GroupSnapshot, rows: Ints, *, listed: Ints | None = None) -> Owners:
    """Return the owner of some of a group's partitions, as if it had no others: int32[n] for int64[n] rows.

    ``listed`` is `GroupSnapshot.listed`, or None for a result that does not depend on it.
    """
    if not len(rows):
        return np.empty(0, np.int32)
    if group.equal_subscriptions and not group.racks_known:
        return uniform_owner(group, rows, listed)
    problem = Transport.of(group, rows)
    if problem.is_uniform:
        return uniform_owner(group, rows, listed)
    owner = group.owner[rows]
    answer = _name(owner, group.partition_of[rows], problem, problem.solve())
    spread_topics(answer, group.topic_of[rows], problem.class_of, answer == owner, len(group.members))
    return answer


def _name(owner: Owners, number: Owners, problem: Transport, counts: Ints) -> Owners:
    """Turn counts of each class and member into rows: owned partitions first, then the rest dealt round by round.

    A member keeps the lowest partition numbers of all topics, as in Java, so that no topic moves as a whole.
    ``owner`` and ``number`` are int32[n], the owner and the partition number of each row; ``counts`` is int64[K, M].
    """
    class_of, owned = problem.class_of, problem.owned
    members = owned.shape[1]
    kept = np.minimum(owned, counts)
    answer = np.full(len(owner), -1, np.int32)
    held = np.flatnonzero(owner >= 0)
    if len(held):
        held = held[stable_order(number[held], int(number.max()) + 1)]
        cell = class_of[held].astype(np.int64) * members + owner[held]
        order = stable_order(cell, owned.size)
        cell = cell[order]
        starts = np.cumsum(owned) - owned.ravel()
        stay = held[order[np.arange(len(held)) - starts[cell] < kept.ravel()[cell]]]
        answer[stay] = owner[stay]

    free = np.flatnonzero(answer < 0)
    wanted = (counts - kept).ravel()
    cell = np.repeat(np.arange(len(wanted)), wanted)
    round_ = np.arange(len(cell)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
    class_, member = np.divmod(cell, members)
    dealt = stable_order(round_, int(wanted.max(initial=0)))
    if len(owned) > 1:
        free = free[np.argsort(class_of[free], kind="stable")]
        dealt = dealt[np.argsort(class_[dealt], kind="stable")]
    answer[free] = member[dealt]
    return answer
