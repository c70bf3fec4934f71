"""How many offsets of a partition have been processed: a set of disjoint intervals, for the at-least-once check."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class Coverage:
    """The offsets of one partition that were processed at least once, as the union of what members reported."""

    def __init__(self) -> None:
        # Disjoint, non-adjacent and ascending; a handful each, since members report what they read in order.
        self._starts: list[int] = []
        self._stops: list[int] = []
        self.total = 0
        """Offsets processed, those processed twice counted twice."""

    def add(self, start: int, stop: int) -> None:
        """Add the offsets ``start <= offset < stop``. Raises ValueError for an empty or negative interval."""
        if not 0 <= start < stop:
            raise ValueError(f"[{start}, {stop}) is not an interval of offsets")
        self.total += stop - start
        # All intervals that overlap the new one or touch it melt into it.
        first = bisect_left(self._stops, start)
        last = bisect_right(self._starts, stop)
        if first < last:
            start = min(start, self._starts[first])
            stop = max(stop, self._stops[last - 1])
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]

    @property
    def distinct(self) -> int:
        """Offsets processed at least once."""
        return sum(self._stops) - sum(self._starts)

    @property
    def repeated(self) -> int:
        """How often an offset was processed again."""
        return self.total - self.distinct
