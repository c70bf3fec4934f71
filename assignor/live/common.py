"""Detect that members fall behind because of something that they share, such as a database: no rebalance helps then.

Members do not all show it at the same moment, neither when it becomes slow nor when it is fast again.
"""

from __future__ import annotations

import math

import numpy as np

from loadwise.assignor.live.judgement import Judgement
from loadwise.assignor.live.restraint import Refusal
from loadwise.assignor.live.tuning import CommonTuning
from loadwise.assignor.model import Bools


class Common:
    """Whether most members fall behind, and since when."""

    def __init__(self, tuning: CommonTuning) -> None:
        self._tuning = tuning
        self._most, self._since_ms = False, -math.inf

    def refusal(self, now_ms: int, judged: Judgement, *, grows: Bools, lagging: Bools) -> Refusal | None:
        """Return why no rebalance may be requested; None if one may. Call it after each reading.

        bool[M]: members whose backlog ``grows``, and members with one.
        """
        both = (grows & (judged.before > 1), grows)  # a single interval may be a pause
        most, may_be_most = (bool(2 * np.count_nonzero(each) > len(each)) for each in both)
        if most != self._most:
            self._most, self._since_ms = most, now_ms
        receivers_lag = most and bool((lagging & (judged.after > judged.before)).any())
        held_ms = self._tuning.longest_ms if receivers_lag else self._tuning.at_least_ms
        if now_ms - self._since_ms >= held_ms and most >= may_be_most:
            return None
        return Refusal("most members fall behind at the same time: something that they share may be slow", soon=True)
