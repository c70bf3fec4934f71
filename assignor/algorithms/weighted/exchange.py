"""Exchange partitions between two members so that the higher of the two comes down.

One or two partitions go one way; none, one or two go the other. The exchange is chosen that brings the two members
nearest to the same level. Members are taken from the highest level down, so the whole order of levels improves. If
nothing helps the highest any more (it may have just one, very heavy partition), the next one follows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadwise.assignor.algorithms.weighted.subset import pairs
from loadwise.assignor.algorithms.weighted.working_assignment import WorkingAssignment
from loadwise.assignor.model import Bools, Floats, Ints

_NO_ROWS = np.empty(0, np.int64)


def exchange_moving(
    working: WorkingAssignment,
    good_enough: float,
    *,
    keep_local: bool = False,
    partners: int = 12,
    steps: int = 400,
) -> None:
    """Exchange partitions until no member above the level ``good_enough`` can be improved.

    Only partitions that move anyway are exchanged, so no more is taken from an owner.
    ``partners`` is the number of members, from the lowest level up, to try for each. ``steps`` bounds the exchanges.
    """
    moving = _have_moving(working)
    choices = Choices(working, moving=True, keep_local=keep_local)
    hopeless = ~moving
    changed = [0] * len(working.capacity)  # the step at which each member's partitions last changed
    tried: dict[tuple[int, int], int] = {}
    for step in range(1, steps + 1):
        if working.exhausted:
            return
        level = working.level
        high = int(np.argmax(np.where(hopeless, -1.0, level)))
        if hopeless[high] or level[high] <= good_enough:
            return
        best: tuple[float, Ints, Ints, int] | None = None
        for low in lowest(level, partners).tolist():
            if level[low] >= level[high]:
                break
            if tried.get((high, low), -1) >= max(changed[high], changed[low]):
                continue
            even = (working.load[high] + working.load[low]) / (working.capacity[high] + working.capacity[low])
            if best is not None and even >= best[0]:
                continue  # even a perfect exchange of these two would not be better
            found = _best_exchange(working, choices, high, low)
            if found[0] >= level[high] - 1e-4 * good_enough:
                tried[high, low] = step
            elif best is None or found[0] < best[0]:
                best = (*found, low)
                if best[0] <= good_enough:
                    break
        if best is None:
            hopeless[high] = True
            continue
        _, down, up, low = best
        working.move(down, low)
        working.move(up, high)
        changed[high] = changed[low] = step
        choices.forget(high, low)
        for member in (high, low):
            rows = working.rows(member)
            moving[member] = ((working.current[rows] != member) & (working.weight[rows] > 0)).any()
        hopeless = ~moving


def _have_moving(working: WorkingAssignment) -> Bools:
    """bool[M]: the members with a partition that moves anyway and has a load."""
    moving = (working.owner != working.current) & (working.weight > 0)
    return np.bincount(working.owner[moving], minlength=len(working.capacity)) > 0


def _best_exchange(working: WorkingAssignment, choices: Choices, high: int, low: int) -> tuple[float, Ints, Ints]:
    """Return the higher level of the two afterwards, the rows that go down and those that go up."""
    down, up = choices.of(high, low), choices.of(low, high)
    working.spend(len(down.weight) + len(up.weight))
    wide, narrow = working.capacity[high], working.capacity[low]
    ideal = (working.load[high] * narrow - working.load[low] * wide) / (wide + narrow)
    # For each set that goes down, the two sets nearest to the difference: one above it, one below.
    above = up.ascending.searchsorted(down.weight - ideal)
    near = np.empty((2, len(above)), np.int64)
    np.maximum(above - 1, 0, out=near[0])
    np.minimum(above, len(up.order) - 1, out=near[1])
    moved = down.weight - up.ascending[near]
    level = np.maximum((working.load[high] - moved) / wide, (working.load[low] + moved) / narrow)
    side, index = divmod(int(level.argmin()), level.shape[1])
    before, after = float(working.load[high] / wide), float(level[side, index])
    if after >= before:
        return before, _NO_ROWS, _NO_ROWS
    return after, down.set(index), up.set(int(up.order[near[side, index]]))


def lowest(level: Floats, count: int) -> Ints:
    """Return the ``count`` lowest members, from the lowest level up; the first of equals first."""
    if count >= len(level):
        return np.argsort(level, kind="stable")
    low = np.flatnonzero(level <= np.partition(level, count)[count])
    return low[np.argsort(level[low], kind="stable")][:count]


@dataclass(frozen=True, eq=False, slots=True)
class Sets:
    """Sets of up to two partitions of one member; the first one is empty."""

    rows: Ints
    """int64[n, 2], padded with -1."""
    weight: Floats
    """float64[n]: the load of each set."""
    order: Ints
    """int64[n]: the sets from the lightest to the heaviest."""
    ascending: Floats
    """float64[n]: their loads in that order."""

    def set(self, index: int) -> Ints:
        """Return the partitions of one set."""
        first, second = self.rows[index]
        return np.array([row for row in (first, second) if row >= 0], np.int64)


@dataclass(frozen=True, eq=False, slots=True)
class _Offers:
    """The sets that one member may give, by taker; takers with the same options share them."""

    rows: Ints
    allowed: Bools
    """bool[n, M]: whether each member may have each of them."""
    by_mask: dict[bytes, Sets]
    by_taker: dict[int, Sets]


class Choices:
    """The sets of up to two partitions that members may give to others; cached until their partitions change.

    ``moving``: only partitions that move anyway. ``keep_local``: none that would leave its rack. Sets of two are left
    out above ``most`` of them, and thinned out evenly by load to ``thinned``.
    """

    def __init__(
        self,
        working: WorkingAssignment,
        *,
        moving: bool = False,
        keep_local: bool = False,
        most: int = 2000,
        thinned: int | None = None,
    ) -> None:
        self._working = working
        self._loose, self._keep_local, self._most, self._thinned = moving, keep_local, most, thinned
        self._known: dict[int, _Offers] = {}

    def of(self, giver: int, taker: int) -> Sets:
        """Return the sets that ``giver`` may give to ``taker``."""
        if self._working.is_open:
            taker = 0  # every taker has the same choices
        known = self._known.get(giver)
        if known is None:
            rows = self._movable(giver)
            allowed = self._working.may_go(rows, keep_local=self._keep_local)
            known = self._known[giver] = _Offers(rows, allowed, {}, {})
        found = known.by_taker.get(taker)
        if found is None:
            allowed = known.allowed[:, taker]
            mask = allowed.tobytes()
            if mask not in known.by_mask:
                known.by_mask[mask] = self._sets(known.rows[allowed])
            found = known.by_taker[taker] = known.by_mask[mask]
        return found

    def forget(self, *members: int) -> None:
        """Drop the cached sets of members whose partitions have changed."""
        for member in members:
            self._known.pop(member, None)

    def _movable(self, giver: int) -> Ints:
        rows = np.sort(self._working.rows(giver))
        movable = self._working.weight[rows] > 0
        if self._loose:
            movable &= self._working.current[rows] != giver
        return rows[movable]

    def _sets(self, rows: Ints) -> Sets:
        sets = np.full((len(rows) + 1, 2), -1)
        sets[1:, 0] = rows
        if len(rows) * (len(rows) - 1) // 2 <= self._most:
            sets = np.concatenate((sets, rows[pairs(len(rows))]))
        weight = np.where(sets >= 0, self._working.weight[sets], 0.0).sum(axis=1)
        order = np.argsort(weight, kind="stable")
        if self._thinned is not None and len(sets) > self._thinned:
            taken = np.sort(order[np.linspace(0, len(sets) - 1, self._thinned).astype(np.int64)])
            sets, weight = sets[taken], weight[taken]
            order = np.argsort(weight, kind="stable")
        return Sets(sets, weight, order, weight[order])
