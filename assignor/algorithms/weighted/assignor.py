"""Weighted: equal load for equal capacity, with little moved.

The aims in order: every partition assigned; the highest level (load relative to capacity) within ``epsilon`` of the
possible; as little load as possible taken from live owners; the lower levels; partitions on their readers' racks, for
up to two per cent of the level; idle partitions spread by count.

Members keep what they own. Those above the bound release the lightest set of partitions that brings them back to it.
Unowned partitions are placed, the largest first. Partitions that move anyway are exchanged until the levels are even.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from loadwise.assignor.algorithms.sticky.assignor import sticky_owner
from loadwise.assignor.algorithms.weighted.even import lower_evenly
from loadwise.assignor.algorithms.weighted.exchange import exchange_moving
from loadwise.assignor.algorithms.weighted.placement import place_largest_first
from loadwise.assignor.algorithms.weighted.subset import lightest_cover
from loadwise.assignor.algorithms.weighted.transfers import give_to_empty, lower_highest, raise_lowest
from loadwise.assignor.algorithms.weighted.working_assignment import WorkingAssignment, scaled
from loadwise.assignor.bounds import fractional_spread, lower_bound
from loadwise.assignor.impute import guess
from loadwise.assignor.model import NOBODY, RECORDS_PER_S, Assignment, Floats, GroupSnapshot, Owners, Traits
from loadwise.assignor.staging import stage

_OF_ROOM = 0.2
"""In a nearly full group, the largest share of a member's free capacity at the fair share that being above it may use.
Without free capacity, the member would never drain a backlog."""
_SMALLEST_EPSILON = 0.01
"""The smallest tolerance: members may always be this far above the fair share."""
_EVEN = 5e-4
"""How near to the fair level an exchange of partitions that move anyway tries to get."""
_PER_PARTITION, _CALM = 0.3, 0.15
"""The least trigger of a group with one partition a member, and the most of it.

It is less with more partitions: then the noise of each evens out.
"""
_WORTH = 2e-3
"""The least improvement, as a share of the fair level, that is worth taking partitions from an owner."""
_FEW = 4
"""Up to this many members above the bound are also relieved one by one, besides shedding from all of them."""
_FEW_MOVES = 32
"""The same only if at most this many partitions must go, because each is chosen separately."""
_PASSES = 8
"""Maximum number of passes that improve the result again until it no longer changes."""
_ROUNDS = 4
"""Maximum number of times that the result is replaced by the second round of a cooperative rebalance."""
_BEARABLE = 0.5
"""The utilisation up to which no member is too slow for a partition, if load and capacity share a unit.
Its capacity may be underestimated, and shows only while it works."""
_LEAST = 2.0**-60
"""Loads below this part of the largest one count as 0: no sum with it shows them, and quotients stay in range."""
_RACK_SLACK = 0.01
"""How far above the fair level a member may get to read partitions on its rack."""


@dataclass(frozen=True, slots=True)
class Weighted:
    """``weighted`` and, staged, ``cooperative-weighted``."""

    name: ClassVar[str] = "weighted"
    traits: ClassVar[Traits] = Traits(owned=True, load=True, cooperative=True)

    epsilon: float = 0.05
    """How far above the fair share members may be once partitions move, as a share of it."""
    trigger: float = 0.05
    """How far above the fair share a member may be before partitions move; at least ``epsilon``."""
    floor: float = 0.5
    """Members below this part of the fair share, such as new ones, are filled up to it; 0: one partition."""

    def __post_init__(self) -> None:
        for name in ("epsilon", "trigger", "floor"):
            value = getattr(self, name)
            if not isinstance(value, int | float | np.number) or isinstance(value, bool):
                raise TypeError(f"{name} is {value!r}; it must be a number")
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} is {value}; it must be a finite number of 0 or more")
        if self.floor >= 1:
            raise ValueError(f"floor is {self.floor}; it must be below 1")
        if self.trigger < self.epsilon:
            raise ValueError(f"trigger is {self.trigger}; it must not be below epsilon, which is {self.epsilon}")

    def assign(self, group: GroupSnapshot) -> Assignment:
        """Return loads that are nearly equal relative to capacity.

        Without known loads, all partitions count equally. If capacities are equal, too, the result is `Sticky`'s.
        """
        weight = weights(group)
        if weight is None:
            return Assignment(group, sticky_owner(group, np.arange(group.size)))
        tight = self._leaving_room(group, weight)
        if tight != self:
            return tight.assign(group)
        is_utilisation = group.load_unit == RECORDS_PER_S
        bearable = _BEARABLE * float(group.capacity.max()) / float(weight.max()) if is_utilisation else 0.0
        up_to = group.even_up_to * float(group.capacity.max()) / float(weight.max())
        weight = scaled(weight)
        weight = np.where(weight < _LEAST, 0.0, weight)
        calm = min(_PER_PARTITION * len(group.members) / np.count_nonzero(weight), _CALM)
        if calm > self.trigger:
            return replace(self, trigger=calm).assign(group)
        working = WorkingAssignment(group, weight, _spread_idle(group, weight))
        fair = fair_level(working)
        if up_to:
            by_number = self.assign(replace(group, load=None, even_up_to=0.0)).owner
            at_most, good = self._ceiling(fair, up_to), fair * (1 + self.epsilon)
            level = lower_evenly(working, by_number, at_most=at_most, good=good)
            if level <= max(up_to, good):
                return Assignment(group, working.owner.copy())
            working.assign_all(working.current)
        answer = self._settled(working, fair, bearable)
        for _ in range(_ROUNDS):
            handed_out = stage(Assignment(group, answer)).owner
            if np.array_equal(handed_out, answer) or working.exhausted:
                break
            second = replace(group, owner=handed_out)
            working.settle(_spread_idle(second, weight))
            again = self._settled(working, fair, bearable, known=answer)
            if np.array_equal(again, answer):
                break
            answer = again
        return Assignment(group, answer)

    def _ceiling(self, fair: float, up_to: float) -> float:
        """Return the level above which members exchange partitions; ``up_to`` as of `GroupSnapshot.even_up_to`."""
        ceiling = fair * (1 + self.trigger)
        return max(ceiling, up_to) if up_to < math.inf else ceiling

    def _leaving_room(self, group: GroupSnapshot, weight: Floats) -> Weighted:
        """Return itself, or a stricter copy if the group is nearly full and load and capacity share a unit."""
        if group.load_unit != RECORDS_PER_S:
            return self
        load, capacity = float(weight.sum()), float(group.capacity.sum())
        epsilon = max(_OF_ROOM * (capacity - load) / load, _SMALLEST_EPSILON)
        if load > capacity or epsilon >= self.epsilon:
            return self
        return replace(self, epsilon=epsilon, trigger=epsilon + (self.trigger - self.epsilon))

    def _settled(
        self, working: WorkingAssignment, fair: float, bearable: float, *, known: Owners | None = None
    ) -> Owners:
        """Improve until the result, as the members' own partitions, improves no more; ``known`` is such a result."""
        for _ in range(_PASSES):
            owner = self._improve(working, fair)
            if not np.bincount(owner[owner != NOBODY], minlength=len(working.capacity)).all():
                working.assign_all(owner)
                give_to_empty(working, self.epsilon, bearable)
                owner = working.owner.copy()
            if np.array_equal(owner, working.current):
                break
            if working.exhausted:
                return owner
            if known is not None and np.array_equal(owner, known):
                return known
            working.settle(owner)
        return working.current

    def _improve(self, working: WorkingAssignment, fair: float) -> Owners:
        """Place unowned partitions; if members are still too high or low, move owned ones if that pays."""
        ceiling, floor = fair * (1 + self.trigger), fair * self.floor
        _place_and_exchange(working, fair)
        best = working.owner.copy()
        worth = Evaluation.of(working, ceiling, floor, fair)
        if worth.is_good:
            return best
        if worth.excess[0] > 0.0:  # a larger trigger decides when to act, not how far
            ceiling = fair * (1 + self.epsilon)
            worth = Evaluation.of(working, ceiling, floor, fair)
        starts = [best]
        if (working.sum_of(working.current) / working.capacity > (1 + self.trigger) * fair).any():
            few = _few_moves_do(working, _bearable(working, ceiling, fair))
            starts = [best, working.current] if few else [working.current]
        for start in starts:
            working.assign_all(start)
            if start is working.current:
                self._release_excess(working, fair)
                _place_and_exchange(working, fair)
            lower_highest(working, fair, ceiling)
            raise_lowest(working, floor, fair)
            state = Evaluation.of(working, ceiling, floor, fair)
            if state.pays_better_than(worth, ceiling / fair, self.trigger):
                best, worth = working.owner.copy(), state
        return best

    def _release_excess(self, working: WorkingAssignment, fair: float) -> None:
        for member in np.flatnonzero(working.level > (1 + self.trigger) * fair).tolist():
            rows = np.sort(working.rows(member))
            rows = rows[working.weight[rows] > 0]
            most = (1 + self.epsilon) * fair * working.capacity[member]
            giant = int(np.argmax(working.weight[rows]))
            if working.weight[rows[giant]] > most:
                most = float(working.weight[rows[giant]]) * (1 + self.epsilon)
                rows = np.delete(rows, giant)
            working.move(rows[lightest_cover(working.weight[rows], working.load[member] - most)], NOBODY)


def _spread_idle(group: GroupSnapshot, weight: Floats) -> Owners:
    """Assign partitions without load by count.

    Members keep theirs, unless one has more than twice its share or an empty one would get less than half.
    """
    owner = group.owner.copy()
    idle = np.flatnonzero(weight == 0)
    if len(idle):
        members = len(group.members)
        even = sticky_owner(group, idle)
        share = np.bincount(even, minlength=members)
        kept = np.where(owner[idle] == NOBODY, even, owner[idle])
        count = np.bincount(kept, minlength=members)
        is_new = np.bincount(owner[owner != NOBODY], minlength=members) == 0
        is_uneven = (count > 2 * share + 1).any() or (is_new & (count < share // 2)).any()
        owner[idle] = even if is_uneven else kept
    return owner


def _place_and_exchange(working: WorkingAssignment, fair: float) -> None:
    """Place unowned partitions, and exchange those that move anyway until the levels are even."""
    place_largest_first(working, np.flatnonzero(working.owner == NOBODY), fair * (1 + _RACK_SLACK))
    exchange_moving(working, fair * (1 + _EVEN), keep_local=True)


def _bearable(working: WorkingAssignment, ceiling: float, fair: float) -> Floats:
    """float64[M]: the ceiling, raised for a member that is the fastest for a partition too heavy for it."""
    bearable: Floats = np.maximum(ceiling, working.unavoidable() * (ceiling / fair))
    return bearable


def _few_moves_do(working: WorkingAssignment, ceiling: Floats) -> bool:
    """Whether few members are above their ceilings because of few heavy partitions."""
    high = np.flatnonzero(working.level > ceiling)
    if len(high) > _FEW:
        return False
    moves = 0
    for member in high.tolist():
        heaviest = np.sort(working.weight[working.rows(member)])[::-1]
        excess = working.load[member] - ceiling[member] * working.capacity[member]
        moves += int(np.searchsorted(np.cumsum(heaviest), excess)) + 1
    return moves <= _FEW_MOVES


@dataclass(frozen=True, eq=False, slots=True)
class Evaluation:
    """The criteria for a result."""

    excess: Floats
    """float64[M]: how far members are above the ceiling, as shares of the fair level, largest first."""
    deficit: float
    """The sum of how far members are below the floor, in the same unit."""
    taken: float
    """Load taken from live owners."""

    @classmethod
    def of(cls, working: WorkingAssignment, ceiling: float, floor: float, fair: float) -> Evaluation:
        """Evaluate the working assignment."""
        level = working.level
        over = np.maximum(level - _bearable(working, ceiling, fair), 0.0)
        away = (working.current != NOBODY) & (working.current != working.owner)
        return cls(
            excess=np.sort(over)[::-1] / fair,
            deficit=float(np.maximum(floor - level, 0.0).sum()) / fair,
            taken=float(working.weight[away].sum()),
        )

    @property
    def is_good(self) -> bool:
        """Whether no member is too high or too low."""
        return bool(self.excess[0] == 0.0 and self.deficit == 0.0)

    def pays_better_than(self, other: Evaluation, ceiling: float, trigger: float) -> bool:
        """Whether the highest levels are clearly lower, else the lowest higher, else less is moved.

        ``ceiling`` is relative to the fair level. If the fair level is out of reach and ``other`` takes nothing, the
        level that is reached stands for it: to take partitions from owners, a level must fall by ``trigger`` of that.
        """
        for level, before in zip(self.excess.tolist(), other.excess.tolist(), strict=True):
            if level - before > _WORTH:
                return False
            least = trigger * (ceiling + level) if level > 0.0 and not other.taken else _WORTH
            if before - level > least:
                return True
        if abs(self.deficit - other.deficit) > _WORTH:
            return self.deficit < other.deficit
        return self.taken < other.taken


def fair_level(working: WorkingAssignment) -> float:
    """Return the level that all members can reach, except those with a partition too heavy for it."""
    heavy, fast = np.sort(working.weight)[::-1], np.sort(working.capacity)[::-1]
    # The load without the j heaviest, summed from the small end: a difference could consist of rounding errors.
    load, capacity = np.append(np.cumsum(heavy[::-1])[::-1], 0.0), np.cumsum(fast[::-1])[::-1]
    giants = 0
    while giants < min(len(fast) - 1, len(heavy)) and heavy[giants] * capacity[giants] > load[giants] * fast[giants]:
        giants += 1
    rest = heavy[giants:]
    fractional = float(load[giants] / capacity[giants])
    if len(working.eligible) > 1 or not working.eligible.all():
        of_class = np.bincount(working.class_of, working.weight, len(working.eligible)).astype(np.float64)
        fractional = max(fractional, fractional_spread(of_class, working.eligible, working.capacity).bound)
    if load[giants] == 0:  # only giants: there is no level for the rest
        return lower_bound(heavy, np.full(len(heavy), fast[0]), fast, fractional)
    return lower_bound(rest, np.full(len(rest), fast[giants]), fast[giants:], fractional)


def weights(group: GroupSnapshot) -> Floats | None:
    """float64[P]: the loads with estimates for unknown ones; None if counting partitions gives the same result.

    That is so for members of equal capacity if no load is known, or all known loads are 0.
    """
    if group.load is None or np.isnan(group.load).all():
        return None if not group.size or np.ptp(group.capacity) == 0 else np.ones(group.size)
    weight = guess(group.load, group.topic_of)
    return weight if weight.any() else None
