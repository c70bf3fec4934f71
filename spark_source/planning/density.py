"""Moves the cuts of a plan, so that tasks are even although records differ along a partition. Pure.

The old part of a compacted topic is thin, records grow over the years, a transaction was aborted. A plan assumes that
a partition is the same from its start to its end. Then each cut inside a partition is moved so that the planned share
of the partition's weight lies before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from operator import mul

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.planning.plan import Plan
from loadwise.spark_source.task import OffsetRange


@dataclass(frozen=True, slots=True)
class Density:
    """The weight of an offset in each part of a range."""

    edges: tuple[int, ...]
    """The start of each part, in order, and the end of the last."""
    weights: tuple[float, ...]
    """The weight of an offset in each part; not all are 0."""

    @property
    def mean(self) -> float:
        """The mean weight of an offset in the range."""
        return self._until[-1] / self._length

    def moved(self, offset: int) -> int:
        """Return the offset with as large a share of the weight before it as ``offset`` has of the offsets."""
        if not self.edges[0] < offset < self.edges[-1]:
            return offset
        until = self._until
        wanted = until[-1] * (offset - self.edges[0]) / self._length
        part = bisect_left(until, wanted, 1) - 1
        inside = (wanted - until[part]) / self.weights[part] if self.weights[part] else 0.0
        return min(self.edges[-1], self.edges[part] + round(inside))

    @property
    def _until(self) -> list[float]:
        """The weight before each edge."""
        sizes = (end - start for start, end in pairwise(self.edges))
        return list(accumulate(map(mul, self.weights, sizes), initial=0.0))

    @property
    def _length(self) -> int:
        return self.edges[-1] - self.edges[0]


def even(plan: Plan, densities: Mapping[TopicPartition, Density]) -> Plan:
    """Return the plan with its cuts moved; ``densities`` are those of its whole ranges."""

    def moved(item: OffsetRange) -> OffsetRange:
        density = densities.get(TopicPartition(item.topic, item.partition))
        return replace(item, start=density.moved(item.start), end=density.moved(item.end)) if density else item

    tasks = (
        replace(task, ranges=tuple(there for item in task.ranges if len(there := moved(item)))) for task in plan.tasks
    )
    return replace(plan, tasks=tuple(tasks))
