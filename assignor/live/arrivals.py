"""Arrivals: the rate of each partition over the newest readings in which enough records arrived.

So a slow group averages noise over a minute, and a busy group detects a shift soon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from loadwise.assignor.live.index import Table, no_partitions
from loadwise.assignor.live.tuning import ArrivalsTuning
from loadwise.assignor.model import Floats

_MOMENT_S = 1e-3


@dataclass(frozen=True, eq=False, slots=True)
class Arrivals(Table):
    """Rates and end offsets after a reading; float64[P] each, NaN if unknown."""

    rate: Floats = field(default_factory=no_partitions)
    """Records/s."""
    confirmed: Floats = field(default_factory=no_partitions)
    """The rate confirmed by two readings: the previous rate if it has just doubled."""
    last: Floats = field(default_factory=no_partitions)
    """The newest accepted end."""
    before: Floats = field(default_factory=no_partitions)
    """The accepted end before ``last``."""
    fallen: Floats = field(default_factory=no_partitions)
    """An end that fell and is not confirmed yet."""
    ends: Floats = field(default_factory=lambda: np.empty((0, 0)))
    """float64[readings, P]: the ends of partitions, the oldest reading first."""
    times_ms: tuple[int, ...] = ()
    """When these readings were taken."""
    readings: int = 0

    @property
    def measured(self) -> bool:
        """Whether there were two readings, so that the rates do not come from the log's timestamps alone."""
        return self.readings > 1


def prior(known: Arrivals, ends: Floats, at_ms: int) -> Arrivals:
    """Replace all readings by earlier ``ends`` from the log's timestamps, float64[P], unless there is a later one."""
    if known.times_ms and known.times_ms[-1] >= at_ms:
        return known
    # Rates from before so long a pause do not confirm later ones.
    there = ~np.isnan(ends)
    rate, confirmed = (np.where(there, math.nan, each) for each in (known.rate, known.confirmed))
    return replace(known, rate=rate, confirmed=confirmed, ends=ends[np.newaxis], times_ms=(at_ms,), readings=0)


def arrived(known: Arrivals, end: Floats, now_ms: int, tuning: ArrivalsTuning) -> Arrivals:
    """Take in a reading later than the last; ``end`` is float64[P], NaN if not read."""
    if known.times_ms and now_ms <= known.times_ms[-1]:
        return known
    newest = len(known.times_ms) - 1
    kept = [row for row, at in enumerate(known.times_ms) if now_ms - at <= tuning.oldest_ms or row == newest]
    kept = kept[-(tuning.readings - 1) :]  # the newest is the only one if readings are rare
    known = _believed(known, known.ends[kept], end)
    times_ms = (*(known.times_ms[row] for row in kept), now_ms)
    known = replace(known, times_ms=times_ms, readings=known.readings + 1)
    if len(times_ms) == 1:
        return known
    rate = _newest_rates(known.ends, np.array(times_ms), tuning)
    # The previous reading showed the rise already if its rate was not confirmed.
    rises = (rate / tuning.risen > known.confirmed) & (known.rate == known.confirmed)
    return replace(
        known,
        rate=np.where(np.isnan(rate), known.rate, rate),
        confirmed=np.where(np.isnan(rate) | rises, known.confirmed, rate),
    )


def lasting(known: Arrivals, tuning: ArrivalsTuning) -> Floats:
    """Return float64[P]: confirmed rates, or the newest ones if they are certainly lower.

    A burst may be over, so a lower rate applies at once. Needs at least two readings.
    """
    seconds = (known.times_ms[-1] - known.times_ms[-2]) / 1000
    newest = (known.ends[-1] - known.ends[-2]) / seconds
    fell = (known.confirmed * seconds >= tuning.enough_to_fall) & (newest * tuning.risen < known.confirmed)
    return np.where(fell, newest, known.confirmed)


def _believed(known: Arrivals, earlier: Floats, end: Floats) -> Arrivals:
    """Remove wrong ends; one that falls counts once the next reading confirms it, because the topic was recreated."""
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
    """Return float64[P]: the mean rate of the newest readings; NaN if they do not determine it."""
    came = np.nan_to_num(ends[-1] - ends, nan=0.0)
    each = came.sum(axis=1) / np.maximum(np.count_nonzero(came > 0, axis=1), 1)
    long_enough = times_ms[-1] - times_ms >= tuning.at_least_ms
    start = int(np.flatnonzero(long_enough & (each >= tuning.enough)).max(initial=0))
    read = ~np.isnan(ends)
    before = np.where(read[: start + 1], np.arange(start + 1)[:, np.newaxis], -1).max(axis=0)
    first = np.where(before >= 0, before, start + np.argmax(read[start:], axis=0))
    seconds = (times_ms[-1] - times_ms[first]) / 1000
    count = ends[-1] - np.take_along_axis(ends, first[np.newaxis], axis=0)[0]
    return np.where(seconds > 0, count / np.maximum(seconds, _MOMENT_S), math.nan)
