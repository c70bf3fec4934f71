"""Backlog: the group's progress in each partition, and the lag that the time between commits does not explain."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from loadwise.assignor.live.index import Table, no_partitions
from loadwise.assignor.live.reading import Reading
from loadwise.assignor.model import Floats


@dataclass(frozen=True, eq=False, slots=True)
class Progress(Table):
    """The group's progress; float64[P] each."""

    position: Floats = field(default_factory=no_partitions)
    """The committed offset that is believed."""
    fallen: Floats = field(default_factory=no_partitions)
    """A position that fell and is not confirmed yet; else NaN."""
    stood: Floats = field(default_factory=no_partitions)
    """The position before a confirmed fall, until the position moves again."""
    presumed: Floats = field(default_factory=no_partitions)
    """1 if nothing was committed yet, so that the position is a guess."""
    processed: Floats = field(default_factory=no_partitions)
    """Records processed since the first reading."""
    went_on_ms: Floats = field(default_factory=no_partitions)
    """When the committed offset last advanced."""


@dataclass(frozen=True, eq=False, slots=True)
class Backlog(Table):
    """Lag and backlog in records; float64[P] each, NaN if never read."""

    lag: Floats = field(default_factory=no_partitions)
    """Records that the group has not committed."""
    waiting: Floats = field(default_factory=no_partitions)
    """The smaller backlog of the two newest readings."""
    newest: Floats = field(default_factory=no_partitions)
    """The backlog of the newest reading."""


def progressed(known: Progress, reading: Reading) -> tuple[Progress, Floats]:
    """Return the progress, and float64[P], the records processed since the previous reading."""
    unread = np.isnan(reading.end)
    position = reading.end - reading.lag
    old, fell = known.position, position < known.position
    confirmed = fell & (position >= known.fallen)
    believed = np.where(fell & ~confirmed, old, position)
    # Two readings in a row may be wrong: a position above the one before the fall continues from there.
    stood = np.where(confirmed, old, known.stood)
    since = np.where(position >= stood, stood, old)
    # The first commit replaces the presumed start of the group; it is no progress.
    went_on = np.nan_to_num(np.where(known.presumed > 0, 0.0, np.maximum(believed - since, 0.0)), nan=0.0)
    following = Progress(
        position=np.where(unread, old, believed),
        fallen=np.where(fell, position, np.where(unread, known.fallen, math.nan)),
        stood=np.where(position > old, math.nan, stood),
        presumed=np.where(unread, known.presumed, 1.0 - reading.committed),
        processed=np.nan_to_num(known.processed, nan=0.0) + went_on,
        went_on_ms=np.where(went_on > 0, reading.at_ms, known.went_on_ms),
    )
    return following, went_on


def waited(known: Backlog, reading: Reading, rate: Floats, slack_s: float | Floats) -> Backlog:
    """Return the backlog; ``rate`` are the arrivals, and members commit about every ``slack_s`` seconds."""
    unread = np.isnan(reading.lag)
    newest = beyond_commits(reading.lag, rate, np.fmin(reading.age_s, slack_s))
    return Backlog(
        lag=np.where(unread, known.lag, reading.lag),
        waiting=np.where(unread, known.waiting, np.fmin(newest, known.newest)),  # a single reading may be wrong
        newest=np.where(unread, known.newest, newest),
    )


def beyond_commits(lag: Floats, rate: Floats, slack_s: float | Floats) -> Floats:
    """Return float64[P]: the lag beyond the arrivals of ``slack_s``, the time between two commits; 0 if unknown.

    A member that keeps up has that much lag, because it does not commit each record at once.
    """
    return np.nan_to_num(np.maximum(lag - np.nan_to_num(rate, nan=0.0) * slack_s, 0.0), nan=0.0)
