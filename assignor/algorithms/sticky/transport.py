"""How many partitions of each class every member gets: an exact transport problem with convex costs.

Partitions with the same subscribers and racks form a class, regardless of their owners. Only their number on each
member matters: ``x[k, m]`` of class k on member m, of which ``min(x, owned)`` stay. The best ``x`` has the least

1. sum of squared counts (which also has the least spread and the least sum of pairwise differences), then
2. number of partitions on none of their owner's racks, then
3. number of partitions taken from their owner.

The search starts from a good guess and cancels cycles of negative cost in the residual graph. Without such a cycle,
the result is proven best (Klein's algorithm). The graph has one node for each class and member, and a sink.
Bellman-Ford runs on it as matrix operations. All member-disjoint cycles that it finds are cancelled at once, by as much
as the costs allow.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from loadwise.assignor.model import Bools, GroupSnapshot, Ints, Owners

logger = logging.getLogger(__name__)

WORK_LIMIT = 2_000_000_000
"""Matrix cells that `Transport.solve` may visit before it returns an unproven result: some seconds of work."""

_SWEEPS = 50
"""Maximum number of times that all classes are dealt again before the exact search begins."""

_NEVER = np.int64(2**60)
"""Cost of a missing arc; its sum with any real costs stays within int64."""

_SINK = -2
_NONE = -1


@dataclass(frozen=True, eq=False, slots=True)
class Transport:
    """The problem, with K classes, M members and P partitions."""

    class_of: Owners
    """int32[P]: the class of each partition."""
    supply: Ints
    """int64[K]: partitions of each class."""
    owned: Ints
    """int64[K, M]: how many partitions of each class every member owns."""
    eligible: Bools
    """bool[K, M]: whether each member may read each class; at least one may."""
    misplaced: Bools
    """bool[K, M]: whether each member would read each class from another rack."""

    @classmethod
    def of(cls, group: GroupSnapshot, rows: Ints) -> Transport:
        """Sort some partitions of a group into classes. O(P log P)."""
        topic_class, eligible = group.class_of[rows], group.subscribers_of_class
        misplaced = np.zeros(eligible.shape, bool)
        racks = group.partition_racks if group.racks_known else None
        if len(eligible) == 1 and racks is None:
            class_of = np.zeros(len(rows), np.int64)
        elif racks is None:
            distinct, class_of = np.unique(topic_class, return_inverse=True)
            eligible, misplaced = eligible[distinct], misplaced[distinct]
        else:
            pattern, pattern_of = np.unique(racks[rows], axis=0, return_inverse=True)
            pairs = topic_class.astype(np.int64) * len(pattern) + pattern_of.reshape(-1)
            distinct, class_of = np.unique(pairs, return_inverse=True)
            eligible = eligible[distinct // len(pattern)]
            misplaced = group.misplaced(pattern[distinct % len(pattern)])
        size, members = len(eligible), len(group.members)
        owner = group.owner[rows]
        held = owner >= 0
        cells = class_of[held] * members + owner[held]
        return cls(
            class_of=class_of.astype(np.int32),
            supply=np.bincount(class_of, minlength=size),
            owned=np.bincount(cells, minlength=size * members).reshape(size, members),
            eligible=eligible,
            misplaced=misplaced,
        )

    @property
    def is_uniform(self) -> bool:
        """Whether there is one class that every member may read from anywhere; then a formula solves it."""
        return len(self.supply) == 1 and bool(self.eligible.all()) and not self.misplaced.any()

    def solve(self) -> Ints:
        """int64[K, M]: the best counts. Logs a warning if `WORK_LIMIT` ended the search before the proof."""
        x = self._guess()
        work = 0
        while cycles := _negative_cycles(*self._arcs(x)):
            for cycle in cycles:
                self._cancel(x, cycle)
            work += (len(cycles[0]) + 4) * x.size
            if work > WORK_LIMIT:
                logger.warning("%d classes, %d members: stopped before the assignment was proven optimal", *x.shape)
                break
        return x

    def _guess(self) -> Ints:
        """Keep owned partitions on the owner's rack; level the readers with the rest, scarce classes first."""
        x = np.where(self.misplaced, 0, self.owned)
        count = x.sum(axis=0)
        order = np.lexsort((np.arange(len(x)), self.eligible.sum(axis=1)))
        for class_ in order.tolist():
            missing = int(self.supply[class_] - x[class_].sum())
            readers = np.flatnonzero(self.eligible[class_])
            # Among equals, members on the partitions' racks go first, then those that owned some.
            rank = np.lexsort((x[class_, readers] >= self.owned[class_, readers], self.misplaced[class_, readers]))
            added = level_up(count[readers[rank]], missing)
            x[class_, readers[rank]] += added
            count[readers[rank]] += added
        self._level(x, order.tolist())
        return x

    def _level(self, x: Ints, order: list[int]) -> None:
        """Deal each class again, level with its readers' other partitions, while that evens out the counts.

        Afterwards no single partition can go from a member to one that has two fewer, which is where Java stops. So
        even an unproven result is as even as Java's. Cancelling cycles has the same effect, but one by one.
        """
        count = x.sum(axis=0)
        best = int((count**2).sum())
        for _ in range(_SWEEPS):
            for class_ in order:
                readers = np.flatnonzero(self.eligible[class_])
                mine = x[class_, readers]
                if int(np.ptp(count[readers])) <= 1:
                    continue
                rank = np.lexsort((-np.minimum(mine, self.owned[class_, readers]), self.misplaced[class_, readers]))
                others = (count[readers] - mine)[rank]
                dealt = np.empty_like(mine)
                dealt[rank] = level_up(others, int(self.supply[class_]))
                x[class_, readers] = dealt
                count[readers] += dealt - mine
            squares = int((count**2).sum())
            if squares >= best:
                return
            best = squares

    def _arcs(self, x: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Cost of one more unit: member gives to class, class gives to member, member's count goes up, goes down."""
        size, members = x.shape
        rack = 4 * (size + members)  # above the sum of the moves of any one cycle
        even = 4 * (size + members) * rack
        give = np.where(x > 0, (x <= self.owned) - rack * self.misplaced, _NEVER)
        take = np.where(self.eligible, rack * self.misplaced - (x < self.owned), _NEVER)
        count = x.sum(axis=0)
        return give, take, even * (2 * count + 1), -even * (2 * count - 1)

    def _cancel(self, x: Ints, cycle: list[tuple[int, int, int]]) -> None:
        """Push as many units along a cycle of (giver, class or sink, taker) as pay off."""
        units = int(x.sum())
        for giver, via, taker in cycle:
            if via == _SINK:  # here `taker` loses a partition and `giver` wins one
                units = min(units, max(1, int(x[:, taker].sum() - x[:, giver].sum()) // 2))
                continue
            have, own = int(x[via, giver]), int(self.owned[via, giver])
            units = min(units, have if have <= own else have - own)
            have, own = int(x[via, taker]), int(self.owned[via, taker])
            if have < own:
                units = min(units, own - have)
        for giver, via, taker in cycle:
            if via != _SINK:
                x[via, giver] -= units
                x[via, taker] += units


def level_up(count: Ints, units: int) -> Ints:
    """Add units one by one to the lowest count (the first of equals); return how many each gets. O(M log M)."""
    order = np.argsort(count, kind="stable")
    level = count[order]
    # The units that raise the j lowest to the level of the next one.
    used = np.arange(1, len(level)) * level[1:] - np.cumsum(level)[:-1]
    lowest = int(np.searchsorted(used, units, side="right")) + 1
    share, extra = divmod(units + int(level[:lowest].sum()), lowest)
    target = np.maximum(count, share)
    raised = np.sort(order[:lowest])
    target[raised[:extra]] += 1
    return target - count


def _negative_cycles(give: Ints, take: Ints, up: Ints, down: Ints) -> list[list[tuple[int, int, int]]]:
    """Member-disjoint cycles of negative cost, lists of (giver, class or sink, taker); empty without one."""
    members = len(up)
    distance = np.zeros(members, np.int64)
    via = np.full(members, _NONE)
    parent = np.full(members, _NONE)
    while True:
        giver = np.argmin(distance + give, axis=1)
        at_class = (distance + give)[np.arange(len(give)), giver]
        winner = int(np.argmin(distance + up))
        best = np.argmin(at_class[:, np.newaxis] + take, axis=0)
        reached = at_class[best] + take[best, np.arange(members)]
        by_sink = distance[winner] + up[winner] + down
        sink_is_best = by_sink < reached
        reached = np.where(sink_is_best, by_sink, reached)
        better = reached < distance
        if not better.any():
            return []
        distance = np.where(better, reached, distance)
        via = np.where(better, np.where(sink_is_best, _SINK, best), via)
        parent = np.where(better, np.where(sink_is_best, winner, giver[best]), parent)
        found = _cycles(parent.tolist(), via.tolist())
        found = [cycle for cycle in found if _cost(cycle, give, take, up, down) < 0]
        if found:
            return found


def _cycles(parent: list[int], via: list[int]) -> list[list[tuple[int, int, int]]]:
    """Return all cycles of a graph in which every node has at most one incoming arc."""
    seen = [0] * len(parent)
    cycles = []
    for start in range(len(parent)):
        node = start
        while node != _NONE and not seen[node]:
            seen[node] = start + 1
            node = parent[node]
        if node != _NONE and seen[node] == start + 1:
            cycle = []
            last = node
            while True:
                cycle.append((parent[node], via[node], node))
                node = parent[node]
                if node == last:
                    break
            if all(giver != taker for giver, _, taker in cycle):
                cycles.append(cycle)
    return cycles


def _cost(cycle: list[tuple[int, int, int]], give: Ints, take: Ints, up: Ints, down: Ints) -> int:
    return sum(
        int(up[giver] + down[taker]) if via == _SINK else int(give[via, giver] + take[via, taker])
        for giver, via, taker in cycle
    )
