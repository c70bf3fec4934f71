"""Moving partitions that are owned: down from members that are too high, and up to those that have hardly anything.

Two ways are tried to relieve the highest member, and the better one is taken. An exchange with another member: one or
two partitions for none, one or two. Or an ejection: one partition goes to another member, which makes room for it by
handing a light set of its own on to whoever has room. What is taken from live owners is what it costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadwise.assignor.algorithms.board import Board
from loadwise.assignor.algorithms.exchange import Choices, Sets
from loadwise.assignor.algorithms.shedding import least_over
from loadwise.assignor.model import NOBODY, Floats, Ints

_MATRIX = 300
"""So many sets of each side of an exchange are combined; where there are more, single partitions of so many weights."""
_EJECTED_BY = 8
"""So many of the heaviest partitions of a member, and so many other members, are tried in an ejection."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Moves that relieve a member."""

    over: float
    """The highest level above the ceiling among all members concerned, afterwards."""
    cost: float
    """Load newly taken from live owners, less what goes back to them."""
    moves: tuple[tuple[Ints, int], ...]
    """Partitions of one member, and the member that they go to."""

    def better_than(self, other: _Plan | None) -> bool:
        return other is None or (self.over, self.cost) < (other.over, other.cost)


def relieve(board: Board, fair: float, ceiling: float, *, partners: int = 16, steps: int = 200) -> None:
    """Move partitions from members above the level ``ceiling``, highest first, for as long as that helps."""
    stuck = np.zeros(len(board.capacity), bool)
    choices = Choices(board, most=_MATRIX, thinned=_MATRIX + 1)
    for _ in range(steps):
        level = np.where(stuck, -1.0, board.level)
        high = int(np.argmax(level))
        if level[high] <= ceiling * (1 + 1e-9):
            return
        if _cannot_be_helped(board, high, level[high] / (ceiling / fair)):
            stuck[high] = True
            continue
        best = _best_plan(board, choices, high, ceiling, partners)
        if best is None or best.over > level[high] - ceiling - 1e-3 * ceiling:
            stuck[high] = True
            continue
        for rows, member in best.moves:
            choices.forget(*board.owner[rows[:1]].tolist(), member)
            board.move(rows, member)
        stuck[:] = False


def _cannot_be_helped(board: Board, member: int, level: float) -> bool:
    """Whether it has a partition that alone makes for such a level, and is the fastest one that can read it."""
    rows = board.rows(member)
    rows = rows[board.capacity[member] >= board.fastest[board.class_of[rows]]]
    return bool((board.weight[rows] >= level * board.capacity[member]).any())


def fill(board: Board, floor: float, ceiling: float) -> None:
    """Give members below the level ``floor`` partitions of the highest ones, one by one, until they reach it.

    Nobody falls below the floor or rises above ``ceiling`` by that.
    """
    for low in np.flatnonzero(board.level < floor).tolist():
        may_give = np.ones(len(board.capacity), bool)
        while (missing := floor * board.capacity[low] - board.load[low]) > 0:
            high = int(np.argmax(np.where(may_give, board.level, -1.0)))
            spare = board.load[high] - floor * board.capacity[high]
            if not may_give[high] or spare <= 0:
                break
            rows = np.sort(board.rows(high))
            weight = board.weight[rows]
            fits = (weight > 0) & (weight <= min(spare, ceiling * board.capacity[low] - board.load[low]))
            rows = rows[fits & board.eligible[board.class_of[rows], low]]
            if not len(rows):
                may_give[high] = False
                continue
            weight = board.weight[rows]
            # The largest step that does not go too far, or the smallest one that does.
            chosen = (
                np.argmax(np.where(weight <= missing, weight, 0.0)) if weight.min() <= missing else np.argmin(weight)
            )
            board.move(rows[[chosen]], low)


def _best_plan(board: Board, choices: Choices, high: int, ceiling: float, partners: int) -> _Plan | None:
    lowest = np.argsort(board.level, kind="stable")[:partners].tolist()
    best: _Plan | None = None
    for low in lowest:
        if low != high:
            even = (board.load[high] + board.load[low]) / (board.capacity[high] + board.capacity[low])
            if best is not None and even - ceiling > best.over:
                continue  # not even a perfect exchange of these two would be better
            plan = _exchange(board, choices, high, low, ceiling)
            best = plan if plan.better_than(best) else best
    rows = board.rows(high)
    heaviest = rows[np.lexsort((rows, -board.weight[rows]))][:_EJECTED_BY]
    for row in heaviest.tolist():
        remains = (board.load[high] - board.weight[row]) / board.capacity[high] - ceiling
        if best is not None and remains > best.over:
            break  # ejecting this one, or a lighter one, cannot be better
        for low in lowest[:_EJECTED_BY]:
            if low != high and board.eligible[board.class_of[row], low]:
                ejection = _eject(board, high, row, low, ceiling)
                best = ejection if ejection is not None and ejection.better_than(best) else best
    return best


def _exchange(board: Board, choices: Choices, high: int, low: int, ceiling: float) -> _Plan:
    down, up = choices.of(high, low), choices.of(low, high)
    moved = down.weight[:, np.newaxis] - up.weight
    over = np.maximum(
        (board.load[high] - moved) / board.capacity[high], (board.load[low] + moved) / board.capacity[low]
    )
    over = np.maximum(over - ceiling, 0.0)
    cost = _taken(board, down, high, low)[:, np.newaxis] + _taken(board, up, low, high)
    i, j = np.unravel_index(np.argmin(np.where(over <= over.min(), cost, np.inf)), over.shape)
    return _Plan(float(over[i, j]), float(cost[i, j]), ((down.set(int(i)), low), (up.set(int(j)), high)))


def _eject(board: Board, high: int, row: int, low: int, ceiling: float) -> _Plan | None:
    """Give ``row`` to ``low``, which hands lighter partitions on to the others."""
    weight = float(board.weight[row])
    rows = np.sort(board.rows(low))
    lighter = rows[(board.weight[rows] < weight) & (board.weight[rows] > 0)]
    amount = board.load[low] + weight - ceiling * board.capacity[low]
    most = 2 * _EJECTED_BY
    if len(lighter) > most and np.partition(board.weight[lighter], -most)[-most:].sum() < amount:
        return None  # more would have to go than may
    ejected = lighter[least_over(board.weight[lighter], amount, tries=2)]
    if len(ejected) > most:
        return None
    load = board.load.copy()
    load[high] -= weight
    load[low] += weight - float(board.weight[ejected].sum())
    moves = [(np.array([row]), low)]
    concerned = {high, low}
    cost = _taken_one(board, row, high, low)
    for light in ejected[np.argsort(-board.weight[ejected], kind="stable")].tolist():
        level = np.where(board.eligible[board.class_of[light]], (load + board.weight[light]) / board.capacity, np.inf)
        level[low] = np.inf
        member = int(np.argmin(level))
        home = int(board.home[light])
        if home != NOBODY and level[home] <= ceiling:
            member = home
        if level[member] == np.inf:
            return None
        load[member] += board.weight[light]
        moves.append((np.array([light]), member))
        concerned.add(member)
        cost += _taken_one(board, light, low, member)
    who = sorted(concerned)
    over = max(0.0, float((load[who] / board.capacity[who]).max()) - ceiling)
    return _Plan(over, cost, tuple(moves))


def _taken(board: Board, sets: Sets, giver: int, taker: int) -> Floats:
    """float64[n]: load newly taken from live owners, less what goes home, for each set of partitions."""
    home = np.where(sets.rows >= 0, board.home[sets.rows], NOBODY)
    weight = np.where(sets.rows >= 0, board.weight[sets.rows], 0.0)
    cost: Floats = (weight * ((home == giver) * 1.0 - (home == taker))).sum(axis=1)
    return cost


def _taken_one(board: Board, row: int, giver: int, taker: int) -> float:
    home = int(board.home[row])
    return float(board.weight[row]) * ((home == giver) - (home == taker))
