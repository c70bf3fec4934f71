"""Weighted: equal load for equal capacity, with little moved.

Members keep what they own; those above the bound give up their smallest partitions; what nobody owns goes, largest
first, to whoever then has the least load for its capacity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from loadwise.assignor.algorithms.sticky import Sticky
from loadwise.assignor.model import Assignment, Floats, GroupSnapshot


@dataclass(frozen=True, slots=True)
class Weighted:
    """``weighted`` and, staged, ``cooperative-weighted``."""

    epsilon: float = 0.05
    """How far above the fair share a member that gives partitions up may stay, as a share of it."""
    trigger: float = 0.05
    """How far above the fair share a member may be before it has to give partitions up; at least ``epsilon``."""

    def __post_init__(self) -> None:
        for name in ("epsilon", "trigger"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be a finite number of 0 or more")
        if self.trigger < self.epsilon:
            raise ValueError(f"trigger is {self.trigger}; it must not be below epsilon, which is {self.epsilon}")

    @property
    def name(self) -> str:
        """``weighted``."""
        return "weighted"

    def assign(self, group: GroupSnapshot) -> Assignment:
        """Answer loads near equal in relation to capacity; without known loads, what `Sticky` answers."""
        weight = impute(group)
        if weight is None:
            return Sticky().assign(group)
        owner = group.owner.copy()
        level = np.bincount(owner[owner >= 0], weight[owner >= 0], len(group.members)).astype(np.float64)
        fair = weight.sum() / group.capacity.sum()
        for member in np.flatnonzero(level > (1 + self.trigger) * fair * group.capacity):
            rows = np.flatnonzero(owner == member)
            rows = rows[np.argsort(weight[rows], kind="stable")]
            for row in rows:
                if level[member] <= (1 + self.epsilon) * fair * group.capacity[member]:
                    break
                owner[row] = -1
                level[member] -= weight[row]
        eligible = [np.flatnonzero(readers) for readers in group.subscribers_of_class]
        free = np.flatnonzero(owner < 0)
        for row in free[np.argsort(-weight[free], kind="stable")]:
            readers = eligible[group.class_of[row]]
            member = readers[np.argmin((level[readers] + weight[row]) / group.capacity[readers])]
            owner[row] = member
            level[member] += weight[row]
        return Assignment(group, owner)


def impute(group: GroupSnapshot) -> Floats | None:
    """float64[P]: the loads with the unknown ones guessed; None where there is nothing to go by.

    An unknown load is taken for the mean of its topic's known ones, then of all known ones.
    """
    if group.load is None:
        return None
    known = ~np.isnan(group.load)
    if not known.any() or not group.load[known].sum() > 0:
        return None
    counts = np.bincount(group.topic_of[known], minlength=len(group.topics))
    sums = np.bincount(group.topic_of[known], group.load[known], len(group.topics))
    means = np.where(counts > 0, sums / np.maximum(counts, 1), group.load[known].mean())
    return np.where(known, group.load, means[group.topic_of])
