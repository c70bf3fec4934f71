"""Where partitions end, and how far a group is in them, by the coordinator's own logs and committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from loadwise.coordinator.groups.offsets import Offsets
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.groups.topic_view import TopicView

if TYPE_CHECKING:  # numpy, for those who need it
    from loadwise.assignor.live.reading import Position


class Log(Protocol):
    """What is looked at of a partition's log."""

    @property
    def start_offset(self) -> int:
        """Offset of the first record that is kept."""

    @property
    def end_offset(self) -> int:
        """Offset that the next record gets."""

    def end_before(self, timestamp_ms: int, /) -> int | None:
        """Where it ended at that time, by the timestamps of its batches; None where these do not tell."""


class LogView(Protocol):
    """The logs of the cluster; `loadwise.coordinator.cluster.topics.Topics` has them."""

    def log(self, name: str, partition: int, /) -> Log | None:
        """The log of a partition; None if there is none."""


class LogLoads:
    """The `loadwise.coordinator.groups.topic_view.LoadView` of a cluster."""

    def __init__(self, topics: TopicView, logs: LogView, offsets: Offsets) -> None:
        self._topics = topics
        self._logs = logs
        self._offsets = offsets

    def positions(self, group_id: str, names: Iterable[str], now_ms: int) -> dict[tuple[str, int], Position]:
        """What is not committed counts as unread from its start. O(partitions)."""
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
        """O(partitions, and the batches since then)."""
        found = ((name, number, log.end_before(at_ms)) for name, number, log in self._of(names))
        return {(name, number): end for name, number, end in found if end is not None}

    def _of(self, names: Iterable[str]) -> Iterator[tuple[str, int, Log]]:
        for name in names:
            topic = self._topics.get(name)
            for number in range(0 if topic is None else len(topic.partitions)):
                log = self._logs.log(name, number)
                if log is not None:
                    yield name, number, log
