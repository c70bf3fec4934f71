"""Lag: the number of records that a group still has to read in each partition.

`LagLoad` keeps the newest reading and its age. A client's own module (``kafka_python_lag``, ``aiokafka_lag`` in
`loadwise.assignor.clients`) reads in the background and calls `LagLoad.update`.
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
from loadwise.assignor.load.switch import SwitchReader
from loadwise.assignor.model import Floats

STALE_AFTER_INTERVALS = 6
"""Lag is stale after this many missed readings in a row..."""
STALE_AFTER_AT_LEAST_S = 30.0
"""... but not before this many seconds, so that a slow broker does not make it stale."""


HISTORY_S = 60.0
"""How far back the reader looks up end offsets for a first arrival rate."""
_YOUNGEST_S = 5.0
"""The minimum age of a topic for its rate: the first moments of a topic say little."""


BEGINNINGS_S = 60.0
"""How often begin offsets are read: only retention moves them, and reading them costs as much as reading end offsets.

Partitions and their leaders are read as often, and whenever the topics to read change.
"""


class PartitionOffsets(NamedTuple):
    """Begin, end and committed offset of a partition."""

    beginning: int
    """Offset of the oldest record."""
    end: int
    """Offset of the next record to be written."""
    committed: int | None
    """Offset that the group reads next; None without a commit."""
    metadata: str = ""
    """The metadata of the commit."""


def lag_of(offsets: PartitionOffsets, *, from_beginning: bool) -> int:
    """Return how many records the group still has to read.

    Without a commit, ``auto.offset.reset`` decides: the consumer starts at the beginning, or at the end without lag.
    Records that retention has removed do not count.
    """
    start = offsets.beginning if from_beginning else offsets.end
    position = start if offsets.committed is None else max(offsets.committed, offsets.beginning)
    return max(offsets.end - position, 0)


def lags(beginning: Floats, end: Floats, committed: Floats, *, from_beginning: bool) -> Floats:
    """Compute `lag_of` for many partitions, float64[P] each; ``committed`` is NaN without a commit."""
    position = np.where(np.isnan(committed), beginning if from_beginning else end, np.maximum(committed, beginning))
    return np.maximum(end - position, 0.0)


class FirstSince(NamedTuple):
    """The first record of a partition at or after some time, as in a ListOffsets answer."""

    offset: int
    """-1 if there is no such record."""
    timestamp: int
    """Its timestamp in ms since 1970, set by the producer or the broker."""


NONE_SINCE = FirstSince(-1, -1)


def first_since(found: Mapping[Any, Any]) -> dict[tuple[str, int], FirstSince]:
    """Convert a client's offsets for a time; None in it means that there is no such record."""
    return {
        tuple(partition): NONE_SINCE if at is None else FirstSince(at.offset, at.timestamp)
        for partition, at in found.items()
    }


def ends_before(
    found: Mapping[tuple[str, int], FirstSince], offsets: Mapping[tuple[str, int], PartitionOffsets], now_ms: int
) -> dict[tuple[str, int], int]:
    """Return where partitions ended `HISTORY_S` ago, from the first records since. ``now_ms`` is ms since 1970.

    A partition has no such record if nothing arrived since, or if its records carry old timestamps. So a topic is used
    only if at least one partition has such a record and no partition has one with a timestamp in the future.

    If a topic got its first record within that time, the result is extrapolated below 0, as if its partitions had
    always had their rate since that record. An end of 0 would make the rate too low and the backlog count too much. A
    topic that is younger than `_YOUNGEST_S` is left out: until there are enough newer readings, a wrong rate would
    count as one of a whole minute.
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
            age_s = min((now_ms - began_ms[topic]) / 1000, HISTORY_S)
            if age_s >= _YOUNGEST_S:
                ends[partition] = round(end * (1 - HISTORY_S / age_s))
        else:
            ends[partition] = min(first.offset, end) if first.offset >= 0 else end
    return ends


class LagLoad:
    """The newest lag of one group; a `LoadSource`. One thread may update it while others take snapshots.

    A partition that is missing from the newest reading keeps its lag, because an old lag is better than none. A topic
    is dropped an hour after its last reading.
    """

    def __init__(
        self,
        topics: Iterable[str] = (),
        *,
        auto_offset_reset: str = "latest",
        interval_s: float = 5.0,
        group_id: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.topics = frozenset(topics)
        """Topics to read: those given, watched, or requested from `snapshot`."""
        self.pattern: re.Pattern[str] | None = None
        """Also read the topics whose names match this pattern."""
        self.told = 0
        """How often the topics to read were set, for example by an assignment."""
        self.interval_s = interval_s
        """Seconds between two readings."""
        self.max_age_s = max(STALE_AFTER_INTERVALS * interval_s, STALE_AFTER_AT_LEAST_S)
        """The age at which a snapshot becomes stale."""
        self.arrivals = RateLoad(max_age_s=self.max_age_s, clock=clock)
        """The arrival rate of the same partitions in records/s, for `loadwise.assignor.load.drain`."""
        self.from_beginning = auto_offset_reset in ("earliest", "smallest")
        """Whether the group begins a partition without a commit at its beginning, else at its end."""
        self.listener: Callable[[Mapping[tuple[str, int], PartitionOffsets]], None] | None = None
        """Called with every reading, on the reading thread or task."""
        self.switch: SwitchReader | None = None
        """Reads the group's switch with each reading that is due; None: nothing reads it."""
        self.prior_listener: Callable[[Mapping[tuple[str, int], int]], None] | None = None
        """Called before the first reading with the end offsets of a minute ago, where the log has them."""
        self._group_id = group_id
        self._clock = clock
        self._read: tuple[Mapping[str, Floats], float] | None = None
        self._seen_at: dict[str, float] = {}

    def watch(self, topics: Iterable[str] = (), *, pattern: str | re.Pattern[str] | None = None) -> None:
        """Also read these topics from now on, and at once."""
        self.include(topics, pattern=pattern)
        self.refresh()

    def watch_switch(self, listener: Callable[[bool], None]) -> None:
        """Call ``listener`` with whether `loadwise live off` is in force, on the reading thread or task."""
        self.switch = SwitchReader(self._group_id, listener) if self._group_id else None

    def refresh(self) -> None:
        """Read at once, if this object reads at all."""

    def include(self, topics: Iterable[str] = (), *, pattern: str | re.Pattern[str] | None = None) -> None:
        """Also read these topics, beginning with the next reading."""
        self.topics = self.topics.union(topics)
        self.told += 1
        if pattern is not None:
            self.pattern = re.compile(pattern)

    def only(self, topics: Iterable[str]) -> None:
        """Read only these topics, and those that match the pattern, from now on."""
        self.topics = frozenset(topics)
        self.told += 1

    def update(self, offsets: Mapping[tuple[str, int], PartitionOffsets]) -> None:
        """Store a reading by (topic, partition). With a listener, the listener stores it instead."""
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
        """Set the time between two readings; infinite: read only on request."""
        self.interval_s = interval_s

    @property
    def lacks_history(self) -> bool:
        """Whether a listener needs the arrivals before the first reading, or before the first after a long gap."""
        if self.prior_listener is None:
            return False
        return self._read is None or self._clock() - self._read[1] > max(2 * HISTORY_S, self.max_age_s)

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:
        """Return the newest reading; None before the first one."""
        if not self.topics.issuperset(topics):
            self.include(topics)
        read = self._read
        if read is None:
            return None
        load, read_at = read
        return LoadSnapshot(load=load, unit="records", age_s=self._clock() - read_at, max_age_s=self.max_age_s)


def commit_slack_s(config: Mapping[str, Any]) -> float | None:
    """Return how long after its records a consumer commits, roughly; None if the application commits by itself."""
    if not config.get("enable_auto_commit", True):
        return None
    return float(config.get("auto_commit_interval_ms", 5000)) / 1000 + 1.0


def max_poll_s(config: Mapping[str, Any]) -> float:
    """Return the poll timeout (``max.poll.interval.ms``) in seconds; five minutes by default."""
    return float(config.get("max_poll_interval_ms", 300_000)) / 1000


LoadOfLag: TypeAlias = Callable[[LagLoad], LoadSource]
"""Builds a load from a group's lag: ``lambda lag: DrainLoad(lag=lag, rate=lag.arrivals, capacity=3000.0)``."""


def load_of(lag: LagLoad, made: object) -> LoadSource:
    """Return the load that ``made`` builds from a lag, or the lag if it is None. Raises TypeError if it is no load."""
    load = lag if made is None else made(lag) if callable(made) else made
    if not isinstance(load, LoadSource):
        raise TypeError(f"load is {load!r}; it needs snapshot(topics), as FixedLoad has, or must build that from a lag")
    return load
