"""How long a record of each topic keeps a member busy, measured between its polls.

The records of one topic may take ten times as long as those of another. A poll gives so many of each, and the member
works on them for so long. So the times are fitted by least squares: so long for the poll itself, and so long for each
record of a topic, none of them negative. The variance of a poll's time is taken to grow with its records. What was long
ago counts less, but for much longer than for a member's speed: what a record costs is a matter of the program.

A poll during which the process stood still is left out, for a minute in one poll would outweigh an hour of others. Such
polls are found among the newest ones: those that took far longer than a robust fit of them expects (Huber's weights, by
iteratively reweighted least squares; the scale is the median absolute residual). Where more than a few polls are so,
that is what the records cost.

A time is claimed when its standard error is small. To the time of a record belongs its part of a poll of a hundred, or
of as many as the member's polls give in the (harmonic) mean if that is more.
Topics that always come in the same proportion cannot be told apart, and nothing is claimed of them. Where all polls
give as many records, what a poll itself takes belongs to its records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from loadwise.assignor.model import Bools, Floats

LARGE_POLL = 100
"""What a large poll gives at least. Members get such polls once they are busy."""
_HALF_LIFE_S = 600.0
_MOST_TOPICS = 32
"""Of so many topics the times are measured; a poll that gives records of others as well is left out."""
_FORGOTTEN_POLLS = 0.01
"""A topic that is less than so much of a poll by now makes room for another one."""
_AGAIN_NS = 1_000_000_000
"""The times are found again after so long: for many topics that takes milliseconds, and each commit asks for them."""
_FEWEST = 20.0
"""So many polls must have given records."""
_PRECISE = 0.2
"""A standard error up to this part of the result: the leader takes the median of all members."""
_LEAST_POLLS = 3.0
"""A topic must have been so much as all that so many polls gave."""
_TOLD_APART = 1e4
"""How many times more uncertain a time may be because topics come together."""
_SMALLEST_EIGENVALUE = 1e-9
_NEGLIGIBLE = 1e-12
"""A topic that has given so small a part of all records has no time."""
_LARGEST_EXPONENT = 64.0
_JUDGED = 128
"""Among so many polls at most, the newest ones, those in which the process stood still are looked for."""
_EARLIER_POLLS = 16.0
"""All polls before these count like so many of them in what is expected of them."""
_HUBER = 1.345
"""A residual of so many standard deviations counts in full, and a larger one only like this (Huber, 1964)."""
_FITS = 10
_DEVIATIONS_OF_MEDIAN = 1.4826
_FAR = 8.0
"""So many standard deviations longer than expected took a poll in which the process stood still..."""
_TIMES_LONGER = 2.0
"""... and so many times as long..."""
_RARELY, _A_FEW = 0.05, 2
"""... and there are no more of them than this part of all, or so few."""
_SMALLEST_RESIDUAL = 1e-6
"""A part of what polls take in the median; less than that is rounding."""
_NS = 1e-9
_POLL = 0
"""The place of the poll itself, before those of the topics."""
_PLACES = _MOST_TOPICS + 1


class _Poll(NamedTuple):
    """One poll: how much it weighs, for how long the member worked on it, and its records by the places of topics."""

    weight: float
    busy_s: float
    given: Sequence[tuple[int, int]]


class _Sums(NamedTuple):
    """Sums over polls, each weighed by its age and divided by its records, since its variance grows with these."""

    products: Floats
    """float64[places, places]: of the products of two counts; a poll counts as 1."""
    with_time: Floats
    """float64[places]: of the products of a count and the time."""
    time_squares: float
    polls: float

    def with_places(self, places: int) -> _Sums:
        """The same where there are so many places; nothing has come of the new ones."""
        new = places - len(self.with_time)
        if not new:
            return self
        return self._replace(products=np.pad(self.products, (0, new)), with_time=np.pad(self.with_time, (0, new)))

    def plus(self, table: _Table, chosen: Bools) -> _Sums:
        """The same and the chosen polls of a table (bool[polls]) of as many places."""
        counts, busy_s, weight = table.counts[chosen], table.busy_s[chosen], table.weight[chosen]
        weighed = counts * (weight / table.records[chosen])[:, np.newaxis]
        return _Sums(
            self.products + weighed.T @ counts,
            self.with_time + weighed.T @ busy_s,
            self.time_squares + float((weight / table.records[chosen] * busy_s**2).sum()),
            self.polls + float(weight.sum()),
        )

    def scaled(self, by: float) -> _Sums:
        """All of them so many times as large."""
        return _Sums(self.products * by, self.with_time * by, self.time_squares * by, self.polls * by)


class _Table(NamedTuple):
    """Polls as arrays."""

    counts: Floats
    """float64[polls, places]: 1 for the poll itself, and its records of each topic."""
    records: Floats
    busy_s: Floats
    weight: Floats

    @classmethod
    def of(cls, polls: Sequence[_Poll], places: int) -> _Table:
        """The table of some polls."""
        counts = np.zeros((len(polls), places))
        counts[:, _POLL] = 1.0
        for row, poll in enumerate(polls):
            for place, count in poll.given:
                counts[row, place] = count
        busy_s, weight = np.array([poll.busy_s for poll in polls]), np.array([poll.weight for poll in polls])
        return cls(counts, counts[:, 1:].sum(axis=1), busy_s, weight)


_NOTHING = _Sums(np.zeros((1, 1)), np.zeros(1), 0.0, 0.0)


class TopicTimes:
    """The newest polls one by one, and sums over all before. Newer polls weigh more: the weight grows from 1 on."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._size = 1
        """So many places there have been, with that of the poll itself."""
        self._seen: tuple[_Sums, list[_Poll]] = _NOTHING, []
        """The sums, and the newest polls, which are not in the sums yet."""
        self._since_ns: int | None = None
        self._newest = 1.0
        """What the newest poll has weighed."""
        self._last_ns = 0
        self._found: tuple[int, dict[str, float]] | None = None
        """When `each_s` was found out last, and what it was."""

    def took(self, counts: Mapping[str, int], busy_s: float, now_ns: int) -> None:
        """The member has worked for so long on so many records of each topic. O(topics^2), amortised."""
        self._last_ns = now_ns
        weight = self._weight(now_ns)
        if not self._have_places(counts, weight):
            return
        self._newest = weight
        self._seen[1].append(_Poll(weight, busy_s, [(self._places[topic], count) for topic, count in counts.items()]))
        if len(self._seen[1]) >= _JUDGED:
            self._fold(_JUDGED // 2)

    @property
    def each_s(self) -> dict[str, float]:
        """Topic to the seconds that one of its records takes, as far as they are known. O(topics^3) once a second.

        The topic that has taken most of all the time comes first. Another thread may measure meanwhile.
        """
        found, last_ns = self._found, self._last_ns
        if found is None or last_ns - found[0] >= _AGAIN_NS:
            found = self._found = last_ns, self._find()
        return found[1]

    def _find(self) -> dict[str, float]:
        # The places first: one that another thread gives to a new topic meanwhile has too few polls to be claimed.
        places, newest, (sums, recent) = self._places.copy(), self._newest, self._seen
        if len(places) < 2:  # a single topic is compared with nothing
            return {}
        recent = recent.copy()
        size = self._size  # after the polls: none of them has a place beyond
        table, sums = _Table.of(recent, size), sums.with_places(size)
        products, with_time, time_squares, polls = sums.plus(table, _ordinary(table, sums, newest)).scaled(1 / newest)
        if polls < _FEWEST:
            return {}
        times, inverse = _least_squares(products, with_time)
        squares = time_squares - 2 * times @ with_time + times @ products @ times
        variance = max(float(squares), 0.0) / max(polls - np.count_nonzero(times), 1.0)
        # What a poll itself takes is known badly where all give many records; what both take together is known well.
        large = max(LARGE_POLL, polls / products[_POLL, _POLL])
        each_s = times + times[_POLL] / large
        squared = np.diag(inverse) + 2 * inverse[_POLL] / large + inverse[_POLL, _POLL] / large**2
        error = np.sqrt(variance * np.maximum(squared, 0.0))
        told_apart = np.diag(inverse) * np.diag(products) <= _TOLD_APART
        claimed = (error <= _PRECISE * each_s) & (times > 0) & told_apart & (products[_POLL] >= _LEAST_POLLS)
        order = sorted(places.items(), key=lambda each: -each_s[each[1]] * products[_POLL, each[1]])
        return {topic: float(each_s[place]) for topic, place in order if claimed[place]}

    def _fold(self, oldest: int) -> None:
        """Take so many of the newest polls into the sums, without those in which the process stood still."""
        sums, recent = self._seen
        table, sums = _Table.of(recent, self._size), sums.with_places(self._size)
        chosen = _ordinary(table, sums, self._newest)
        chosen[oldest:] = False
        self._seen = sums.plus(table, chosen), recent[oldest:]

    def _have_places(self, topics: Iterable[str], weight: float) -> bool:
        """Whether there is a place for each of these topics, if need be that of one that has not come for long."""
        new = [topic for topic in topics if topic not in self._places]
        if len(self._places) + len(new) > _MOST_TOPICS:
            self._fold(len(self._seen[1]))
            least = _FORGOTTEN_POLLS * weight
            for topic in [each for each, at in self._places.items() if self._seen[0].products[_POLL, at] < least]:
                self._forget(self._places.pop(topic))
        free = sorted({*range(1, _PLACES)} - {*self._places.values()}) if new else []
        self._size = max([self._size, *(place + 1 for place in free[: len(new)])])
        self._places.update(zip(new, free, strict=False))
        return len(new) <= len(free)

    def _forget(self, place: int) -> None:
        sums, recent = self._seen
        products, with_time = sums.products.copy(), sums.with_time.copy()
        products[place] = products[:, place] = with_time[place] = 0.0
        self._seen = sums._replace(products=products, with_time=with_time), recent

    def _weight(self, now_ns: int) -> float:
        if self._since_ns is None:
            self._since_ns = now_ns
        exponent = (now_ns - self._since_ns) * _NS / _HALF_LIFE_S
        if exponent > _LARGEST_EXPONENT:
            self._fold(len(self._seen[1]))
            self._seen = self._seen[0].scaled(0.5**exponent), []
            self._newest *= 0.5**exponent
            self._since_ns, exponent = now_ns, 0.0
        return math.exp2(max(exponent, 0.0))


def _ordinary(table: _Table, earlier: _Sums, newest: float) -> Bools:
    """bool[polls]: which of the newest polls are no moments in which the process stood still.

    ``newest`` is what the newest poll weighs.
    """
    if not len(table.counts):
        return np.zeros(0, bool)
    earlier = earlier.scaled(1 / newest)
    earlier = earlier.scaled(min(_EARLIER_POLLS / max(earlier.polls, 1e-9), 1.0))
    deviation = np.sqrt(table.records)
    smallest = max(_SMALLEST_RESIDUAL * float(np.median(table.busy_s / deviation)), _NS * _SMALLEST_RESIDUAL)
    counted, residual = np.ones(len(deviation)), np.zeros(len(deviation))
    everything = np.ones(len(deviation), bool)
    expected_s, scale = residual, smallest
    for _ in range(_FITS):
        fit = earlier.plus(table._replace(weight=counted), everything)
        each = np.sqrt(np.diag(fit.products)) + _NS
        # Whatever cannot be told apart is shared somehow: only what it adds up to matters here.
        alike = fit.products / np.outer(each, each) + _SMALLEST_EIGENVALUE * np.eye(len(each))
        expected_s = table.counts @ (np.linalg.solve(alike, fit.with_time / each) / each)
        residual = (table.busy_s - expected_s) / deviation
        scale = max(_DEVIATIONS_OF_MEDIAN * float(np.median(np.abs(residual))), smallest)
        before, counted = counted, np.minimum(_HUBER * scale / np.maximum(np.abs(residual), smallest), 1.0)
        if residual.max() <= _FAR * scale or np.allclose(before, counted, atol=0.01):
            break
    stood = (residual > _FAR * scale) & (table.busy_s > _TIMES_LONGER * expected_s)
    return ~stood if np.count_nonzero(stood) <= max(_RARELY * len(stood), _A_FEW) else everything


def _least_squares(products: Floats, with_time: Floats) -> tuple[Floats, Floats]:
    """The times (float64[n]), none of them negative, and the inverse of ``products`` (float64[n, n]) for their errors.

    What would be negative is left out, the worst first, and before that the poll itself where it cannot be told from
    its records. What is left out has a time of 0.
    """
    times, inverse = np.zeros(len(with_time)), np.zeros(products.shape)
    scale = np.sqrt(np.diag(products))
    places = np.flatnonzero(scale > _NEGLIGIBLE * scale.max())
    while len(places):
        each = scale[places]
        values, vectors = np.linalg.eigh(products[np.ix_(places, places)] / np.outer(each, each))
        undone = (vectors / np.maximum(values, _SMALLEST_EIGENVALUE)) @ vectors.T
        found = undone @ (with_time[places] / each)
        if places[0] == _POLL and undone[0, 0] > _TOLD_APART:
            places = places[1:]
        elif found.min() < 0:
            places = np.delete(places, np.argmin(found))
        else:
            times[places], inverse[np.ix_(places, places)] = found / each, undone / np.outer(each, each)
            break
    return times, inverse
