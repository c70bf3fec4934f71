"""What pairs of runs show on a noisy machine: the median of their ratios, and where it lies with 95 % confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_RESAMPLES = 4000


@dataclass(frozen=True, slots=True)
class Compared:
    """One quantity in several pairs."""

    theirs: float
    """The median of theirs."""
    ours: float
    ratio: float
    """The median of ours by theirs."""
    low: float
    high: float

    def __str__(self) -> str:
        interval = f"{self.low - 1:+.1%} to {self.high - 1:+.1%}"
        return f"{_short(self.theirs)} to {_short(self.ours)}, {self.ratio - 1:+.1%} ({interval})"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def compare(pairs: Sequence[tuple[float, float]]) -> Compared:
    """Compare pairs of theirs and ours. The interval is a bootstrap of the median of their ratios (percentiles)."""
    theirs, ours = np.array(pairs).T
    ratios = ours / theirs
    drawn = np.median(np.random.default_rng(1).choice(ratios, (_RESAMPLES, len(ratios))), axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Compared(*(float(each) for each in (np.median(theirs), np.median(ours), np.median(ratios), low, high)))
