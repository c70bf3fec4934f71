"""The working state of the weighted algorithm: the owners, and the operations that change them.

Everything here is deterministic: ties go to the lower row or to the first member in Kafka's order.
"""

from __future__ import annotations

import numpy as np

from loadwise.assignor.model import NOBODY, Bools, Floats, GroupSnapshot, Ints, Owners, stable_order

LOOK = 5_000
"""The fixed cost of examining two members, as a number of combinations of their partitions."""
WORK_LIMIT = 60_000_000
"""The work after which the algorithm stops improving: about half a second of one core."""

_ROUNDS_TO_32_BITS = 2.0**21 + 1
"""Veltkamp's factor for numbers of 53 bits."""


def scaled(values: Floats) -> Floats:
    """Divide by the largest and round to 32 significant bits, so that the result does not depend on the unit.

    Numbers that differ only by a rounding error become equal, such as an estimated load and the known loads that it is
    the mean of. So ties stay ties in every unit.
    """
    largest = values.max(initial=0.0)
    if not largest:
        return values
    near = values / largest
    wide = near * _ROUNDS_TO_32_BITS
    rounded: Floats = wide - (wide - near)
    return rounded


class WorkingAssignment:
    """An unfinished assignment with P partitions, M members, K classes of topics."""

    def __init__(self, group: GroupSnapshot, weight: Floats, current: Owners) -> None:
        self.weight = weight
        """float64[P]: load of each partition, `scaled`, without NaN."""
        self.guessed: Bools = np.zeros(group.size, bool) if group.load is None else np.isnan(group.load)
        """bool[P]: whether each load is only estimated."""
        self.capacity = scaled(group.capacity)
        """float64[M]: the capacity of each member, the largest near 1."""
        self.capacity_known = group.capacity_known
        """bool[M]: whether each capacity was set or measured."""
        self.eligible = group.subscribers_of_class
        """bool[K, M]: whether each member may read each class."""
        self.fastest = np.where(self.eligible, self.capacity, 0.0).max(axis=1)
        """float64[K]: the highest capacity among the readers of each class."""
        self.class_of = group.class_of
        self.current = current
        """int32[P]: the current owner of each partition, `NOBODY` without one."""
        self.owner: Owners = current.copy()
        """int32[P]: the planned owner; `NOBODY` while it is open."""
        self.load = self.sum_of(current)
        self.pattern_of, self.misplaced = _locality(group)
        self.is_open = self.misplaced is None and bool(self.eligible.all())
        """Whether every member may read every partition, and racks do not matter."""
        self.spent = 0
        """The work so far, in examined combinations of partitions."""
        self._rows: dict[int, Ints] = {}
        self._by_owner: tuple[Ints, Ints] | None = None

    def spend(self, cells: int) -> None:
        """Add the work of examining two members: the combinations plus the fixed cost."""
        self.spent += cells + LOOK

    @property
    def exhausted(self) -> bool:
        """Whether the work limit is reached. Work is counted, not timed, so that all leaders agree."""
        return self.spent >= WORK_LIMIT

    @property
    def level(self) -> Floats:
        """float64[M]: load relative to capacity."""
        return self.load / self.capacity

    def sum_of(self, owner: Owners) -> Floats:
        """float64[M]: the load of each member in ``owner``."""
        loads: Floats = np.bincount(owner + 1, self.weight, len(self.capacity) + 1)[1:].astype(np.float64)
        return loads

    def assign_all(self, owner: Owners) -> None:
        """Restart from another assignment."""
        self.owner = owner.copy()
        self.load = self.sum_of(owner)
        self._rows.clear()
        self._by_owner = None

    def give(self, rows: Ints, members: Ints | Owners) -> None:
        """Assign a member to each unowned partition: int[n] for int64[n] rows."""
        self.owner[rows] = members
        self.load += np.bincount(members, self.weight[rows], len(self.capacity))
        self._rows.clear()
        self._by_owner = None

    def settle(self, owner: Owners) -> None:
        """Treat this result as the current owners and continue from it."""
        self.current = owner.copy()
        self.assign_all(owner)

    def unavoidable(self) -> Floats:
        """float64[M]: the level of the heaviest partition for which each member is the fastest; else 0."""
        weight = self.weight
        if np.ptp(self.capacity):
            weight = np.where(self.capacity[self.owner] >= self.fastest[self.class_of], weight, 0.0)
        heaviest = np.zeros(len(self.capacity) + 1)  # the last entry is for unowned partitions
        np.maximum.at(heaviest, self.owner, weight)
        unavoidable: Floats = heaviest[:-1] / self.capacity
        return unavoidable

    def rows(self, member: int) -> Ints:
        """Return the member's partitions in a deterministic but unspecified order. O(P) the first time."""
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
        """Move partitions of one member, or unowned ones, to another member (or to `NOBODY`)."""
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
        """bool[n, M]: whether each member may have each partition; with ``keep_local``, without leaving its rack."""
        allowed: Bools = self.eligible[self.class_of[rows]]
        if keep_local and self.misplaced is not None and len(rows):
            pattern = self.pattern_of[rows]
            worse = self.misplaced[pattern] & ~self.misplaced[pattern, self.owner[rows]][:, np.newaxis]
            allowed &= ~worse
        return allowed


def _locality(group: GroupSnapshot) -> tuple[Owners, Bools | None]:
    """Rack pattern of each row, int32[P], and the misplaced members, bool[patterns, M]; None without racks."""
    if group.partition_racks is None or not group.racks_known:
        return np.zeros(group.size, np.int32), None
    pattern, pattern_of = np.unique(group.partition_racks, axis=0, return_inverse=True)
    return pattern_of.reshape(-1).astype(np.int32), group.misplaced(pattern)
