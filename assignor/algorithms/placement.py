"""Placing partitions that nobody holds: the largest first, on whoever then has the least load for its capacity."""

from __future__ import annotations

import heapq

import numpy as np

from loadwise.assignor.algorithms.board import Board
from loadwise.assignor.model import NOBODY, Floats, Ints


def place(board: Board, rows: Ints, ceiling: float) -> None:
    """Give every one of ``rows`` an owner, on its rack as long as that stays below the level ``ceiling``.

    O(n log n + n log M) for equal subscriptions and capacities; O(n M) otherwise.
    """
    if not len(rows):
        return
    rows = rows[np.argsort(-board.weight[rows], kind="stable")]
    if board.misplaced is None and len(board.eligible) == 1 and board.eligible.all() and np.ptp(board.capacity) == 0:
        owner = np.array(_to_the_lightest(board.load, board.weight[rows]))
    else:
        owner = _one_by_one(board, rows, ceiling)
    after = board.owner.copy()
    after[rows] = owner
    board.assign_all(after)


def _to_the_lightest(load: Floats, weight: Floats) -> list[int]:
    heap = [(value, member) for member, value in enumerate(load.tolist())]
    heapq.heapify(heap)
    owner = []
    for value in weight.tolist():
        lightest, member = heap[0]
        owner.append(member)
        heapq.heapreplace(heap, (lightest + value, member))
    return owner


def _one_by_one(board: Board, rows: Ints, ceiling: float) -> Ints:
    load, capacity = board.load.copy(), board.capacity
    readers = [np.flatnonzero(row) for row in board.eligible]
    owner = np.full(len(rows), NOBODY)
    local: dict[tuple[int, int], Ints] = {}
    classes, patterns = board.class_of[rows].tolist(), board.pattern_of[rows].tolist()
    for index, weight in enumerate(board.weight[rows].tolist()):
        class_, pattern = classes[index], patterns[index]
        near = readers[class_]
        if board.misplaced is not None:
            key = (class_, pattern)
            if key not in local:
                local[key] = near[~board.misplaced[pattern, near]]
            near = local[key]
        member = -1
        if len(near):
            level = (load[near] + weight) / capacity[near]
            best = int(np.argmin(level))
            if level[best] <= ceiling or board.misplaced is None:
                member = int(near[best])
        if member < 0:
            near = readers[class_]
            member = int(near[np.argmin((load[near] + weight) / capacity[near])])
        owner[index] = member
        load[member] += weight
    return owner
