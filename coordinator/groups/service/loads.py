"""Partitions' ends and a group's positions, from the coordinator's own logs and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from loadwise.coordinator.groups.offsets import Offsets
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.groups.topic_view import TopicView

if TYPE_CHECKING:  # imports numpy, which is optional
    from loadwise.assignor.live.reading import Position


class Log(Protocol):
    """The part of a partition's log that is used here."""

    @property
    def start_offset(self) -> int:
        """Return the offset of its first record."""

    @property
    def end_offset(self) -> int:
        """Return the offset of its next record."""

    def end_before(self, timestamp_ms: int, /) -> int | None:
        """Return its end at a time, by the timestamps of its batches; None if unknown."""


class LogView(Protocol):
    """The logs of the cluster; `loadwise.coordinator.cluster.topics.Topics` has them."""

    def log(self, name: str, partition: int, /) -> Log | None:
        """Return the log of a partition, or None."""


class LogLoads:
    """The `loadwise.coordinator.groups.topic_view.LoadView` of a cluster."""

    def __init__(self, topics: TopicView, logs: LogView, offsets: Offsets) -> None:
        self._topics = topics
        self._logs = logs
        self._offsets = offsets

    def positions(self, group_id: str, names: Iterable[str], now_ms: int) -> dict[tuple[str, int], Position]:
        """Return the group's positions; without a commit, all records count as unread. O(partitions)."""
        from loadwise.assignor.live.reading import Position  # noqa: PLC0415  (numpy, for those who need it)

        committed = self._offsets.of(group_id)
        positions = {}
        for name, number, log in self._of(names):
            known = committed.get(Partition(name, number))
            start, end = log.start_offset, log.end_offset
            if known is None:
                positions[name, number] = Position(end, end - start, committed=False)
            else:
                lag = max(end - max(known.offset, start), 0)
                positions[name, number] = Position(end, lag, age_s=max(now_ms - known.committed_ms, 0) / 1000)
        return positions

    def ends_before(self, names: Iterable[str], at_ms: int) -> dict[tuple[str, int], int]:
        """Return the ends at a time. O(partitions, and the batches since then)."""
        found = ((name, number, log.end_before(at_ms)) for name, number, log in self._of(names))
        return {(name, number): end for name, number, end in found if end is not None}

    def _of(self, names: Iterable[str]) -> Iterator[tuple[str, int, Log]]:
        for name in names:
            topic = self._topics.get(name)
            for number in range(0 if topic is None else len(topic.partitions)):
                log = self._logs.log(name, number)
                if log is not None:
                    yield name, number, log
