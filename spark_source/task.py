"""The offset ranges that one Spark task reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """The offsets of [start, end) of a partition; some may hold no record."""

    topic: str
    partition: int
    start: int
    end: int

    def __len__(self) -> int:
        return max(0, self.end - self.start)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}[{self.start}, {self.end})"


@dataclass(frozen=True, slots=True)
class Task:
    """The work of one Spark task: the share of one member."""

    member: str
    """``slot-i`` for task i."""
    ranges: tuple[OffsetRange, ...]
    """None is empty. Sorted by topic, partition and offset; ranges of one partition neither touch nor overlap."""
    weight: float
    """Records in the ranges, times the topic's cost."""

    @property
    def records(self) -> int:
        """Offsets in the ranges."""
        return sum(map(len, self.ranges))
