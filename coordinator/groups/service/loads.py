"""How much there is to do in each partition, by the coordinator's own logs and committed offsets.

A member that has to keep up with what comes, and to catch up with its lag within a horizon H, needs ``rate + lag / H``
records a second for a partition (`loadwise.assignor.load.drain` has the reasons). The rate is that of the log's end
between two looks at it. A partition that the group has not committed counts as unread from its start.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from loadwise.coordinator.groups.offsets import Offsets
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.groups.topic_view import Loads, TopicView

_WINDOW_MS = 1000
"""Shortest time that a rate is measured over, and how long loads are good for."""


class Log(Protocol):
    """What is looked at of a partition's log."""

    @property
    def start_offset(self) -> int:
        """Offset of the first record that is kept."""

    @property
    def end_offset(self) -> int:
        """Offset that the next record gets."""


class LogView(Protocol):
    """The logs of the cluster; `loadwise.coordinator.cluster.topics.Topics` has them."""

    def log(self, name: str, partition: int, /) -> Log | None:
        """The log of a partition; None if there is none."""


class _Look(NamedTuple):
    at_ms: int
    ends: list[int]


class LoadMeter:
    """Reads loads for groups; remembers where the logs ended, so that it knows rates."""

    def __init__(self, topics: TopicView, logs: LogView, offsets: Offsets, *, horizon_ms: int) -> None:
        self._topics = topics
        self._logs = logs
        self._offsets = offsets
        self._horizon_ms = horizon_ms
        self._looks: dict[str, tuple[_Look, _Look]] = {}
        self._read: dict[tuple[str, str], tuple[int, list[float]]] = {}

    def read(self, group_id: str, names: Iterable[str], now_ms: int) -> Loads:
        """Topic name to one load a partition, in records/s. O(partitions), but at most once a second for a group."""
        if any(now_ms >= at_ms + _WINDOW_MS for at_ms, _ in self._read.values()):
            self._read = {key: each for key, each in self._read.items() if now_ms < each[0] + _WINDOW_MS}
        loads = {}
        for name in names:
            key = (group_id, name)
            if key not in self._read:
                self._read[key] = (now_ms, self._of_topic(group_id, name, now_ms))
            loads[name] = self._read[key][1]
        return loads

    def _of_topic(self, group_id: str, name: str, now_ms: int) -> list[float]:
        topic = self._topics.get(name)
        found = [self._logs.log(name, number) for number in range(0 if topic is None else len(topic.partitions))]
        logs = [log for log in found if log is not None]
        before = self._look(name, _Look(now_ms, [log.end_offset for log in logs]))
        committed = self._offsets.of(group_id)
        seconds = (now_ms - before.at_ms) / 1000
        loads = []
        for number, log in enumerate(logs):
            end = log.end_offset
            known = committed.get(Partition(name, number))
            lag = max(end - (log.start_offset if known is None else known.offset), 0)
            grown = end - before.ends[number] if number < len(before.ends) else 0
            rate = max(grown, 0) / seconds if seconds > 0 else 0.0
            loads.append(rate + lag * 1000 / self._horizon_ms)
        return loads

    def _look(self, name: str, now: _Look) -> _Look:
        """The look that rates are measured from; the new one takes its place when it is old enough."""
        older, newer = self._looks.get(name, (now, now))
        if now.at_ms - newer.at_ms >= _WINDOW_MS:
            older, newer = newer, now
        self._looks[name] = (older, newer)
        return older
