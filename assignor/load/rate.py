"""Arrival rate of each partition in records/s, from the end offsets of successive readings."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping

import numpy as np

from loadwise.assignor.load.source import LoadSnapshot
from loadwise.assignor.model import RECORDS_PER_S, Floats

FORGOTTEN_S = 3600.0
"""A partition is dropped this long after its last reading: the group no longer reads it, or it was deleted."""


class RateLoad:
    """The smoothed arrival rate of partitions; a `LoadSource`. One thread may update it while others take snapshots.

    A partition that is missing from the newest reading keeps its rate for an hour.
    """

    def __init__(
        self, *, half_life_s: float = 60.0, max_age_s: float = math.inf, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.half_life_s = half_life_s
        """Half-life of the smoothing in seconds: a burst counts, but does not replace the history."""
        self.max_age_s = max_age_s
        """The age at which a snapshot becomes stale."""
        self._clock = clock
        self._ends: dict[tuple[str, int], tuple[int, float]] = {}
        self._rates: dict[tuple[str, int], float] = {}
        self._read: tuple[Mapping[str, Floats], float] | None = None

    def update(self, ends: Mapping[tuple[str, int], int]) -> None:
        """Store a reading: the end offset of each partition by (topic, partition)."""
        now = self._clock()
        for partition, end in ends.items():
            last_end, at = self._ends.get(partition, (end, now))
            self._ends[partition] = end, now
            if end < last_end:  # the topic was recreated, so its old offsets say nothing
                self._rates.pop(partition, None)
            elif now > at:
                seen = (end - last_end) / (now - at)
                before = self._rates.get(partition, seen)
                self._rates[partition] = seen + (before - seen) * 0.5 ** ((now - at) / self.half_life_s)
        for partition in [each for each, (_, at) in self._ends.items() if now - at > FORGOTTEN_S]:
            del self._ends[partition]
            self._rates.pop(partition, None)
        if not self._rates:
            return
        sizes: dict[str, int] = {}
        for topic, number in self._rates:
            sizes[topic] = max(sizes.get(topic, 0), number + 1)
        load = {topic: np.full(size, np.nan) for topic, size in sizes.items()}
        for (topic, number), rate in self._rates.items():
            load[topic][number] = rate
        self._read = load, now

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:  # noqa: ARG002 (the interface's)
        """Return the newest rates; None before the second reading."""
        read = self._read
        if read is None:
            return None
        load, read_at = read
        return LoadSnapshot(load=load, unit=RECORDS_PER_S, age_s=self._clock() - read_at, max_age_s=self.max_age_s)
