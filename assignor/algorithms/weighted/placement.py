"""Place unowned partitions, the largest first, on the member with the least load for its capacity.

If few partitions have about the same load, each is placed separately. Otherwise they are placed together: each member
gets as many as bring all members to the same level, and an even sample of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from loadwise.assignor.algorithms.weighted.working_assignment import WorkingAssignment
from loadwise.assignor.bounds import pour
from loadwise.assignor.model import NOBODY, Floats, Ints

_CAPACITIES = 16
"""Up to this many different capacities there is a heap for each; with more, members are scanned."""
_MANY = 64
"""The least number of partitions of about the same load that are placed together."""
_ABOUT = 1.5
"""The ratio up to which the largest and the smallest load are about the same."""
_FINE = 4
"""The number of smallest partitions for each member that are placed one by one, to level out the rest."""


_Loads: TypeAlias = list[float] | Floats
"""float[M]: the current loads in the form that is fastest to read: a list for heaps, an array for scans."""


def place_largest_first(working: WorkingAssignment, rows: Ints, ceiling: float) -> None:
    """Assign each of ``rows`` an owner, on its rack while that stays below the level ``ceiling``.

    O(n log n) if many have about the same load. O(n K log M) if few have, if racks matter, or if loads are estimated;
    then O(n M) with more than `_CAPACITIES` different capacities.
    """
    if not len(rows):
        return
    rows = rows[_descending(working.weight[rows])]
    if working.misplaced is not None or working.guessed[rows].any():
        _place_each(working, rows, ceiling)
        return
    single = 0  # the first of those that will be placed one by one
    for start, stop in _alike(working.weight[rows], len(rows) - _FINE * len(working.capacity)):
        if single < start:
            _place_each(working, rows[single:start], ceiling)
        _place_together(working, rows[start:stop])
        single = stop
    if single < len(rows):
        _place_each(working, rows[single:], ceiling)


def _descending(weight: Floats) -> Ints:
    """Return the stable order from the largest down; several times as fast as a stable sort of floats."""
    order = np.argsort(-weight)
    ordered = weight[order]
    steps = ordered[1:] != ordered[:-1]
    if steps.all():
        return order
    run = np.concatenate(([0], np.cumsum(steps))) * len(order)  # the lower row first where numbers are equal
    stable: Ints = np.sort(run + order) - run
    return stable


def _alike(descending: Floats, end: int) -> Iterator[tuple[int, int]]:
    """Yield runs of at least `_MANY` loads that are about the same, before ``end``."""
    start = 0
    while start < end:
        stop = int(np.searchsorted(-descending, -descending[start] / _ABOUT, side="right"))
        stop = min(stop, end)
        if stop - start >= _MANY:
            yield start, stop
        start = stop


def _place_together(working: WorkingAssignment, rows: Ints) -> None:
    """Place partitions of about the same load, those with the fewest possible readers first."""
    classes = np.unique(working.class_of[rows])
    for class_ in classes[np.argsort(working.eligible[classes].sum(axis=1), kind="stable")].tolist():
        alike = rows[working.class_of[rows] == class_] if len(classes) > 1 else rows
        readers = np.flatnonzero(working.eligible[class_])
        level = working.level[readers]
        weight = working.weight[alike]
        wanted = pour(float(weight.sum()), level, working.capacity[readers]) / weight.mean()
        count = np.floor(wanted * (1 - 1e-12)).astype(np.int64)
        rounded_up = np.argsort(count - wanted, kind="stable")[: len(alike) - int(count.sum())]
        count[rounded_up] += 1
        lowest_first = np.argsort(level, kind="stable")
        count = count[lowest_first]
        # A member that gets n of them gets one of each n-th part, from the largest load to the smallest.
        nth = np.arange(len(alike)) - np.repeat(np.cumsum(count) - count, count)
        sample = np.argsort((nth + 0.5) / np.repeat(count, count), kind="stable")
        working.give(alike, np.repeat(readers[lowest_first], count)[sample])


def _place_each(working: WorkingAssignment, rows: Ints, ceiling: float) -> None:
    """Place partitions one by one.

    The true load may be many times the estimate, which hurts a slow member most. So partitions with an estimated load
    go, below the ceiling, to the member with the least sum of squared loads relative to its squared capacity.
    """
    risky = np.where(working.guessed, working.weight, 0.0) ** 2
    held = working.owner != NOBODY
    by_load = _Readers(working, working.load, working.capacity)
    by_risk = _Readers(
        working,
        np.bincount(working.owner[held], risky[held], len(working.capacity)).astype(np.float64),
        working.capacity**2,
    )
    capacity: list[float] = working.capacity.tolist()
    owner = []
    for weight, risk, class_, pattern in zip(
        working.weight[rows].tolist(),
        risky[rows].tolist(),
        working.class_of[rows].tolist(),
        working.pattern_of[rows].tolist(),
        strict=True,
    ):
        for near in (True, False):
            readers = by_load.of(class_, pattern, near=near)
            if readers is None:
                continue
            level, member = readers.after(weight)
            if risk and level <= ceiling:
                careful = by_risk.of(class_, pattern, near=near)
                if careful is not None:
                    _, safest = careful.after(risk)
                    if by_load.load[safest] + weight <= ceiling * capacity[safest]:
                        member = safest
            if level <= ceiling:
                break
        owner.append(member)
        by_load.load[member] += weight
        by_risk.load[member] += risk
    working.give(rows, np.array(owner, np.int32))


class _Readers:
    """The possible readers of each class of partitions, on its racks or all, by current load."""

    def __init__(self, working: WorkingAssignment, load: Floats, capacity: Floats) -> None:
        scan = len(np.unique(capacity)) > _CAPACITIES
        self.load: _Loads = load.copy() if scan else load.tolist()
        self._working, self._capacity = working, capacity
        self._known: dict[tuple[int, int], _Heaps | _Scan | None] = {}

    def of(self, class_: int, pattern: int, *, near: bool) -> _Heaps | _Scan | None:
        """Return all readers of a class; with ``near``, those on the racks of a pattern. None if there are none."""
        misplaced = self._working.misplaced
        if near and misplaced is None:
            return None
        key = (class_, pattern if near else NOBODY)
        if key not in self._known:
            readers = self._working.eligible[class_]
            members = np.flatnonzero(readers & ~misplaced[pattern] if near and misplaced is not None else readers)
            self._known[key] = _by_load(members, self.load, self._capacity) if len(members) else None
        return self._known[key]


def _by_load(members: Ints, load: _Loads, capacity: Floats) -> _Heaps | _Scan:
    if isinstance(load, np.ndarray):
        return _Scan(members, load, capacity)
    distinct = np.unique(capacity[members])
    return _Heaps([(float(value), members[capacity[members] == value].tolist()) for value in distinct[::-1]], load)


class _Heaps:
    """A heap of members by load for each capacity. Loads in a heap may be too low; the top is updated first."""

    def __init__(self, members: Sequence[tuple[float, list[int]]], load: list[float]) -> None:
        self._load = load
        self._heaps = []
        for capacity, alike in members:
            heap = [(load[member], member) for member in alike]
            heapq.heapify(heap)
            self._heaps.append((capacity, heap))

    def after(self, weight: float) -> tuple[float, int]:
        """Return the lowest level of a member after adding this load, and the member."""
        load = self._load
        best, lightest = float("inf"), -1
        for capacity, heap in self._heaps:
            value, member = heap[0]
            while value != load[member]:
                heapq.heapreplace(heap, (load[member], member))
                value, member = heap[0]
            level = (value + weight) / capacity
            if level < best:
                best, lightest = level, member
        return best, lightest


class _Scan:
    """A scan of all members on each call, for many different capacities."""

    def __init__(self, members: Ints, load: Floats, capacity: Floats) -> None:
        self._load, self._members, self._capacity = load, members, capacity[members]

    def after(self, weight: float) -> tuple[float, int]:
        """As `_Heaps.after`."""
        level = (self._load[self._members] + weight) / self._capacity
        best = int(np.argmin(level))
        return float(level[best]), int(self._members[best])
