"""Lag: how many records a group has before it in each partition, as its load.

`LagLoad` keeps what was read last and tells how old it is. The reading is done in the background by a client's own
module (``kafka_python_lag``, ``aiokafka_lag`` in `loadwise.assignor.clients`), which calls `LagLoad.update`.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from loadwise.assignor.load.rate import FORGOTTEN_S, RateLoad
from loadwise.assignor.load.source import LoadSnapshot, LoadSource
from loadwise.assignor.model import Floats

STALE_AFTER_INTERVALS = 6
"""Lag is too old once so many readings in a row are missing..."""
STALE_AFTER_AT_LEAST_S = 30.0
"""... but not before so many seconds: a slow broker is no reason to forget what is known."""


HISTORY_S = 60.0
"""The log is asked where its partitions ended so long ago."""
_YOUNGEST_S = 5.0
"""A topic is taken to be so old at least: what came in a moment is no rate."""


BEGINNINGS_S = 60.0
"""Where partitions begin is read this often: it moves with retention only, and costs as much to read as their ends.

So is which partitions there are and who leads them, or as soon as the reader is told anew what to read.
"""


class PartitionOffsets(NamedTuple):
    """Where a partition begins and ends, and where the group is in it."""

    beginning: int
    """Offset of the oldest record."""
    end: int
    """Offset of the next record to be written."""
    committed: int | None
    """Offset that the group reads next; None where it has not committed any."""
    metadata: str = ""
    """What was committed beside that offset."""


def lag_of(offsets: PartitionOffsets, *, from_beginning: bool) -> int:
    """Records that the group still has to read.

    Where nothing is committed, the consumer starts where ``auto.offset.reset`` tells: at the beginning, or at the end
    and so with no lag. Committed records that retention has removed do not count.
    """
    start = offsets.beginning if from_beginning else offsets.end
    position = start if offsets.committed is None else max(offsets.committed, offsets.beginning)
    return max(offsets.end - position, 0)


def lags(beginning: Floats, end: Floats, committed: Floats, *, from_beginning: bool) -> Floats:
    """`lag_of` of many partitions, float64[P] each; ``committed`` is NaN where nothing is."""
    position = np.where(np.isnan(committed), beginning if from_beginning else end, np.maximum(committed, beginning))
    return np.maximum(end - position, 0.0)


class FirstSince(NamedTuple):
    """The first record of a partition that is younger than some time, as ListOffsets answers it."""

    offset: int
    """-1 where there is none."""
    timestamp: int
    """When it came, in ms since 1970, by its producer's clock or its broker's."""


NONE_SINCE = FirstSince(-1, -1)


def first_since(found: Mapping[Any, Any]) -> dict[tuple[str, int], FirstSince]:
    """What a client answers for a time: of each partition an offset and a timestamp, or None for no such record."""
    return {
        tuple(partition): NONE_SINCE if at is None else FirstSince(at.offset, at.timestamp)
        for partition, at in found.items()
    }


def ends_before(
    found: Mapping[tuple[str, int], FirstSince], offsets: Mapping[tuple[str, int], PartitionOffsets], now_ms: int
) -> dict[tuple[str, int], int]:
    """Where partitions ended `HISTORY_S` ago, by the first records since then. ``now_ms`` is in ms since 1970.

    There is no such record where nothing came since, or where the records carry times of their own, from long ago. So
    it is believed only of topics in which one was found, and of none in which one has a time that is still to come.

    Of a topic that has had its first record since then, it is where partitions would have ended if they had always had
    the rate that they have had since that record: below 0. By what they had, which is nothing, the rate would be too
    low, and a backlog would count for too much beside it.
    """
    telling = {topic for (topic, _), first in found.items() if first.offset >= 0}
    telling -= {topic for (topic, _), first in found.items() if first.timestamp > now_ms + _YOUNGEST_S * 1000}
    older = {
        partition[0]
        for partition, first in found.items()
        if partition in offsets and (first.offset if first.offset >= 0 else offsets[partition].end) > 0
    }
    began_ms: dict[str, int] = {}
    for (topic, _), first in found.items():
        if first.offset >= 0 and topic not in older:
            began_ms[topic] = min(first.timestamp, began_ms.get(topic, first.timestamp))
    ends: dict[tuple[str, int], int] = {}
    for partition, first in found.items():
        topic = partition[0]
        if partition not in offsets or topic not in telling:
            continue
        end = offsets[partition].end
        if topic in began_ms:
            age_s = min(max((now_ms - began_ms[topic]) / 1000, _YOUNGEST_S), HISTORY_S)
            ends[partition] = round(end * (1 - HISTORY_S / age_s))
        else:
            ends[partition] = min(first.offset, end) if first.offset >= 0 else end
    return ends


class LagLoad:
    """The lag of one group, newest reading; a `LoadSource`. One thread may update it while others take snapshots.

    A partition that the newest reading lacks keeps the lag that it had: an unknown load is worse than an old one. A
    topic that was not read for an hour is forgotten.
    """

    def __init__(
        self,
        topics: Iterable[str] = (),
        *,
        auto_offset_reset: str = "latest",
        interval_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.topics = frozenset(topics)
        """Topics to read: those given, watched since, and those that `snapshot` was asked for."""
        self.pattern: re.Pattern[str] | None = None
        """Read the topics, too, whose names match this one."""
        self.told = 0
        """How often it was told what to read: with every assignment, for one."""
        self.interval_s = interval_s
        """Time between two readings."""
        self.max_age_s = max(STALE_AFTER_INTERVALS * interval_s, STALE_AFTER_AT_LEAST_S)
        """The age from which on a snapshot is stale."""
        self.arrivals = RateLoad(max_age_s=self.max_age_s, clock=clock)
        """What arrives in the same partitions, in records/s: the other half of `loadwise.assignor.load.drain`."""
        self.from_beginning = auto_offset_reset in ("earliest", "smallest")
        """Where the group begins in a partition without a commit: at its beginning, or else at its end."""
        self.listener: Callable[[Mapping[tuple[str, int], PartitionOffsets]], None] | None = None
        """Called with every reading, on the thread or in the task that reads."""
        self.prior_listener: Callable[[Mapping[tuple[str, int], int]], None] | None = None
        """Called before a first reading with where partitions ended a minute ago, as far as the log tells."""
        self._clock = clock
        self._read: tuple[Mapping[str, Floats], float] | None = None
        self._seen_at: dict[str, float] = {}

    def watch(self, topics: Iterable[str] = (), *, pattern: str | re.Pattern[str] | None = None) -> None:
        """Read these topics from now on as well: those that the consumer subscribes to."""
        self.include(topics, pattern=pattern)

    def include(self, topics: Iterable[str] = (), *, pattern: str | re.Pattern[str] | None = None) -> None:
        """Read these topics with the next reading and from then on."""
        self.topics = self.topics.union(topics)
        self.told += 1
        if pattern is not None:
            self.pattern = re.compile(pattern)

    def only(self, topics: Iterable[str]) -> None:
        """Read these topics from now on, and those that match the pattern, and no other."""
        self.topics = frozenset(topics)
        self.told += 1

    def update(self, offsets: Mapping[tuple[str, int], PartitionOffsets]) -> None:
        """Take in a reading; partitions by (topic, number). Where there is a listener, it is that which remembers."""
        if self.listener is not None:
            self._read = {}, self._clock()
            self.listener(offsets)
            return
        now = self._clock()
        self._seen_at |= dict.fromkeys({topic for topic, _ in offsets}, now)
        self._seen_at = {topic: at for topic, at in self._seen_at.items() if now - at <= FORGOTTEN_S}
        last: Mapping[str, Floats] = {} if self._read is None else self._read[0]
        known = {topic: loads for topic, loads in last.items() if topic in self._seen_at}
        sizes: dict[str, int] = {topic: len(loads) for topic, loads in known.items()}
        for topic, partition in offsets:
            sizes[topic] = max(sizes.get(topic, 0), partition + 1)
        merged: dict[str, Floats] = {}
        for topic, size in sizes.items():
            merged[topic] = np.full(size, math.nan)
            if topic in known:
                merged[topic][: len(known[topic])] = known[topic]
        for (topic, partition), where in offsets.items():
            merged[topic][partition] = lag_of(where, from_beginning=self.from_beginning)
        self._read = merged, now
        self.arrivals.update({partition: where.end for partition, where in offsets.items()})

    def set_interval(self, interval_s: float) -> None:
        """Read so often from now on; infinite: only when it is asked for."""
        self.interval_s = interval_s

    @property
    def lacks_history(self) -> bool:
        """Whether somebody wants to know what arrived before the first reading, or before the first in a long time."""
        if self.prior_listener is None:
            return False
        return self._read is None or self._clock() - self._read[1] > max(2 * HISTORY_S, self.max_age_s)

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:
        """Answer the newest reading, None before there is one."""
        if not self.topics.issuperset(topics):
            self.include(topics)
        read = self._read
        if read is None:
            return None
        load, read_at = read
        return LoadSnapshot(load=load, unit="records", age_s=self._clock() - read_at, max_age_s=self.max_age_s)


def commit_slack_s(config: Mapping[str, Any]) -> float:
    """About how long after its records a consumer with these settings commits; five seconds where it does so itself."""
    itself = not config.get("enable_auto_commit", True)
    return (5000 if itself else config.get("auto_commit_interval_ms", 5000)) / 1000 + 1.0


def max_poll_s(config: Mapping[str, Any]) -> float:
    """After how long without a poll a consumer with these settings leaves its group; five minutes by default."""
    return float(config.get("max_poll_interval_ms", 300_000)) / 1000


LoadOfLag: TypeAlias = Callable[[LagLoad], LoadSource]
"""What makes a load of a group's lag: ``lambda lag: DrainLoad(lag=lag, rate=lag.arrivals, capacity=3000.0)``."""


def load_of(lag: LagLoad, made: object) -> LoadSource:
    """Answer what ``made`` makes of a lag, the lag itself if it is None. Raises TypeError if it is no `LoadOfLag`."""
    load = lag if made is None else made(lag) if callable(made) else made
    if not isinstance(load, LoadSource):
        raise TypeError(f"load is {load!r}; it must have snapshot(topics), as FixedLoad does, or make that of the lag")
    return load
