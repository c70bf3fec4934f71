"""Finds the placement to plan, by three aims in this order, each without giving up those before it.

1. Brokers exceed their goal by the least factor, the stretch.
2. The least load is outside of the share plus and minus a tenth, of all brokers and resources together.
3. The fewest bytes move.

Pure.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from loadwise.balance.bounds import LEAST, Bounds
from loadwise.balance.budget import within
from loadwise.balance.limits import Limits
from loadwise.balance.placement import Placement
from loadwise.balance.restoring import restore
from loadwise.balance.search import relieve
from loadwise.balance.ways import Aim, AllWays, tried

_FEW, _SOME = 20, 100
"""Partitions: of few, all is tried; of some, only if single changes and those of pairs do not suffice."""
_FEW_TRIED, _SOME_TRIED = 2_000_000, 5_000_000
"""The same of ways to place pairs of partitions: more take longer than a person waits."""
_EASE = 0.014
"""What may be given up of the first two aims: it spares many bytes."""


def placed(limits: Limits, start: Placement, most_bytes: float = math.inf) -> Placement:
    """The placement that is as near to the limits as can be, and moves few bytes: at most ``most_bytes``."""
    ways = _all_ways(start)
    if ways is None:
        found = _near(start, limits.at_mean(1.0))
        if limits.stretch(found.load) <= 1.0 + LEAST:
            return within(found, limits.at_mean(1.0), most_bytes)
    near = _near(start, limits.at_goal)
    stretch = limits.stretch(near.load)
    if ways is not None and stretch > 1.0:
        near = _best(limits.stretches, [near], start, ways)
        stretch = limits.stretch(near.load)
    bounds = limits.at_mean(stretch)
    found = _nearest(start, bounds, near, ways)
    excess = found.excess(bounds)
    if ways is not None and excess > LEAST:
        bounds = replace(limits.at_mean(stretch + _EASE * (stretch > 1.0)), allowed=excess + _EASE)
        found = _best(bounds.total_excess, [found], start, ways)
    stated = limits.stated
    best = min(near, found, key=lambda each: (each.excess(stated), *_worth(each, aim=bounds.total_excess)))
    return within(best, bounds, most_bytes)


def _all_ways(start: Placement) -> AllWays | None:
    """All ways to place each partition, if they are few enough to try."""
    return AllWays(start) if 1 < len(start.before) <= _SOME and tried(start) <= _SOME_TRIED else None


def _nearest(start: Placement, bounds: Bounds, found: Placement, ways: AllWays | None) -> Placement:
    """The placement that is nearest to the bounds, given one that was found before."""
    within = found.excess(bounds) <= LEAST
    others = [found] if within else [found, _near(start, bounds)]
    aim = bounds.total_excess
    some = len(start.before) > _FEW or tried(start) > _FEW_TRIED
    if ways is None or (within and some):
        return min(others, key=partial(_worth, aim=aim))
    return _best(aim, others, start, ways)


def _near(start: Placement, bounds: Bounds) -> Placement:
    """The placement that single changes lead to."""
    found = start.copy()
    relieve(found, bounds)
    restore(found, bounds)
    return found


def _best(aim: Aim, found: list[Placement], start: Placement, ways: AllWays) -> Placement:
    """The best of these placements and of all that annealing finds."""
    every = [*found, *ways.annealed(start, aim)]
    for each in every:
        ways.improve(each, aim)
    return min(every, key=partial(_worth, aim=aim))


def _worth(placement: Placement, *, aim: Aim) -> tuple[float, float, int]:
    """The lower the better."""
    return max(float(aim(placement.load)) - LEAST, 0.0), placement.moved_bytes(), len(placement.changed())
