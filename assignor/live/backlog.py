"""Backlog: what the group has processed of each partition, and what waits in it beyond what a commit explains."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from loadwise.assignor.live.index import Table, no_partitions
from loadwise.assignor.live.reading import Reading
from loadwise.assignor.model import Floats


@dataclass(frozen=True, eq=False, slots=True)
class Progress(Table):
    """Where the group stands; float64[P] each."""

    position: Floats = field(default_factory=no_partitions)
    """The committed offset that is believed."""
    fallen: Floats = field(default_factory=no_partitions)
    """A position that fell and is not confirmed yet, else NaN."""
    stood: Floats = field(default_factory=no_partitions)
    """Where a partition stood before a fall that was confirmed, as long as it has not moved since."""
    presumed: Floats = field(default_factory=no_partitions)
    """1 where nothing was committed yet, so that the position is a guess."""
    processed: Floats = field(default_factory=no_partitions)
    """Records that were processed since the first reading."""
    went_on_ms: Floats = field(default_factory=no_partitions)
    """When something new was committed last."""


@dataclass(frozen=True, eq=False, slots=True)
class Backlog(Table):
    """What waits, in records; float64[P] each, NaN where it was never read."""

    lag: Floats = field(default_factory=no_partitions)
    """All that the group has not committed."""
    waiting: Floats = field(default_factory=no_partitions)
    """The backlog: the smaller one of the two newest readings."""
    newest: Floats = field(default_factory=no_partitions)
    """That of the newest reading."""


def progressed(known: Progress, reading: Reading) -> tuple[Progress, Floats]:
    """Take in a reading; also float64[P], the records that were processed since the one before.

    A position that falls is believed when the next reading confirms it.
    """
    unread = np.isnan(reading.end)
    position = reading.end - reading.lag
    old, fell = known.position, position < known.position
    confirmed = fell & (position >= known.fallen)
    believed = np.where(fell & ~confirmed, old, position)
    # Two readings may be wrong in a row: who then stands beyond where it stood has gone on from there.
    stood = np.where(confirmed, old, known.stood)
    since = np.where(position >= stood, stood, old)
    # The first commit tells where the group began, which only was presumed, and not how far it has come since.
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


def waited(known: Backlog, reading: Reading, rate: Floats, slack_s: float) -> Backlog:
    """Take in a reading, where so much arrives and members commit about every ``slack_s`` seconds.

    Of two readings the smaller backlog counts: one that is wrong must move nothing.
    """
    unread = np.isnan(reading.lag)
    newest = beyond_commits(reading.lag, rate, np.fmin(reading.age_s, slack_s))
    return Backlog(
        lag=np.where(unread, known.lag, reading.lag),
        waiting=np.where(unread, known.waiting, np.fmin(newest, known.newest)),
        newest=np.where(unread, known.newest, newest),
    )


def beyond_commits(lag: Floats, rate: Floats, slack_s: float | Floats) -> Floats:
    """float64[P]: the lag beyond what arrives in ``slack_s``, the time between two commits; 0 where it is unknown.

    A member that keeps up looks as if it lagged by as much, only because it commits from time to time.
    """
    return np.nan_to_num(np.maximum(lag - np.nan_to_num(rate, nan=0.0) * slack_s, 0.0), nan=0.0)
