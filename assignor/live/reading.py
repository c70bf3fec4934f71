"""A reading of a group's offsets: the input of all later stages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from loadwise.assignor.live.index import PartitionIndex
from loadwise.assignor.model import Floats, Ints


class Position(NamedTuple):
    """The end of a partition, and the group's lag in it."""

    end: int
    """Offset of the next record to be written; the last stable offset if the group reads committed records only."""
    lag: int
    """Records from the group's committed offset to ``end``."""
    committed: bool = True
    """Whether the group has committed; otherwise its position is presumed."""
    age_s: float = math.inf
    """Seconds since the commit, infinite if unknown: later arrivals are no backlog yet."""


@dataclass(frozen=True, eq=False, slots=True)
class Reading:
    """The positions of all partitions of an index; float64[P] each, NaN if not read."""

    at_ms: int
    end: Floats
    lag: Floats
    committed: Floats
    age_s: Floats

    @classmethod
    def of(cls, index: PartitionIndex, rows: Ints, positions: Floats, at_ms: int) -> Reading:
        """Return the reading of these rows; ``positions`` has a column for each field of a `Position`."""
        return cls(at_ms, *(index.spread(rows, column) for column in positions.T))
