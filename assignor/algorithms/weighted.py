"""Weighted: equal load for equal capacity, with little moved.

In this order: every partition assigned; the highest level (load in relation to capacity) within ``epsilon`` of what is
possible; as little load as can be taken from live owners; the levels below the highest; partitions on their readers'
racks, for which up to two per cent of the level are given up; idle partitions spread by count.

Members keep what they own, and those above the bound shed the lightest set of partitions that brings them back to it.
What nobody holds then is placed largest first; what is not with its owner anyway is exchanged until the levels are
even.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from loadwise.assignor.algorithms.board import Board
from loadwise.assignor.algorithms.exchange import polish
from loadwise.assignor.algorithms.fractional import lower_bound, spread
from loadwise.assignor.algorithms.placement import place
from loadwise.assignor.algorithms.shedding import least_over
from loadwise.assignor.algorithms.sticky import Sticky
from loadwise.assignor.model import NOBODY, Assignment, Floats, GroupSnapshot

_EVEN = 5e-4
"""How near to the fair level an exchange of partitions that are moving anyway still tries to get."""
_RACK_SLACK = 0.01
"""How far above the fair level a member may get for the sake of partitions on its rack."""


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
        board = Board(group, weight)
        fair = fair_level(board)
        self._shed(board, fair)
        place(board, np.flatnonzero(board.owner == NOBODY), fair * (1 + _RACK_SLACK))
        polish(board, fair * (1 + _EVEN), keep_local=True)
        return Assignment(group, board.owner)

    def _shed(self, board: Board, fair: float) -> None:
        for member in np.flatnonzero(board.level > (1 + self.trigger) * fair).tolist():
            rows = board.rows(member)
            most = (1 + self.epsilon) * fair * board.capacity[member]
            giant = int(np.argmax(board.weight[rows]))
            if board.weight[rows[giant]] > most:
                most = float(board.weight[rows[giant]]) * (1 + self.epsilon)
                rows = np.delete(rows, giant)
            board.move(rows[least_over(board.weight[rows], board.load[member] - most)], NOBODY)


def fair_level(board: Board) -> float:
    """The level that is possible for all members but those that hold a partition too heavy for it."""
    heavy, fast = np.sort(board.weight)[::-1], np.sort(board.capacity)[::-1]
    load, capacity, giants = float(heavy.sum()), float(fast.sum()), 0
    while giants < min(len(fast) - 1, len(heavy)) and heavy[giants] * capacity > load * fast[giants]:
        load -= float(heavy[giants])
        capacity -= float(fast[giants])
        giants += 1
    rest = board.weight[board.weight < heavy[giants - 1]] if giants else board.weight
    fractional = load / capacity
    if len(board.eligible) > 1 or not board.eligible.all():
        of_class = np.bincount(board.class_of, board.weight, len(board.eligible)).astype(np.float64)
        fractional = max(fractional, spread(of_class, board.eligible, board.capacity).bound)
    if not len(rest):
        return fractional
    return lower_bound(rest, np.full(len(rest), fast[giants]), fast[giants:], fractional)


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
