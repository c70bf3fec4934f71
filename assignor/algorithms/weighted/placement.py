"""Placing partitions that nobody holds: the largest first, on whoever then has the least load for its capacity."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np

from loadwise.assignor.algorithms.weighted.working_assignment import WorkingAssignment
from loadwise.assignor.model import NOBODY, Floats, Ints

_CAPACITIES = 16
"""Up to so many different capacities there is a heap for each; with more, members are scanned."""


_Loads: TypeAlias = list[float] | Floats
"""float[M]: the loads so far, in the form that is read fastest: a list by heaps, an array by scans."""


def place_largest_first(working: WorkingAssignment, rows: Ints, ceiling: float) -> None:
    """Give every one of ``rows`` an owner, on its rack as long as that stays below the level ``ceiling``.

    A load that is only guessed could be many times as high, which hurts a slow member most. So guessed ones go, below
    the ceiling, to whoever then has the least sum of their squares for the square of its capacity.

    O(n log n + n K log M) at worst; O(n M) with more than `_CAPACITIES` different capacities.
    """
    if not len(rows):
        return
    rows = rows[np.argsort(-working.weight[rows], kind="stable")]
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
    after = working.owner.copy()
    after[rows] = owner
    working.assign_all(after)


class _Readers:
    """The members that may read each class of partitions, those on its racks or all, by what they have so far."""

    def __init__(self, working: WorkingAssignment, load: Floats, capacity: Floats) -> None:
        scan = len(np.unique(capacity)) > _CAPACITIES
        self.load: _Loads = load.copy() if scan else load.tolist()
        self._working, self._capacity = working, capacity
        self._known: dict[tuple[int, int], _Lightest | None] = {}

    def of(self, class_: int, pattern: int, *, near: bool) -> _Lightest | None:
        """All readers of a class; with ``near``, those on the racks of a pattern. None if there are none."""
        misplaced = self._working.misplaced
        if near and misplaced is None:
            return None
        key = (class_, pattern if near else NOBODY)
        if key not in self._known:
            readers = self._working.eligible[class_]
            members = np.flatnonzero(readers & ~misplaced[pattern] if near and misplaced is not None else readers)
            self._known[key] = _lightest(members, self.load, self._capacity) if len(members) else None
        return self._known[key]


class _Lightest(Protocol):
    """Some members, whose loads grow."""

    def after(self, weight: float) -> tuple[float, int]:
        """The lowest level that one of them would have with so much more load, and which one."""
        ...


def _lightest(members: Ints, load: _Loads, capacity: Floats) -> _Lightest:
    if isinstance(load, np.ndarray):
        return _Scan(members, load, capacity)
    distinct = np.unique(capacity[members])
    return _Heaps([(float(value), members[capacity[members] == value].tolist()) for value in distinct[::-1]], load)


class _Heaps:
    """A heap of members by load for each capacity. What a heap says of a load may be too low; its top is brought up."""

    def __init__(self, members: Sequence[tuple[float, list[int]]], load: list[float]) -> None:
        self._load = load
        self._heaps = []
        for capacity, alike in members:
            heap = [(load[member], member) for member in alike]
            heapq.heapify(heap)
            self._heaps.append((capacity, heap))

    def after(self, weight: float) -> tuple[float, int]:
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
    """All members looked at each time, for when there are too many capacities."""

    def __init__(self, members: Ints, load: Floats, capacity: Floats) -> None:
        self._load, self._members, self._capacity = load, members, capacity[members]

    def after(self, weight: float) -> tuple[float, int]:
        level = (self._load[self._members] + weight) / self._capacity
        best = int(np.argmin(level))
        return float(level[best]), int(self._members[best])
