"""Equal numbers of partitions first, equal loads second: no shift of the load makes such an assignment lopsided.

The owners are those of an assignment by numbers, as `Sticky`'s. Exchanges of one partition for one other then lower the
highest level, and leave all numbers as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loadwise.assignor.algorithms.weighted.exchange import lowest
from loadwise.assignor.algorithms.weighted.working_assignment import WorkingAssignment
from loadwise.assignor.model import Ints, Owners

_ALIKE = 1e-2
"""The part by which the levels after two exchanges may differ to count as equal."""
_WORTH = 1e-3
"""The least part of the highest level by which an exchange must lower it."""


class _Exchange(NamedTuple):
    """A partition of the highest member for one of another member."""

    level: float
    """The higher level of the two afterwards."""
    down: int
    up: int
    low: int


def lower_evenly(working: WorkingAssignment, owner: Owners, *, at_most: float, good: float) -> float:
    """Plan these owners; if a level is above ``at_most``, lower all towards ``good``. Return the highest level."""
    working.assign_all(owner)
    if float(working.level.max(initial=0.0)) > at_most:
        exchange_one_for_one(working, good)
    return float(working.level.max(initial=0.0))


def exchange_one_for_one(working: WorkingAssignment, good: float, *, partners: int = 12, steps: int = 400) -> None:
    """Exchange partitions, one for one, until no member above the level ``good`` can be improved.

    ``partners`` is the number of members, from the lowest level up, to try for each. ``steps`` bounds the exchanges.
    """
    stuck = np.zeros(len(working.capacity), bool)
    for _ in range(steps):
        level = np.where(stuck, -1.0, working.level)
        high = int(np.argmax(level))
        if working.exhausted or level[high] <= good:
            return
        down, best = np.sort(working.rows(high)), None
        for low in lowest(working.level, partners).tolist():
            if working.level[low] >= level[high]:
                break
            found = _best_exchange(working, high, low, down)
            if found is not None and (best is None or found.level < best.level):
                best = found
        if best is None or best.level > level[high] * (1 - _WORTH):
            stuck[high] = True
            continue
        working.move(np.array([best.down]), best.low)
        working.move(np.array([best.up]), high)
        stuck[:] = False


def _best_exchange(working: WorkingAssignment, high: int, low: int, down: Ints) -> _Exchange | None:
    """Return the exchange that brings two members nearest to the same level; ``down`` are the rows of ``high``."""
    up = np.sort(working.rows(low))
    down = down[working.may_go(down, keep_local=True)[:, low]]
    up = up[working.may_go(up, keep_local=True)[:, high]]
    if not len(down) or not len(up):
        return None
    working.spend(len(down) + len(up))
    wide, narrow = working.capacity[high], working.capacity[low]
    ideal = (working.load[high] * narrow - working.load[low] * wide) / (wide + narrow)
    up = up[np.argsort(working.weight[up], kind="stable")]
    ascending, weight = working.weight[up], working.weight[down]
    above = ascending.searchsorted(weight - ideal)
    near = np.stack((np.maximum(above - 1, 0), np.minimum(above, len(up) - 1)))
    moved = weight - ascending[near]
    level = np.maximum((working.load[high] - moved) / wide, (working.load[low] + moved) / narrow)
    # Of nearly equal ones, the one that moves the least load.
    load = np.where(level <= level.min() * (1 + _ALIKE), weight + ascending[near], np.inf)
    side, index = divmod(int(load.argmin()), level.shape[1])
    return _Exchange(float(level[side, index]), int(down[index]), int(up[near[side, index]]), low)
