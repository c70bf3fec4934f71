"""Move owned partitions away from members above their ceiling, and to members with hardly any load.

To lower the highest member, two ways are tried and the better one is used. An exchange gives one or two partitions to
another member for none, one or two. An ejection gives one partition to another member, which makes room by giving a
light set of its own partitions to members with room. The cost of either is the load taken from current owners.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadwise.assignor.algorithms.weighted.exchange import Choices, Sets, lowest
from loadwise.assignor.algorithms.weighted.subset import lightest_cover
from loadwise.assignor.algorithms.weighted.working_assignment import WorkingAssignment
from loadwise.assignor.model import NOBODY, Floats, Ints

_MATRIX = 300
"""The number of sets combined from each side of an exchange; with more, single partitions of this many weights."""
_EJECTED_BY = 8
"""The number of heaviest partitions of a member, and of other members, to try in an ejection."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Moves that lower the level of one member."""

    over: float
    """The highest level above the ceiling among all affected members afterwards."""
    cost: float
    """Load newly taken from live owners, minus the load that returns to them."""
    moves: tuple[tuple[Ints, int], ...]
    """Partitions of one member, and the member that gets them."""

    def better_than(self, other: _Plan | None) -> bool:
        return other is None or (self.over, self.cost) < (other.over, other.cost)


def lower_highest(
    working: WorkingAssignment, fair: float, ceiling: float, *, partners: int = 16, steps: int = 200
) -> None:
    """Move partitions from members above the level ``ceiling``, highest first, while that helps."""
    stuck = np.zeros(len(working.capacity), bool)
    choices = Choices(working, most=_MATRIX, thinned=_MATRIX + 1)
    for _ in range(steps):
        if working.exhausted:
            return
        level = np.where(stuck, -1.0, working.level)
        high = int(np.argmax(level))
        if level[high] <= ceiling * (1 + 1e-9):
            return
        if _cannot_be_helped(working, high, level[high] / (ceiling / fair)):
            stuck[high] = True
            continue
        best = _best_plan(working, choices, high, ceiling, partners)
        if best is None or best.over > level[high] - ceiling - 1e-3 * ceiling:
            stuck[high] = True
            continue
        for rows, member in best.moves:
            choices.forget(*working.owner[rows[:1]].tolist(), member)
            working.move(rows, member)
        stuck[:] = False


def _cannot_be_helped(working: WorkingAssignment, member: int, level: float) -> bool:
    """Whether a single partition makes this level and the member is the fastest that can read it."""
    rows = working.rows(member)
    rows = rows[working.capacity[member] >= working.fastest[working.class_of[rows]]]
    return bool((working.weight[rows] >= level * working.capacity[member]).any())


def raise_lowest(working: WorkingAssignment, floor: float, ceiling: float) -> None:
    """Move single partitions from the highest members to members below ``floor`` until they reach it.

    No member falls below the floor or rises above ``ceiling`` because of it.
    """
    lows = np.flatnonzero(working.level < floor).tolist()
    if not lows:
        return
    lightest = _lightest(working)
    givers = _givers(working, lightest, floor)
    for low in lows:
        room = ceiling * working.capacity[low] - working.load[low]
        left, changed = givers[lightest[givers] <= room], False
        while len(left) and (missing := floor * working.capacity[low] - working.load[low]) > 0:
            high = int(left[np.argmax(working.load[left] / working.capacity[left])])
            spare = working.load[high] - floor * working.capacity[high]
            rows = np.sort(working.rows(high))
            weight = working.weight[rows]
            fits = (weight > 0) & (weight <= min(spare, ceiling * working.capacity[low] - working.load[low]))
            rows = rows[fits & working.eligible[working.class_of[rows], low]]
            if not len(rows):
                left = left[left != high]
                continue
            weight = working.weight[rows]
            # The largest step that does not overshoot, or the smallest one that does.
            chosen = (
                np.argmax(np.where(weight <= missing, weight, 0.0)) if weight.min() <= missing else np.argmin(weight)
            )
            working.move(rows[[chosen]], low)
            changed = True
            for member in (high, low):
                weight = working.weight[working.rows(member)]
                lightest[member] = weight[weight > 0].min(initial=np.inf)
        if changed:
            givers = _givers(working, lightest, floor)


def _lightest(working: WorkingAssignment) -> Floats:
    """float64[M]: the load of each member's lightest partition that has one; infinity without any."""
    lightest = np.full(len(working.capacity), np.inf)
    rows = np.flatnonzero((working.owner != NOBODY) & (working.weight > 0))
    np.minimum.at(lightest, working.owner[rows], working.weight[rows])
    return lightest


def _givers(working: WorkingAssignment, lightest: Floats, floor: float) -> Ints:
    """Return the members that stay at ``floor`` or above without their lightest partition."""
    return np.flatnonzero(lightest <= working.load - floor * working.capacity)


def give_to_empty(working: WorkingAssignment, epsilon: float, bearable: float) -> None:
    """Give every empty member a partition of a member that has two or more.

    It keeps one of its own; else the lightest is taken; among equals, one that moves anyway, then one of the member
    with the most. A member gets none if even this one would raise it above the level ``bearable`` and the highest level
    by more than ``epsilon`` of it. If its capacity is only assumed, it still gets one, because its capacity can then be
    measured. For each member, O(n) for the n partitions of members with two or more.
    """
    count = np.bincount(working.owner[working.owner != NOBODY], minlength=len(working.capacity))
    highest = max(float(working.level.max(initial=0.0)) * (1 + epsilon), bearable)
    spare = np.flatnonzero(count[working.owner] > 1)
    for empty in np.flatnonzero(count == 0).tolist():
        if not len(spare):
            break
        may_have = working.eligible[working.class_of[spare], empty]
        if working.capacity_known[empty]:
            may_have &= working.weight[spare] <= highest * working.capacity[empty]
        rows = spare[may_have]
        if len(rows):
            owner, others = working.owner[rows], working.current[rows] != empty
            order = np.lexsort((rows, -count[owner], working.current[rows] == owner, working.weight[rows], others))
            row = rows[order[0]]
            count[working.owner[row]] -= 1
            count[empty] = 1
            working.move(np.array([row]), empty)
            spare = spare[count[working.owner[spare]] > 1]


def _best_plan(working: WorkingAssignment, choices: Choices, high: int, ceiling: float, partners: int) -> _Plan | None:
    takers = lowest(working.level, partners).tolist()
    best: _Plan | None = None
    for low in takers:
        if low != high:
            even = (working.load[high] + working.load[low]) / (working.capacity[high] + working.capacity[low])
            if best is not None and even - ceiling > best.over:
                continue  # even a perfect exchange of these two would not be better
            plan = _exchange(working, choices, high, low, ceiling, best=best)
            best = plan if plan is not None and plan.better_than(best) else best
    rows = working.rows(high)
    heaviest = rows[np.lexsort((rows, -working.weight[rows]))][:_EJECTED_BY]
    for row in heaviest.tolist():
        remains = (working.load[high] - working.weight[row]) / working.capacity[high] - ceiling
        if best is not None and remains > best.over:
            break  # ejecting this one, or a lighter one, cannot be better
        for low in takers[:_EJECTED_BY]:
            if low != high and working.eligible[working.class_of[row], low]:
                ejection = _eject(working, high, row, low, ceiling)
                best = ejection if ejection is not None and ejection.better_than(best) else best
    return best


def _exchange(
    working: WorkingAssignment, choices: Choices, high: int, low: int, ceiling: float, *, best: _Plan | None
) -> _Plan | None:
    """Return the best exchange of two members; None if it is worse than ``best``."""
    down, up = choices.of(high, low), choices.of(low, high)
    moved = down.weight[:, np.newaxis] - up.weight
    working.spend(moved.size)
    over = np.maximum(
        (working.load[high] - moved) / working.capacity[high], (working.load[low] + moved) / working.capacity[low]
    )
    least = float(over.min())
    if best is not None and max(least - ceiling, 0.0) > best.over:
        return None
    i, j = np.nonzero(over <= max(least, ceiling))
    cost = _taken(working, down, high, low)[i] + _taken(working, up, low, high)[j]
    cheapest = int(np.argmin(cost))
    moves = ((down.set(int(i[cheapest])), low), (up.set(int(j[cheapest])), high))
    return _Plan(max(least - ceiling, 0.0), float(cost[cheapest]), moves)


def _eject(working: WorkingAssignment, high: int, row: int, low: int, ceiling: float) -> _Plan | None:
    """Give ``row`` to ``low``, which passes lighter partitions on to the others."""
    weight = float(working.weight[row])
    rows = np.sort(working.rows(low))
    working.spend(len(rows))
    lighter = rows[(working.weight[rows] < weight) & (working.weight[rows] > 0)]
    amount = working.load[low] + weight - ceiling * working.capacity[low]
    most = 2 * _EJECTED_BY
    if len(lighter) > most and np.partition(working.weight[lighter], -most)[-most:].sum() < amount:
        return None  # more than allowed would have to go
    ejected = lighter[lightest_cover(working.weight[lighter], amount, tries=2)]
    if len(ejected) > most:
        return None
    load = working.load.copy()
    load[high] -= weight
    load[low] += weight - float(working.weight[ejected].sum())
    moves = [(np.array([row]), low)]
    concerned = {high, low}
    cost = _taken_one(working, row, high, low)
    for light in ejected[np.argsort(-working.weight[ejected], kind="stable")].tolist():
        level = np.where(
            working.eligible[working.class_of[light]], (load + working.weight[light]) / working.capacity, np.inf
        )
        level[low] = np.inf
        member = int(np.argmin(level))
        current = int(working.current[light])
        if current != NOBODY and level[current] <= ceiling:
            member = current
        if level[member] == np.inf:
            return None
        load[member] += working.weight[light]
        moves.append((np.array([light]), member))
        concerned.add(member)
        cost += _taken_one(working, light, low, member)
    who = sorted(concerned)
    over = max(0.0, float((load[who] / working.capacity[who]).max()) - ceiling)
    return _Plan(over, cost, tuple(moves))


def _taken(working: WorkingAssignment, sets: Sets, giver: int, taker: int) -> Floats:
    """float64[n]: load taken from current owners, minus what returns to them, for each set of partitions."""
    current = np.where(sets.rows >= 0, working.current[sets.rows], NOBODY)
    weight = np.where(sets.rows >= 0, working.weight[sets.rows], 0.0)
    cost: Floats = (weight * ((current == giver) * 1.0 - (current == taker))).sum(axis=1)
    return cost


def _taken_one(working: WorkingAssignment, row: int, giver: int, taker: int) -> float:
    current = int(working.current[row])
    return float(working.weight[row]) * ((current == giver) - (current == taker))
