"""Finds a placement within the limits, or else within limits that are stretched as little as possible.

Pure.
"""

from __future__ import annotations

from functools import partial

from loadwise.balance.bounds import LEAST, Bounds
from loadwise.balance.limits import Limits
from loadwise.balance.placement import Placement
from loadwise.balance.search import relieve, restore
from loadwise.balance.ways import AllWays, tried

_FEW, _SOME = 20, 100
"""Partitions: of few, all is tried; of some, pairs, and beams only if pairs do not suffice."""
_FEW_TRIED, _SOME_TRIED = 2_000_000, 5_000_000
"""The same of ways to place pairs of partitions: more take longer than a person waits."""
_CLOSE = 0.004
"""How near the stretch comes to the least one."""
_EASE = 1.014
"""What limits are stretched by beyond that: it spares many bytes."""


def placed(limits: Limits, start: Placement) -> Placement:
    """The placement that is within the limits, or near them, and then as low as it can be on each broker."""
    ways = all_ways(start)
    found = placed_within(limits, start, ways)
    load = found.load * limits.unit
    closer = limits.closer(load, found.heaviest_on())
    if found.excess(closer) <= LEAST:
        return found
    lower = _near(found, closer, ways)
    if ways is not None:
        lower = min(lower, _among_all(start, closer, ways), key=partial(_worth, bounds=closer))
    stated = limits.stated
    return min(found, lower, key=lambda each: (each.excess(stated), *_worth(each, bounds=closer)))


def all_ways(start: Placement) -> AllWays | None:
    """All ways to place each partition, if they are few enough to try."""
    return AllWays(start) if 1 < len(start.before) <= _SOME and tried(start) <= _SOME_TRIED else None


def placed_within(limits: Limits, start: Placement, ways: AllWays | None) -> Placement:
    """The placement that moves few bytes and is within the limits, if there is one."""
    partitions = len(start.before)
    within = limits.at(1.0)
    if ways is None:
        return _near(start, within, ways)
    if partitions > _FEW or tried(start) > _FEW_TRIED:
        found = _near(start, within, ways)
        return found if found.excess(within) <= LEAST else _among_all(start, within, ways)
    found = _among_all(start, within, ways)
    if found.excess(within) <= LEAST:
        return found
    least, most = 1.0, limits.stretch(found.load * limits.unit)
    while most - least > _CLOSE:
        middle = (least + most) / 2
        other = _quickly(start, limits.at(middle), ways)
        reached = limits.stretch(other.load * limits.unit)
        if reached > middle + LEAST:
            least = middle
        if reached < most:
            found, most = other, reached
    eased = limits.at(most * _EASE)
    return min(found, _among_all(start, eased, ways), key=partial(_worth, bounds=eased))


def _near(start: Placement, bounds: Bounds, ways: AllWays | None) -> Placement:
    """The placement that single changes lead to, and then changes of pairs."""
    found = start.copy()
    relieve(found, bounds)
    restore(found, bounds)
    if ways is not None:
        ways.improve(found, bounds)
    return found


def _quickly(start: Placement, bounds: Bounds, ways: AllWays) -> Placement:
    """A placement within the bounds, or else the nearest of a few beams: bytes hardly count."""
    best = _near(start, bounds, ways)
    for base in (start, None):
        if best.excess(bounds) <= LEAST:
            break
        beams = [ways.beam(base or best, bounds, order, ways.prices[-1]) for order in ways.orders]
        found = min(beams, key=partial(_worth, bounds=bounds))
        ways.improve(found, bounds)
        best = min(best, found, key=partial(_worth, bounds=bounds))
    return best


def _among_all(start: Placement, bounds: Bounds, ways: AllWays) -> Placement:
    """The best placement of all beams: first those from the start, then those from what these found."""
    worth = partial(_worth, bounds=bounds)
    best = _near(start, bounds, ways)
    for base in (start, None):
        for price in ways.prices:
            found = min((ways.beam(base or best, bounds, order, price) for order in ways.orders), key=worth)
            ways.improve(found, bounds)
            best = min(best, found, key=worth)
    return best


def _worth(placement: Placement, *, bounds: Bounds) -> tuple[float, float, int]:
    """The lower the better."""
    return (
        max(placement.excess(bounds) - LEAST, 0.0),
        placement.moved_bytes(),
        len(placement.changed()),
    )
