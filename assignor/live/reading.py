"""A reading of a group's offsets: what all later stages go by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from loadwise.assignor.live.index import PartitionIndex
from loadwise.assignor.model import Floats, Ints


class Position(NamedTuple):
    """Where a partition ends, and how much of it the group still has to read."""

    end: int
    """Offset of the next record to be written; where the group reads committed records only, the last stable offset."""
    lag: int
    """Records from the group's committed offset to there."""
    committed: bool = True
    """Whether the group has committed; otherwise it is only presumed where the group begins."""
    age_s: float = math.inf
    """Seconds since the commit, where that is known: what came since then is no backlog yet."""


@dataclass(frozen=True, eq=False, slots=True)
class Reading:
    """The positions of all partitions of an index; float64[P] each, NaN where one was not read."""

    at_ms: int
    end: Floats
    lag: Floats
    committed: Floats
    age_s: Floats

    @classmethod
    def of(cls, index: PartitionIndex, rows: Ints, positions: Floats, at_ms: int) -> Reading:
        """Make one of the partitions of these rows; ``positions`` has a column for each field of a `Position`."""
        return cls(at_ms, *(index.spread(rows, column) for column in positions.T))
