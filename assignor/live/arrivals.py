"""Arrivals: the rate of each partition, from where it ended in successive readings.

The rate of a partition is the mean over the longest stretch of recent readings in which nothing significant changed:
the window grows back from the newest reading for as long as the confidence intervals of all shorter windows have a
point in common (Goldenshluger and Nemirovski's intersection of confidence intervals). So noise is averaged out over a
minute, and a shift is seen with the first reading or two after it. Counts are taken for Poisson, or as much noisier
than that as they were lately in the median partition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from loadwise.assignor.live.index import Table, no_partitions
from loadwise.assignor.live.tuning import ArrivalsTuning
from loadwise.assignor.model import Floats

_FIRST_TWO = 2
_MEDIAN_OF_CHI_SQUARE = 0.455


@dataclass(frozen=True, eq=False, slots=True)
class Arrivals(Table):
    """What is known after a reading; float64[P] each, NaN where unknown."""

    rate: Floats = field(default_factory=no_partitions)
    """Records/s."""
    confirmed: Floats = field(default_factory=no_partitions)
    """The same without what a single reading shows: what it was before where one has just doubled."""
    recent: Floats = field(default_factory=no_partitions)
    """The mean of the last quarter of an hour or so; for what is idle at the moment."""
    last: Floats = field(default_factory=no_partitions)
    """The newest end that was believed."""
    before: Floats = field(default_factory=no_partitions)
    """The one before it."""
    fallen: Floats = field(default_factory=no_partitions)
    """An end that fell and is not confirmed yet."""
    ends: Floats = field(default_factory=lambda: np.empty((0, 0)))
    """float64[readings, P]: where partitions ended, the oldest reading first."""
    times_ms: tuple[int, ...] = ()
    """When these readings were taken."""
    readings: int = 0

    @property
    def measured(self) -> bool:
        """Whether there were two readings, so that the rates are more than what the log's timestamps tell."""
        return self.readings > 1


def prior(known: Arrivals, ends: Floats, at_ms: int) -> Arrivals:
    """Take in where partitions ended some time before the first reading, as the log's timestamps tell it.

    ``ends`` is float64[P], NaN where unknown. It stands for all that was read before that time, and is ignored where
    something was read since.
    """
    if known.times_ms and known.times_ms[-1] >= at_ms:
        return known
    # What was known before so long a pause confirms nothing that is read from now on.
    there = ~np.isnan(ends)
    rate, confirmed = (np.where(there, math.nan, each) for each in (known.rate, known.confirmed))
    return replace(known, rate=rate, confirmed=confirmed, ends=ends[np.newaxis], times_ms=(at_ms,), readings=0)


def arrived(known: Arrivals, end: Floats, now_ms: int, tuning: ArrivalsTuning) -> Arrivals:
    """Take in a reading: float64[P], the offset of the next record of each partition, NaN where it was not read.

    A reading from before the last one is ignored. An end that falls is believed when the next reading confirms it:
    the topic was made again, and what it was before tells nothing.
    """
    if known.times_ms and now_ms <= known.times_ms[-1]:
        return known
    newest = len(known.times_ms) - 1
    kept = [row for row, at in enumerate(known.times_ms) if now_ms - at <= tuning.oldest_ms or row == newest]
    kept = kept[-(tuning.readings - 1) :]  # who reads seldom has no other than the newest
    known = _believed(known, known.ends[kept], end)
    times_ms = (*(known.times_ms[row] for row in kept), now_ms)
    known = replace(known, times_ms=times_ms, readings=known.readings + 1)
    if len(times_ms) == 1:
        return known
    rate = _newest_rates(known.ends, np.array(times_ms), tuning)
    # A single reading that is wrong would be remembered for long: of two the lower one counts.
    seen = np.fmin(rate, known.rate)
    rises = (rate / tuning.risen > known.confirmed) & (known.rate <= tuning.rose * known.confirmed)
    if known.readings == _FIRST_TWO and len(times_ms) > _FIRST_TWO:
        # Nobody wrote for all of the last minute to what was empty before it: the prior is too low.
        rises &= known.ends[0] > 0
    old = 0.5 ** ((now_ms - times_ms[-2]) / tuning.half_life_ms)
    recent = np.where(np.isnan(known.recent), seen, known.recent * old + seen * (1 - old))
    return replace(
        known,
        rate=np.where(np.isnan(rate), known.rate, rate),
        confirmed=np.where(np.isnan(rate) | rises, known.confirmed, rate),
        recent=np.where(np.isnan(rate), known.recent, recent),
    )


def _believed(known: Arrivals, earlier: Floats, end: Floats) -> Arrivals:
    """Take out of earlier readings what the newest one shows to be wrong, and out of it what is not confirmed yet."""
    fell = end < known.last
    last_was_wrong = fell & (end >= known.before)
    lower = fell & ~last_was_wrong
    confirmed = lower & (end >= known.fallen)
    suspicious = lower & ~confirmed
    newest = np.where(suspicious, math.nan, end)
    read = ~np.isnan(newest)
    return replace(
        known,
        ends=np.vstack([np.where(confirmed | (last_was_wrong & (earlier > end)), math.nan, earlier), newest]),
        fallen=np.where(suspicious, end, math.nan),
        before=np.where(read & ~last_was_wrong, np.where(confirmed, math.nan, known.last), known.before),
        last=np.where(read, newest, known.last),
    )


def _newest_rates(ends: Floats, times_ms: Floats, tuning: ArrivalsTuning) -> Floats:
    """The rate in the longest window that agrees with all shorter ones; NaN where the newest reading is."""
    seconds = ((times_ms[-1] - times_ms[-2::-1]) / 1000)[:, np.newaxis]
    count = ends[-1] - ends[-2::-1]
    known = ~np.isnan(count)
    margin = tuning.deviations * np.sqrt(_noise(ends, times_ms, tuning) * np.maximum(count, 1.0)) / seconds
    low = np.maximum.accumulate(np.where(known, count / seconds - margin, -math.inf))
    high = np.minimum.accumulate(np.where(known, count / seconds + margin, math.inf))
    agreed = known & np.logical_and.accumulate(low <= high)
    longest = len(seconds) - 1 - np.argmax(agreed[::-1], axis=0)
    of_longest = np.take_along_axis(count / seconds, longest[np.newaxis], axis=0)[0]
    return np.where(agreed.any(axis=0), of_longest, math.nan)


def _noise(ends: Floats, times_ms: Floats, tuning: ArrivalsTuning) -> float:
    """How many times as much counts vary as Poisson ones do, in the median; a shift is one difference of many."""
    if len(ends) < tuning.for_noise + 2:
        return 1.0
    counts, seconds = np.diff(ends, axis=0), np.diff(times_ms)[:, np.newaxis] / 1000
    differences = np.diff(counts / seconds, axis=0)
    variance = np.maximum(counts[1:], 0) / seconds[1:] ** 2 + np.maximum(counts[:-1], 0) / seconds[:-1] ** 2
    enough = counts[1:] + counts[:-1] >= tuning.counted
    if np.count_nonzero(enough.any(axis=1)) < tuning.for_noise:
        return 1.0
    squares = differences[enough] ** 2 / variance[enough]
    return float(np.clip(np.median(squares) / _MEDIAN_OF_CHI_SQUARE, 1.0, tuning.noisiest))
