"""Arrival rates of partitions, from where they ended in successive readings.

The rate of a partition is the mean over the longest stretch of recent readings in which nothing significant changed:
the window grows back from the newest reading for as long as the confidence intervals of all shorter windows have a
point in common (Goldenshluger and Nemirovski's intersection of confidence intervals). So noise is averaged out over a
minute, and a shift is seen with the first reading or two after it. Counts are taken for Poisson, or as much noisier
than that as they were lately in the median partition.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from loadwise.assignor.live.index import PartitionIndex
from loadwise.assignor.model import Floats, Ints

_READINGS = 13
"""So many readings are kept: a minute of them, where they come every five seconds."""
_OLDEST_MS = 180_000
"""Readings older than this count no more, but for the last one before the newest."""
_DEVIATIONS = 3.0
"""So many standard deviations apart, two counts are not of the same rate."""
_FOR_NOISE = 5
"""Of so many pairs of successive counts at least, one may be a shift of all partitions, and the median is noise."""
_NOISIEST = 50.0
"""How many times the variance of Poisson arrivals is taken for noise at most."""
_HALF_LIFE_MS = 600_000
"""What a partition had recently is forgotten by half in this time."""
_FIRST_TWO = 2
_MEDIAN_OF_CHI_SQUARE = 0.455
_RISEN = 2.0
"""A rate that has risen to so many times what it was must be seen by a second reading, for the end may be wrong..."""
_ROSE = 1.25
"""... unless the reading before has it so many times higher already."""


class ArrivalRates:
    """The rates of all partitions of an index, in records/s."""

    def __init__(self, index: PartitionIndex) -> None:
        self._index = index
        self._ends: deque[tuple[int, Floats]] = deque(maxlen=_READINGS)
        self._rate = np.empty(0)
        self._confirmed = np.empty(0)
        """The rates without the rises that only the newest reading has."""
        self._recent = np.empty(0)
        self._last, self._before = np.empty(0), np.empty(0)
        """The newest end of each partition that was believed, and the one before it."""
        self._fallen = np.empty(0)
        """An end that fell and is not confirmed yet."""
        self._readings = 0

    @property
    def measured(self) -> bool:
        """Whether there were two readings, so that the rates are more than what the log's timestamps tell."""
        return self._readings > 1

    def prior(self, ends: Floats, at_ms: int) -> None:
        """Take in where partitions ended some time before the first reading, as the log's timestamps tell it.

        ``ends`` is float64[P], NaN where unknown. It stands for all that was read before that time, and is ignored
        where something was read since.
        """
        if not self._ends or self._ends[-1][0] < at_ms:
            self._ends.clear()
            self._ends.append((at_ms, ends.copy()))
            self._readings = 0
            # What was known before so long a pause confirms nothing that is read from now on.
            known = ~np.isnan(ends)
            self._rate = np.where(known, math.nan, self._index.padded(self._rate))
            self._confirmed = np.where(known, math.nan, self._index.padded(self._confirmed))

    def update(self, ends: Floats, now_ms: int) -> None:
        """Take in a reading: float64[P], the offset of the next record of each partition, NaN where it was not read.

        A reading from before the last one is ignored. An end that falls is believed when the next reading confirms it:
        the topic was made again, and what it was before tells nothing.
        """
        if self._ends and now_ms <= self._ends[-1][0]:
            return
        self._rate = self._index.padded(self._rate)
        self._confirmed = self._index.padded(self._confirmed)
        self._recent = self._index.padded(self._recent)
        self._last, self._before = self._index.padded(self._last), self._index.padded(self._before)
        self._fallen = self._index.padded(self._fallen)
        newest = ends.copy()
        for left in reversed(range(len(self._ends))):
            at, old = self._ends.popleft()
            if now_ms - at <= _OLDEST_MS or not left:  # who reads seldom has no other
                self._ends.append((at, self._index.padded(old)))
        self._believe(newest)
        self._ends.append((now_ms, newest))
        self._readings += 1
        if len(self._ends) > 1:
            rate = self._newest_rates()
            elapsed = now_ms - self._ends[-2][0]
            # A single reading that is wrong would be remembered for long: of two the lower one counts.
            seen = np.fmin(rate, self._rate)
            rises = (rate > _RISEN * self._confirmed) & (self._rate <= _ROSE * self._confirmed)
            if self._readings == _FIRST_TWO and len(self._ends) > _FIRST_TWO:
                # Nobody wrote for all of the last minute to what was empty before it: the prior is too low.
                rises &= self._ends[0][1] > 0
            self._rate = np.where(np.isnan(rate), self._rate, rate)
            self._confirmed = np.where(np.isnan(rate) | rises, self._confirmed, rate)
            kept = 0.5 ** (elapsed / _HALF_LIFE_MS)
            recent = np.where(np.isnan(self._recent), seen, self._recent * kept + seen * (1 - kept))
            self._recent = np.where(np.isnan(rate), self._recent, recent)

    def keep(self, rows: Ints) -> None:
        """Forget all partitions but these, before the index does."""

        def kept(array: Floats) -> Floats:
            return PartitionIndex.pick(self._index.padded(array), rows)

        self._ends = deque(((at_ms, kept(ends)) for at_ms, ends in self._ends), maxlen=_READINGS)
        self._rate, self._confirmed, self._recent = kept(self._rate), kept(self._confirmed), kept(self._recent)
        self._last, self._before, self._fallen = kept(self._last), kept(self._before), kept(self._fallen)

    def rates(self) -> Floats:
        """float64[P]: arrivals of each partition in records/s, NaN where unknown."""
        return self._index.padded(self._rate)

    def confirmed(self) -> Floats:
        """float64[P]: the same without what a single reading shows: what it was before where one has just doubled."""
        return self._index.padded(self._confirmed)

    def recent(self) -> Floats:
        """float64[P]: the mean of the last quarter of an hour or so; for what is idle at the moment."""
        return self._index.padded(self._recent)

    def _believe(self, newest: Floats) -> None:
        """Take out of the readings what the newest one shows to be wrong, and out of it what is not confirmed yet."""
        fell = newest < self._last
        last_was_wrong = fell & (newest >= self._before)
        lower = fell & ~last_was_wrong
        confirmed = lower & (newest >= self._fallen)
        for _, old in self._ends:
            old[confirmed | (last_was_wrong & (old > newest))] = math.nan
        suspicious = lower & ~confirmed
        self._fallen = np.where(suspicious, newest, math.nan)
        newest[suspicious] = math.nan
        read = ~np.isnan(newest)
        self._before = np.where(read & ~last_was_wrong, np.where(confirmed, math.nan, self._last), self._before)
        self._last = np.where(read, newest, self._last)

    def _newest_rates(self) -> Floats:
        """The rate in the longest window that agrees with all shorter ones; NaN where the newest reading is."""
        now_ms, end = self._ends[-1]
        earlier = list(self._ends)[-2::-1]
        seconds = (now_ms - np.array([[at_ms] for at_ms, _ in earlier])) / 1000
        count = end - np.array([ends for _, ends in earlier])
        known = ~np.isnan(count)
        margin = _DEVIATIONS * np.sqrt(self._noise() * np.maximum(count, 1.0)) / seconds
        low = np.maximum.accumulate(np.where(known, count / seconds - margin, -math.inf))
        high = np.minimum.accumulate(np.where(known, count / seconds + margin, math.inf))
        agreed = known & np.logical_and.accumulate(low <= high)
        longest = len(earlier) - 1 - np.argmax(agreed[::-1], axis=0)
        of_longest = np.take_along_axis(count / seconds, longest[np.newaxis], axis=0)[0]
        return np.where(agreed.any(axis=0), of_longest, math.nan)

    def _noise(self) -> float:
        """How many times as much counts vary as Poisson ones do, in the median; a shift is one difference of many."""
        if len(self._ends) < _FOR_NOISE + 2:
            return 1.0
        times = np.array([at for at, _ in self._ends], float)
        ends = np.array([end for _, end in self._ends])
        counts, seconds = np.diff(ends, axis=0), np.diff(times)[:, np.newaxis] / 1000
        differences = np.diff(counts / seconds, axis=0)
        variance = np.maximum(counts[1:], 0) / seconds[1:] ** 2 + np.maximum(counts[:-1], 0) / seconds[:-1] ** 2
        enough = counts[1:] + counts[:-1] >= 10
        if np.count_nonzero(enough.any(axis=1)) < _FOR_NOISE:
            return 1.0
        squares = differences[enough] ** 2 / variance[enough]
        return float(np.clip(np.median(squares) / _MEDIAN_OF_CHI_SQUARE, 1.0, _NOISIEST))
