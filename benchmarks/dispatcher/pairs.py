"""What pairs of runs show on a noisy machine: the median of their ratios, and where it lies with 95 % confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

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
    theirs, ours = zip(*pairs, strict=True)
    ratios = [our / their for their, our in pairs]
    draw = Random(1)
    drawn = sorted(median(draw.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES))
    low, high = drawn[_RESAMPLES * 25 // 1000], drawn[_RESAMPLES * 975 // 1000 - 1]
    return Compared(median(theirs), median(ours), median(ratios), low, high)
