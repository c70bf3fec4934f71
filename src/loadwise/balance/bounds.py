"""What brokers may carry, and how much a load is above that. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadwise.balance.rows import Floats, Rows

LEAST = 1e-9
"""In units of the mean: less is rounding."""
_BEYOND = 100.0
"""How much worse it is to exceed a stated capacity than a limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Of brokers by resources, in units of the mean."""

    limit: Floats
    capacity: Floats | None
    """Not less than the limit; None if no capacity is stated."""

    def of(self, brokers: int | Rows) -> Bounds:
        """The bounds of these brokers."""
        return Bounds(self.limit[brokers], None if self.capacity is None else self.capacity[brokers])

    def excess(self, load: Floats) -> Floats:
        """How much loads are above the bounds, over all resources."""
        total: Floats = np.maximum(load - self.limit, 0.0).sum(axis=-1)
        if self.capacity is not None:
            total += _BEYOND * np.maximum(load - self.capacity, 0.0).sum(axis=-1)
        return total
