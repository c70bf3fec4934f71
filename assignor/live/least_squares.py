"""What polls and records take, by least squares over rows of polls: none takes less than no time.

Columns are the polls themselves, and then the records of each topic. The variance of a row is taken to grow with its
records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from loadwise.assignor.model import Bools, Floats

POLL = 0
"""The column of the polls themselves."""
TOLD_APART = 1e4
"""How many times more uncertain a time may be because columns come together."""
_SMALLEST_EIGENVALUE, _NEGLIGIBLE, _SMALLEST_RESIDUAL = 1e-9, 1e-12, 1e-6
_NS, _FITS, _DEVIATIONS_OF_MEDIAN = 1e-9, 10, 1.4826


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTuning:
    """What a member measures of itself; see `loadwise.assignor.live.work`."""

    moment_ns: int = 250_000_000
    """Polls that give alike within this time are one row: a program may poll for each record."""
    rows: int = 256
    """So many rows are kept, some minutes of them."""
    again_ns: int = 1_000_000_000
    """The times are found again after so long: for many topics that takes milliseconds, and each commit asks."""
    half_life_s: float = 60.0
    """The speed is forgotten by half in this time: a machine may get slower..."""
    topic_half_life_s: float = 600.0
    """... and what records of topics take in this: that is a matter of the program."""
    enough_s: float = 0.5
    """So much work must have been seen before it is a measurement..."""
    share: float = 0.02
    """... and so large a part of all time: an application that polls again at once does its work elsewhere."""
    large_poll: float = 100.0
    """What a large poll gives at least. Members get such polls once they are busy."""
    fewest_polls: float = 4.0
    """So many polls must have given records for a speed..."""
    precise: float = 0.05
    """... and its standard error must be no larger than this part of it."""
    fewest_polls_of_topics: int = 20
    """So many polls must have given records for the times of topics..."""
    polls_of_topic: float = 3.0
    """... so many must have had the topic..."""
    precise_for_topics: float = 0.2
    """... and a standard error up to this part of a time will do: the leader takes the median of all members."""
    topics: int = 32
    """Of so many topics the times are measured; a poll that gives records of others as well is left out."""
    far: float = 8.0
    """So many standard deviations longer than expected took a poll in which the process stood still..."""
    times_longer: float = 2.0
    """... and so many times as long..."""
    rarely: float = 0.05
    """... and there are no more of them than this part of all..."""
    a_few: int = 2
    """... or so few."""


class Fit(NamedTuple):
    """What polls and records take, by least squares."""

    times: Floats
    inverse: Floats
    variance: float

    def in_polls_of(self, size: float) -> tuple[Floats, Floats]:
        """What a record takes in polls of so many, by column, and the standard error."""
        squares = np.diag(self.inverse) + 2 * self.inverse[POLL] / size + self.inverse[POLL, POLL] / size**2
        return self.times + self.times[POLL] / size, np.sqrt(self.variance * np.maximum(squares, 0.0))


def ordinary(counts: Floats, busy_s: Floats, weight: Floats, tuning: WorkTuning) -> Bools:
    """bool[rows]: which of them have no moment in which the process stood still."""
    deviation = np.sqrt(counts[:, 1:].sum(axis=1))
    smallest = max(_SMALLEST_RESIDUAL * float(np.median(busy_s / deviation)), _NS * _SMALLEST_RESIDUAL)
    stood = np.zeros(len(busy_s), bool)
    for _ in range(_FITS):
        expected_s = counts @ fit(counts[~stood], busy_s[~stood], weight[~stood]).times
        residual = (busy_s - expected_s) / deviation
        scale = max(_DEVIATIONS_OF_MEDIAN * float(np.median(np.abs(residual))), smallest)
        before, stood = stood, (residual > tuning.far * scale) & (busy_s > tuning.times_longer * expected_s)
        if np.array_equal(before, stood):
            break
    rare = np.count_nonzero(stood) <= max(tuning.rarely * len(stood), tuning.a_few)
    return ~stood if rare else np.ones(len(stood), bool)


def fit(counts: Floats, busy_s: Floats, weight: Floats) -> Fit:
    """Fit the times of the columns, none of them negative.

    What would be negative is left out, the worst first, and before that the poll itself where it cannot be told from
    its records. What is left out has a time of 0.
    """
    weighed = counts * (weight / counts[:, 1:].sum(axis=1))[:, np.newaxis]
    products, with_time = weighed.T @ counts, weighed.T @ busy_s
    times, inverse = np.zeros(len(with_time)), np.zeros(products.shape)
    scale = np.sqrt(np.diag(products))
    places = np.flatnonzero(scale > _NEGLIGIBLE * scale.max())
    while len(places):
        each = scale[places]
        values, vectors = np.linalg.eigh(products[np.ix_(places, places)] / np.outer(each, each))
        undone = (vectors / np.maximum(values, _SMALLEST_EIGENVALUE)) @ vectors.T
        found = undone @ (with_time[places] / each)
        if places[0] == POLL and undone[0, 0] > TOLD_APART:
            places = places[1:]
        elif found.min() < 0:
            places = np.delete(places, np.argmin(found))
        else:
            times[places], inverse[np.ix_(places, places)] = found / each, undone / np.outer(each, each)
            break
    squares = float((weight / counts[:, 1:].sum(axis=1)) @ (busy_s - counts @ times) ** 2)
    return Fit(times, inverse, squares / max(float(weight.sum()) - np.count_nonzero(times), 1e-9))
