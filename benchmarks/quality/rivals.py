"""Other projects' load-aware assignors, for comparison, written from their public descriptions.

None of them knows capacities or racks. Unknown loads count as 0, unless noted otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from loadwise.assignor.model import NOBODY, Assignment, Floats, GroupSnapshot, Ints, Owners, Traits


@dataclass(frozen=True, slots=True)
class LagBased:
    """grantneale's kafka-lag-based-assignor: topic by topic, the largest lag first, from scratch at every rebalance.

    Each partition goes to the member with the fewest partitions of that topic, of those to the one with the least lag
    of it. Other topics and what members own are not looked at.
    """

    name: str = "lag-based"
    traits: ClassVar[Traits] = Traits(load=True)

    def assign(self, group: GroupSnapshot) -> Assignment:
        """Answer the assignment."""
        owner = np.full(group.size, NOBODY, np.int32)
        weight = _known(group)
        for topic in range(len(group.topics)):
            start, stop = group.topic_start[topic : topic + 2].tolist()
            readers = group.subscribers(topic)
            count, load = np.zeros(len(readers)), np.zeros(len(readers))
            for row in start + np.argsort(-weight[start:stop], kind="stable"):
                least = int(np.lexsort((load, count))[0])
                owner[row] = readers[least]
                count[least] += 1
                load[least] += weight[row]
        return Assignment(group, owner)


@dataclass(frozen=True, slots=True)
class Greedy:
    """Largest first to whoever has the least, over all topics, from scratch at every rebalance (Graham's LPT rule)."""

    name: str = "greedy"
    traits: ClassVar[Traits] = Traits(load=True)

    def assign(self, group: GroupSnapshot) -> Assignment:
        """Answer the assignment."""
        owner = np.full(group.size, NOBODY, np.int32)
        _largest_first(group, owner, np.arange(group.size))
        return Assignment(group, owner)


@dataclass(frozen=True, slots=True)
class BrooklinLike:
    """LinkedIn Brooklin's ``LoadBasedPartitionAssigner``: members keep all they own; the rest goes as in `Greedy`.

    Owned partitions never move, so a drift of the load stays, and a newcomer gets only free ones. Partitions without a
    load are dealt out in turn (there in random order, here in theirs).
    """

    name: str = "brooklin-like"
    traits: ClassVar[Traits] = Traits(owned=True, load=True)

    def assign(self, group: GroupSnapshot) -> Assignment:
        """Answer the assignment."""
        owner = group.owner.copy()
        unknown = np.zeros(group.size, bool) if group.load is None else np.isnan(group.load)
        _largest_first(group, owner, np.flatnonzero((owner == NOBODY) & ~unknown))
        for turn, row in enumerate(np.flatnonzero((owner == NOBODY) & unknown)):
            readers = group.subscribers(int(group.topic_of[row]))
            owner[row] = readers[turn % len(readers)]
        return Assignment(group, owner)


def _known(group: GroupSnapshot) -> Floats:
    return np.zeros(group.size) if group.load is None else np.nan_to_num(group.load, nan=0.0)


def _largest_first(group: GroupSnapshot, owner: Owners, rows: Ints) -> None:
    """Give each of ``rows``, the heaviest first, to the reader that then has the least load; changes ``owner``."""
    weight = _known(group)
    held = owner != NOBODY
    load = np.bincount(owner[held], weight[held], len(group.members)).astype(np.float64)
    for row in rows[np.argsort(-weight[rows], kind="stable")]:
        readers = group.subscribers(int(group.topic_of[row]))
        owner[row] = readers[np.argmin(load[readers])]
        load[owner[row]] += weight[row]
