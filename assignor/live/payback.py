"""What the last rebalance for the load saves: the highest utilisation with the owners before and after it."""

from __future__ import annotations

import numpy as np

from loadwise.assignor.live.judgement import Judgement, utilisation
from loadwise.assignor.live.restraint import gained
from loadwise.assignor.live.watched import Watched
from loadwise.assignor.model import Owners


class Payback:
    """The owners before the last request, as long as members and partitions stay the same."""

    def __init__(self) -> None:
        self.requested = False  # whether the next rebalance was requested for the load
        self._owner: Owners | None = None
        self._read_ms = 0

    def assigned(self, before: Watched | None, after: Watched) -> None:
        """Begin to compare an assignment that was requested with the one before it."""
        requested, self.requested = self.requested, False
        self._owner, self._read_ms = None, after.since_ms
        if requested and before is not None and before.names == after.names and np.array_equal(before.rows, after.rows):
            self._owner = before.group.owner

    def gain_s(self, judged: Judgement, healthy: float, longest_s: float, now_ms: int) -> float:
        """Return what was saved since the last reading, in seconds of a member's work, by what the readings show."""
        elapsed_s, self._read_ms = min((now_ms - self._read_ms) / 1000, longest_s), now_ms
        if self._owner is None:
            return 0.0
        without = float(utilisation(judged.group, self._owner).max(initial=0.0))
        return gained(without, judged.worst, healthy) * elapsed_s
