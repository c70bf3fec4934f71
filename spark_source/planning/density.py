"""Where in a partition the weight lies: cuts move to where tasks are even though records differ along the partition.

The old part of a compacted topic is thin, records grow over the years, a transaction was aborted. A plan is made as if
each partition were alike from its start to its end; then each cut inside a partition is put where as much of the
partition's weight lies before it as the plan meant. Pure.
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
    """What offsets weigh along a range, part by part."""

    edges: tuple[int, ...]
    """Where the parts begin, in order, and the end of the last."""
    weights: tuple[float, ...]
    """Of an offset in each part; not all of them 0."""

    @property
    def mean(self) -> float:
        """What an offset of the whole range weighs."""
        return self._until[-1] / self._length

    def moved(self, offset: int) -> int:
        """Where as much weight lies before as offsets do before ``offset``; the start stays, and the end."""
        if not self.edges[0] < offset < self.edges[-1]:
            return offset
        until = self._until
        wanted = until[-1] * (offset - self.edges[0]) / self._length
        part = bisect_left(until, wanted, 1) - 1
        inside = (wanted - until[part]) / self.weights[part] if self.weights[part] else 0.0
        return min(self.edges[-1], self.edges[part] + round(inside))

    @property
    def _until(self) -> list[float]:
        """What all before each edge weighs."""
        sizes = (end - start for start, end in pairwise(self.edges))
        return list(accumulate(map(mul, self.weights, sizes), initial=0.0))

    @property
    def _length(self) -> int:
        return self.edges[-1] - self.edges[0]


def even(plan: Plan, densities: Mapping[TopicPartition, Density]) -> Plan:
    """The plan with its cuts moved; ``densities`` are those of the whole ranges that it was made of."""

    def moved(item: OffsetRange) -> OffsetRange:
        density = densities.get(TopicPartition(item.topic, item.partition))
        return replace(item, start=density.moved(item.start), end=density.moved(item.end)) if density else item

    tasks = (
        replace(task, ranges=tuple(there for item in task.ranges if len(there := moved(item)))) for task in plan.tasks
    )
    return replace(plan, tasks=tuple(tasks))
