"""How low the highest load can get: bounds that no assignment beats, and the fractional one that nearly does.

Were partitions divisible, each class of topics (same subscribers) would be spread over its subscribers until no shift
lowered the highest level (load in relation to capacity). That is a convex problem; pouring one class after the other
over its subscribers, as water finds its level, converges to its solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadwise.assignor.model import Bools, Floats

_SWEEPS = 100
_PRECISION = 1e-4


@dataclass(frozen=True, eq=False, slots=True)
class FractionalSpread:
    """The divisible problem's solution, to a relative `_PRECISION` or as far as `_SWEEPS` sweeps got."""

    share: Floats
    """float64[K, M]: load of each class that each member would have."""
    bound: float
    """No assignment has a highest level below this: some classes' load over all the capacity that may read them."""


def fractional_spread(load: Floats, eligible: Bools, capacity: Floats) -> FractionalSpread:
    """Spread classes of ``load`` (float64[K]) over members; each has to be ``eligible`` to somebody.

    O(K M log M) a sweep; one sweep when all classes have the same subscribers.
    """
    share = np.zeros(eligible.shape)
    readers = [np.flatnonzero(row) for row in eligible]
    level = np.zeros(len(capacity))
    bound = 0.0
    for _ in range(_SWEEPS):
        for class_, who in enumerate(readers):
            level[who] -= share[class_, who] / capacity[who]
            share[class_, who] = pour(load[class_], level[who], capacity[who])
            level[who] += share[class_, who] / capacity[who]
        bound = max(bound, _cut(load, eligible, capacity, level))
        if len(load) <= 1 or level.max(initial=0.0) <= bound * (1 + _PRECISION):
            break
    return FractionalSpread(share, bound)


def lower_bound(weight: Floats, fastest: Floats, capacity: Floats, fractional: float) -> float:
    """The highest level that cannot be avoided, where partitions cannot be divided.

    ``weight`` float64[P], ``fastest`` float64[P] the highest capacity among those that may read each partition,
    ``capacity`` float64[M], ``fractional`` the bound of the divisible problem. Besides that: the heaviest partition on
    the fastest member; the j heaviest on the j fastest; and, of equal members, that of k M + 1 partitions somebody has
    k + 1. O(P log P).
    """
    if not len(weight) or not len(capacity):
        return 0.0
    heavy = np.sort(weight)[::-1]
    fast = np.sort(capacity)[::-1]
    few = min(len(heavy), len(fast))
    bound = max(
        fractional,
        float((weight / fastest).max()),
        float((np.cumsum(heavy[:few]) / np.cumsum(fast[:few])).max()),
    )
    if fast[0] == fast[-1]:
        upto = np.concatenate(([0.0], np.cumsum(heavy)))
        k = np.arange(1, min(64, (len(heavy) - 1) // len(fast)) + 1)
        pigeonhole = upto[k * len(fast) + 1] - upto[k * len(fast) - k]
        bound = max(bound, float(pigeonhole.max(initial=0.0) / fast[0]))
    return bound


def pour(load: float, level: Floats, capacity: Floats) -> Floats:
    """Pour a load over members at these levels: how much each gets when the lowest are filled up alike."""
    order = np.argsort(level, kind="stable")
    rising, wide = level[order], np.cumsum(capacity[order])
    # Filling everybody up to the level of the next one takes so much:
    volume = wide[:-1] * rising[1:] - np.cumsum(capacity[order] * rising)[:-1]
    lowest = int(np.searchsorted(volume, load, side="right"))
    surface = (load + float((capacity[order] * rising)[: lowest + 1].sum())) / wide[lowest]
    poured: Floats = np.maximum(surface - level, 0.0) * capacity
    return poured


def _cut(load: Floats, eligible: Bools, capacity: Floats, level: Floats) -> float:
    """The best bound among sets of classes that only members above some level may read."""
    lowest_reader = np.where(eligible, level, np.inf).min(axis=1)
    order = np.argsort(-lowest_reader, kind="stable")
    reached = np.logical_or.accumulate(eligible[order], axis=0) @ capacity
    return float((np.cumsum(load[order]) / reached).max(initial=0.0))
