"""Which offsets of a partition were processed, and how many more than once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable


class Offsets:
    """Ranges ``[start, end)`` in order, none of which touches another."""

    def __init__(self, ranges: Iterable[Iterable[int]] = (), repeated: int = 0) -> None:
        self.ranges = [(start, end) for start, end in ranges]
        self.repeated = repeated
        """How many offsets were added that were there already."""

    def __len__(self) -> int:
        return sum(end - start for start, end in self.ranges)

    def add(self, start: int, end: int) -> None:
        """Add a range that is not empty."""
        first = bisect_left(self.ranges, start, key=lambda each: each[1])
        behind = bisect_right(self.ranges, end, key=lambda each: each[0])
        met = self.ranges[first:behind]
        self.repeated += sum(min(end, its_end) - max(start, its_start) for its_start, its_end in met)
        if met:
            start, end = min(start, met[0][0]), max(end, met[-1][1])
        self.ranges[first:behind] = [(start, end)]

    def include(self, other: Offsets) -> None:
        """Add all ranges of another one, and what it repeated."""
        for start, end in other.ranges:
            self.add(start, end)
        self.repeated += other.repeated
