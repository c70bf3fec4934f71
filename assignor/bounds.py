"""Lower bounds for the highest load of a member.

If partitions were divisible, the load of each class of topics (same subscribers) would be spread over its subscribers
until no shift lowered the highest level (load relative to capacity). This is a convex problem. Pouring one class after
the other over its subscribers, like water that finds its level, converges to the solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadwise.assignor.model import Bools, Floats

_SWEEPS = 100
_PRECISION = 1e-4


@dataclass(frozen=True, eq=False, slots=True)
class FractionalSpread:
    """The solution of the divisible problem, to a relative `_PRECISION` or after `_SWEEPS` sweeps."""

    share: Floats
    """float64[K, M]: the load that each member gets from each class."""
    bound: float
    """A lower bound of the highest level: the load of some classes over the capacity of all their subscribers."""


def fractional_spread(load: Floats, eligible: Bools, capacity: Floats) -> FractionalSpread:
    """Spread classes of ``load`` (float64[K]) over members; each class needs an ``eligible`` member.

    O(K M log M) a sweep. One sweep is enough if all classes have the same subscribers.
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
    """Return a lower bound of the highest level for partitions that cannot be divided.

    ``weight`` is float64[P], ``fastest`` float64[P] the highest capacity among the subscribers of each partition,
    ``capacity`` float64[M], ``fractional`` the bound of the divisible problem. Further bounds are the heaviest
    partition on the fastest member and the j heaviest on the j fastest. If all members are equal, one of them gets
    k + 1 of k M + 1 partitions. O(P log P).
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
    """Return how much of a load each member gets when the lowest levels are filled up evenly."""
    order = np.argsort(level, kind="stable")
    rising, wide = level[order], np.cumsum(capacity[order])
    # The load that it takes to fill all lower members up to the level of the next one.
    volume = wide[:-1] * rising[1:] - np.cumsum(capacity[order] * rising)[:-1]
    lowest = int(np.searchsorted(volume, load, side="right"))
    surface = (load + float((capacity[order] * rising)[: lowest + 1].sum())) / wide[lowest]
    poured: Floats = np.maximum(surface - level, 0.0) * capacity
    return poured


def _cut(load: Floats, eligible: Bools, capacity: Floats, level: Floats) -> float:
    """Return the best bound over sets of classes that only members above some level may read."""
    lowest_reader = np.where(eligible, level, np.inf).min(axis=1)
    order = np.argsort(-lowest_reader, kind="stable")
    reached = np.logical_or.accumulate(eligible[order], axis=0) @ capacity
    return float((np.cumsum(load[order]) / reached).max(initial=0.0))
