"""What the last rebalance for the load saves: the highest utilisation with the owners before and after it.

A burst leaves uneven numbers of partitions behind, and the next one may fall on the member with the most. So another
rebalance makes them equal again.
"""

from __future__ import annotations

import math

import numpy as np

from loadwise.assignor.live.judgement import Judgement, utilisation
from loadwise.assignor.live.restraint import gained
from loadwise.assignor.live.watched import Watched
from loadwise.assignor.model import NOBODY, GroupSnapshot, Owners

_BURST_MS = 60_000
"""A shift that ends within this time after its rebalance was a burst."""


class Payback:
    """The owners before the last request, as long as members and partitions stay the same."""

    def __init__(self) -> None:
        self.requested = False  # whether the next rebalance was requested for the load
        self._owner: Owners | None = None
        self._since_ms = self._read_ms = 0
        self._over_ms = math.inf  # since when the owners before would do again

    def assigned(self, before: Watched | None, after: Watched) -> None:
        """Begin to compare an assignment that was requested with the one before it."""
        requested, self.requested = self.requested, False
        self._owner, self._over_ms = None, math.inf
        self._since_ms = self._read_ms = after.since_ms
        if requested and before is not None and before.names == after.names and np.array_equal(before.rows, after.rows):
            self._owner = before.group.owner

    def gain_s(self, judged: Judgement, healthy: float, longest_s: float, now_ms: int) -> float:
        """Return what was saved since the last reading, in seconds of a member's work, by what the readings show."""
        elapsed_s, self._read_ms = min((now_ms - self._read_ms) / 1000, longest_s), now_ms
        if self._owner is None:
            return 0.0
        without = float(utilisation(judged.group, self._owner).max(initial=0.0))
        self._over_ms = min(self._over_ms, now_ms) if max(without, judged.worst) <= healthy else math.inf
        return gained(without, judged.worst, healthy) * elapsed_s

    def restores(self, group: GroupSnapshot, now_ms: int) -> bool:
        """Return whether two readings show that it was a burst, and numbers of partitions are uneven since."""
        if self._owner is None or not self._over_ms < now_ms or self._over_ms - self._since_ms > _BURST_MS:
            return False
        return _spread(group, group.owner) > max(_spread(group, self._owner), 1.0)


def _spread(group: GroupSnapshot, owner: Owners) -> float:
    """Return by how many partitions of a mean member the numbers of members differ, relative to their capacities."""
    count = np.bincount(owner[owner != NOBODY], minlength=len(group.members))
    return float(np.ptp(count / group.capacity)) * float(group.capacity.mean())
