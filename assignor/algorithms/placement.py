"""Placing partitions that nobody holds: the largest first, on whoever then has the least load for its capacity."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np

from loadwise.assignor.algorithms.board import Board
from loadwise.assignor.model import Floats, Ints

_CAPACITIES = 16
"""Up to so many different capacities there is a heap for each; with more, members are scanned."""


_Loads: TypeAlias = list[float] | Floats
"""float[M]: the loads so far, in the form that is read fastest: a list by heaps, an array by scans."""


def place(board: Board, rows: Ints, ceiling: float) -> None:
    """Give every one of ``rows`` an owner, on its rack as long as that stays below the level ``ceiling``.

    O(n log n + n K log M) at worst; O(n M) with more than `_CAPACITIES` different capacities.
    """
    if not len(rows):
        return
    rows = rows[np.argsort(-board.weight[rows], kind="stable")]
    scan = len(np.unique(board.capacity)) > _CAPACITIES
    load: _Loads = board.load.copy() if scan else board.load.tolist()
    anywhere = [_lightest(np.flatnonzero(readers), load, board.capacity) for readers in board.eligible]
    near: dict[tuple[int, int], _Lightest | None] = {}
    owner = []
    classes, patterns = board.class_of[rows].tolist(), board.pattern_of[rows].tolist()
    for weight, class_, pattern in zip(board.weight[rows].tolist(), classes, patterns, strict=True):
        member = -1
        if board.misplaced is not None:
            if (class_, pattern) not in near:
                local = np.flatnonzero(board.eligible[class_] & ~board.misplaced[pattern])
                near[class_, pattern] = _lightest(local, load, board.capacity) if len(local) else None
            readers = near[class_, pattern]
            if readers is not None:
                level, member = readers.after(weight)
                if level > ceiling:
                    member = -1
        if member < 0:
            _, member = anywhere[class_].after(weight)
        owner.append(member)
        load[member] += weight
    after = board.owner.copy()
    after[rows] = owner
    board.assign_all(after)


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
