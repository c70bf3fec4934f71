"""Whether partitions are spread more unevenly than the load needs: a shift that has ended leaves such an assignment."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from loadwise.assignor.live.judgement import Judgement, utilisation
from loadwise.assignor.live.tuning import EvennessTuning
from loadwise.assignor.model import NOBODY, Assignor, GroupSnapshot, Owners


class Evenness:
    """Looks at a calm group now and then."""

    def __init__(self, tuning: EvennessTuning) -> None:
        self._tuning = tuning
        self._since_ms: int | None = None
        """Since when equal numbers of partitions would do; None while they would not, or while they are equal."""
        self._looked_ms = -math.inf

    def watch(self) -> None:
        """Begin anew with another assignment."""
        self._since_ms, self._looked_ms = None, -math.inf

    def restores(self, judged: Judgement, algorithm: Assignor, healthy: float, now_ms: int) -> bool:
        """Return whether a rebalance should make numbers equal again: they would have done for a while."""
        if judged.worst > healthy:
            self.watch()
        elif now_ms - self._looked_ms >= self._tuning.every_ms:
            self._looked_ms = now_ms
            if not self._would_do(judged.group, algorithm, healthy):
                self._since_ms = None
            elif self._since_ms is None:
                self._since_ms = now_ms
        return self._since_ms is not None and now_ms - self._since_ms >= self._tuning.calm_ms

    def _would_do(self, group: GroupSnapshot, algorithm: Assignor, healthy: float) -> bool:
        before, least = _spread(group, group.owner), self._tuning.least(group.size / len(group.members))
        if before <= least:
            return False
        target = algorithm.assign(replace(group, even_up_to=healthy)).owner
        highest = float(utilisation(group, target).max(initial=0.0))
        return highest <= healthy and before - _spread(group, target) > least


def _spread(group: GroupSnapshot, owner: Owners) -> float:
    """Return by how many partitions of a mean member the numbers of members differ, relative to their capacities."""
    count = np.bincount(owner[owner != NOBODY], minlength=len(group.members))
    return float(np.ptp(count / group.capacity)) * float(group.capacity.mean())
