"""What brokers should carry, and how much a load is outside of that. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from loadwise.balance.rows import Floats, Rows

LEAST = 1e-9
"""In units of the mean: less is rounding."""
BEYOND = 100.0
"""How much worse it is to exceed a stated capacity than a limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Of brokers by resources, in units of the mean."""

    limit: Floats
    capacity: Floats | None = None
    """At least the limit; None if nothing is stated."""
    allowed: float = 0.0
    """Total excess of all brokers that counts as none."""
    lower: Floats | None = None
    """What brokers should carry at least; None if nothing."""

    def of(self, brokers: int | Rows) -> Bounds:
        """The bounds of these brokers."""
        return Bounds(
            self.limit[brokers],
            None if self.capacity is None else self.capacity[brokers],
            lower=None if self.lower is None else self.lower[brokers],
        )

    def excess(self, load: Floats) -> Floats:
        """How much loads are outside the bounds, over all resources."""
        total = _summed(_above(load, self.limit))
        if self.capacity is not None:
            total += BEYOND * _summed(_above(load, self.capacity))
        if self.lower is not None:
            total += _summed(_above(self.lower, load))
        return total

    def excess_by(self, loads: Sequence[Floats]) -> Floats:
        """Return the same for one broker with many loads, which come by resource: an array for each."""
        total: Floats = reduce(np.add, map(_above, loads, self.limit.tolist()))
        if self.capacity is not None:
            total += BEYOND * reduce(np.add, map(_above, loads, self.capacity.tolist()))
        if self.lower is not None:
            total += reduce(np.add, map(_above, self.lower.tolist(), loads))
        return total

    def of_one(self) -> Callable[[int, Sequence[float]], float]:
        """Return `excess` of one broker and its load in plain floats: short arrays take 20 times as long."""
        known: dict[int, list[tuple[float, float, float]]] = {}
        resources = self.limit.shape[-1]

        def row(broker: int) -> list[tuple[float, float, float]]:
            capacity = [math.inf] * resources if self.capacity is None else self.capacity[broker].tolist()
            lower = [0.0] * resources if self.lower is None else self.lower[broker].tolist()
            return list(zip(self.limit[broker].tolist(), capacity, lower, strict=True))

        def excess(broker: int, load: Sequence[float]) -> float:
            if broker not in known:
                known[broker] = row(broker)
            total = 0.0
            for carried, (limit, capacity, lower) in zip(load, known[broker], strict=True):
                if carried > limit:
                    total += carried - limit
                if carried > capacity:
                    total += BEYOND * (carried - capacity)
                if carried < lower:
                    total += lower - carried
            return total

        return excess

    def total_excess(self, load: Floats) -> Floats:
        """The same over all brokers less what is allowed, of many placements at once.

        A product is faster than sums over short rows.
        """
        ones = np.ones(self.limit.size)
        rows = (*load.shape[:-2], self.limit.size)
        total: Floats = _above(load, self.limit).reshape(rows) @ ones
        if self.capacity is not None:
            total += BEYOND * (_above(load, self.capacity).reshape(rows) @ ones)
        if self.lower is not None:
            total += _above(self.lower, load).reshape(rows) @ ones
        return np.maximum(total - self.allowed, 0.0) if self.allowed else total


def _summed(rows: Floats) -> Floats:
    """Return the sums of short rows; numpy's own take several times as long."""
    return reduce(np.add, (rows[..., column] for column in range(rows.shape[-1])))


def _above(load: Floats | float, limit: Floats | float) -> Floats:
    above: Floats = np.subtract(load, limit)
    return np.maximum(above, 0.0, out=above)
