"""How long a record of each topic keeps a member busy, measured between its polls.

The records of one topic may take ten times as long as those of another. A poll gives so many of each, and the member
works on them for so long. So the times are fitted by least squares: so long for the poll itself, and so long for each
record of a topic, none of them negative. The variance of a poll's time is taken to grow with its records. What was long
ago counts less, but for much longer than for a member's speed: what a record costs is a matter of the program.

A time is claimed when its standard error is small. Topics that always come in the same proportion cannot be told apart,
and nothing is claimed of them. Where all polls give as many records, what a poll itself takes belongs to its records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from loadwise.assignor.model import Floats

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
_LARGEST_EXPONENT = 64.0
_NS = 1e-9
_POLL = 0
"""The place of the poll itself, before those of the topics."""


class TopicTimes:
    """Sums over polls, in which newer polls weigh more: the weight grows, and nothing has to be made smaller."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._products: dict[tuple[int, int], float] = {}
        """Sums of the products of two counts, by their places, the smaller one first; a poll counts as 1."""
        self._with_time: dict[int, float] = {}
        self._time_squares = self._polls = 0.0
        self._since_ns: int | None = None
        self._newest = 1.0
        """What the newest poll has weighed."""
        self._last_ns = 0
        self._found: tuple[int, dict[str, float]] | None = None
        """When `each_s` was found out last, and what it was."""

    def took(self, counts: Mapping[str, int], busy_s: float, now_ns: int) -> None:
        """The member has worked for so long on so many records of each topic. O(topics^2)."""
        self._last_ns = now_ns
        weight = self._weight(now_ns)
        if not self._have_places(counts, weight):
            return
        self._newest = weight
        self._polls += weight
        weight /= sum(counts.values())
        self._time_squares += weight * busy_s * busy_s
        given = [(_POLL, 1), *sorted((self._places[topic], count) for topic, count in counts.items())]
        for number, (place, count) in enumerate(given):
            self._with_time[place] = self._with_time.get(place, 0.0) + weight * count * busy_s
            for other, its in given[number:]:
                key = place, other
                self._products[key] = self._products.get(key, 0.0) + weight * count * its

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
        polls = self._polls / self._newest
        if len(self._places) < 2 or polls < _FEWEST:  # a single topic is compared with nothing
            return {}
        # The places first: one that another thread gives to a new topic meanwhile has too few polls to be claimed.
        places, sums, sums_with_time = self._places.copy(), self._products.copy(), self._with_time.copy()
        size = _MOST_TOPICS + 1
        products = np.zeros((size, size))
        for (place, other), value in sums.items():
            products[place, other] = products[other, place] = value / self._newest
        with_time = np.array([sums_with_time.get(place, 0.0) for place in range(size)]) / self._newest
        times, inverse = _least_squares(products, with_time)
        squares = self._time_squares / self._newest - 2 * times @ with_time + times @ products @ times
        variance = max(float(squares), 0.0) / max(polls - np.count_nonzero(times), 1.0)
        error = np.sqrt(variance * np.diag(inverse))
        told_apart = np.diag(inverse) * np.diag(products) <= _TOLD_APART
        claimed = (error <= _PRECISE * times) & (times > 0) & told_apart & (products[_POLL] >= _LEAST_POLLS)
        order = sorted(places.items(), key=lambda each: -times[each[1]] * products[_POLL, each[1]])
        return {topic: float(times[place]) for topic, place in order if claimed[place]}

    def _have_places(self, topics: Iterable[str], weight: float) -> bool:
        """Whether there is a place for each of these topics, if need be that of one that has not come for long."""
        new = [topic for topic in topics if topic not in self._places]
        if len(self._places) + len(new) > _MOST_TOPICS:
            least = _FORGOTTEN_POLLS * weight
            for topic in [each for each, at in self._places.items() if self._products[_POLL, at] < least]:
                self._forget(self._places.pop(topic))
        free = sorted({*range(1, _MOST_TOPICS + 1)} - {*self._places.values()}) if new else []
        self._places.update(zip(new, free, strict=False))
        return len(new) <= len(free)

    def _forget(self, place: int) -> None:
        self._products = {key: value for key, value in self._products.items() if place not in key}
        self._with_time.pop(place, None)

    def _weight(self, now_ns: int) -> float:
        if self._since_ns is None:
            self._since_ns = now_ns
        exponent = (now_ns - self._since_ns) * _NS / _HALF_LIFE_S
        if exponent > _LARGEST_EXPONENT:
            self._scale(0.5**exponent)
            self._since_ns, exponent = now_ns, 0.0
        return math.exp2(max(exponent, 0.0))

    def _scale(self, by: float) -> None:
        self._products = {key: value * by for key, value in self._products.items()}
        self._with_time = {key: value * by for key, value in self._with_time.items()}
        self._time_squares, self._polls = self._time_squares * by, self._polls * by


def _least_squares(products: Floats, with_time: Floats) -> tuple[Floats, Floats]:
    """The times (float64[n]), none of them negative, and the inverse of ``products`` (float64[n, n]) for their errors.

    What would be negative is left out, the worst first, and before that the poll itself where it cannot be told from
    its records. What is left out has a time of 0.
    """
    times, inverse = np.zeros(len(with_time)), np.zeros(products.shape)
    scale = np.sqrt(np.diag(products))
    places = np.flatnonzero(scale > 0)
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
