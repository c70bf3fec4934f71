"""The working state of the weighted algorithm: who has what, and the operations that change it.

Everything here is deterministic: ties go to the lower row or the member that is first in Kafka's order.
"""

from __future__ import annotations

import numpy as np

from loadwise.assignor.model import NOBODY, Bools, Floats, GroupSnapshot, Ints, Owners, stable_order

LOOK = 5_000
"""What a look at two members costs apart from the combinations of their partitions, in combinations."""
WORK_LIMIT = 60_000_000
"""The work after which nothing more is improved: about half a second of one core."""

_ROUNDS_TO_32_BITS = 2.0**21 + 1
"""Veltkamp's factor for numbers of 53 bits."""


def scaled(values: Floats) -> Floats:
    """Divide by the largest, and round to 32 significant bits: the answer does not depend on the unit.

    Numbers that differ by a rounding error only, as a guessed load and the known ones it is the mean of, become equal.
    So ties stay ties in every unit.
    """
    largest = values.max(initial=0.0)
    if not largest:
        return values
    near = values / largest
    wide = near * _ROUNDS_TO_32_BITS
    rounded: Floats = wide - (wide - near)
    return rounded


class WorkingAssignment:
    """An assignment in the making; P partitions, M members, K classes of topics."""

    def __init__(self, group: GroupSnapshot, weight: Floats, current: Owners) -> None:
        self.weight = weight
        """float64[P]: load of each partition, `scaled`, none unknown."""
        self.guessed: Bools = np.zeros(group.size, bool) if group.load is None else np.isnan(group.load)
        """bool[P]: whose load is not known but imputed."""
        self.capacity = scaled(group.capacity)
        """float64[M]: what each member can process, the largest near 1."""
        self.capacity_known = group.capacity_known
        """bool[M]: whose capacity is not only a guess."""
        self.eligible = group.subscribers_of_class
        """bool[K, M]: who may read each class."""
        self.fastest = np.where(self.eligible, self.capacity, 0.0).max(axis=1)
        """float64[K]: the highest capacity among the readers of each class."""
        self._is_even = bool(np.ptp(self.capacity) == 0)
        self.class_of = group.class_of
        self.current = current
        """int32[P]: who owns each partition now, NOBODY if nobody does."""
        self.owner: Owners = current.copy()
        """int32[P]: who is to have it; NOBODY while that is open."""
        self.load = self.sum_of(current)
        self.pattern_of, self.misplaced = _locality(group)
        self.spent = 0
        """The work done so far, in looked-at combinations of partitions."""
        self._rows: dict[int, Ints] = {}
        self._by_owner: tuple[Ints, Ints] | None = None

    def spend(self, cells: int) -> None:
        """Count the work of one look at two members: so many combinations, and what each look costs."""
        self.spent += cells + LOOK

    @property
    def exhausted(self) -> bool:
        """Whether so much work was done that the answer is to be what it is. Counted, so that every leader agrees."""
        return self.spent >= WORK_LIMIT

    @property
    def level(self) -> Floats:
        """float64[M]: load in relation to capacity."""
        return self.load / self.capacity

    def sum_of(self, owner: Owners) -> Floats:
        """float64[M]: the load that members have in ``owner``."""
        loads: Floats = np.bincount(owner + 1, self.weight, len(self.capacity) + 1)[1:].astype(np.float64)
        return loads

    def assign_all(self, owner: Owners) -> None:
        """Start over from another assignment."""
        self.owner = owner.copy()
        self.load = self.sum_of(owner)
        self._rows.clear()
        self._by_owner = None

    def give(self, rows: Ints, members: Ints | Owners) -> None:
        """Give partitions that nobody has to a member each: int[n] for int64[n] rows."""
        self.owner[rows] = members
        self.load += np.bincount(members, self.weight[rows], len(self.capacity))
        self._rows.clear()
        self._by_owner = None

    def settle(self, owner: Owners) -> None:
        """Treat this answer as what members own now, and go on from it."""
        self.current = owner.copy()
        self.assign_all(owner)

    def unavoidable(self) -> Floats:
        """float64[M]: the level of the heaviest partition of each member that is the fastest one for it; else 0."""
        weight = self.weight
        if not self._is_even:
            weight = np.where(self.capacity[self.owner] >= self.fastest[self.class_of], weight, 0.0)
        heaviest = np.zeros(len(self.capacity) + 1)  # the last one is nobody's
        np.maximum.at(heaviest, self.owner, weight)
        unavoidable: Floats = heaviest[:-1] / self.capacity
        return unavoidable

    def rows(self, member: int) -> Ints:
        """The partitions that a member has, in no particular but in a deterministic order. O(P) the first time."""
        known = self._rows.get(member)
        if known is None:
            if self._by_owner is None:
                order = stable_order(self.owner.view(np.uint32), len(self.capacity))  # NOBODY is the largest
                self._by_owner = (
                    order,
                    np.concatenate(([0], np.cumsum(np.bincount(self.owner + 1, minlength=len(self.capacity) + 1)[1:]))),
                )
            order, start = self._by_owner
            known = self._rows[member] = order[start[member] : start[member + 1]]
        return known

    def move(self, rows: Ints, member: int) -> None:
        """Give partitions that are one member's, or nobody's, to another (or to `NOBODY`)."""
        if not len(rows):
            return
        giver = int(self.owner[rows[0]])
        weight = float(self.weight[rows].sum())
        if giver != NOBODY:
            self._rows[giver] = np.setdiff1d(self.rows(giver), rows)
            self.load[giver] -= weight
        if member != NOBODY:
            self._rows[member] = np.concatenate((self.rows(member), rows))
            self.load[member] += weight
        self.owner[rows] = member

    def may_go(self, rows: Ints, *, keep_local: bool = False) -> Bools:
        """bool[n, M]: who may have each partition; with ``keep_local``, not who would take it off its rack."""
        allowed: Bools = self.eligible[self.class_of[rows]]
        if keep_local and self.misplaced is not None and len(rows):
            pattern = self.pattern_of[rows]
            worse = self.misplaced[pattern] & ~self.misplaced[pattern, self.owner[rows]][:, np.newaxis]
            allowed &= ~worse
        return allowed


def _locality(group: GroupSnapshot) -> tuple[Owners, Bools | None]:
    """Rack pattern of each row, int32[P], and who is misplaced for each, bool[patterns, M]; None without racks."""
    if group.partition_racks is None or not group.racks_known:
        return np.zeros(group.size, np.int32), None
    pattern, pattern_of = np.unique(group.partition_racks, axis=0, return_inverse=True)
    return pattern_of.reshape(-1).astype(np.int32), group.misplaced(pattern)
