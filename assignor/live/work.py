"""How long a member works on its records, measured between its polls: in all, and on a record of each topic.

From the moment when a poll has given records to the next poll the application works on them. Part of that time goes to
the poll itself, however few records it gives, and part to each record. Least squares finds both, none negative, from
sums that are forgotten by half in some time. The variance of a poll's time is taken to grow with its records. What
counts is a record's time in large polls: they are what a member gets once it is busy.

Nothing is claimed before it is precise. Where an application hands records to other threads or tasks and polls again at
once, too little time adds up, and nothing is claimed either. Nor is it for topics that always come in one proportion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from loadwise.assignor.live.tuning import WorkTuning
from loadwise.assignor.model import Floats

_POLL, _OTHERS, _FIRST = 0, 1, 2
"""The columns of the polls themselves, of topics without a column of their own, and of the first topic."""
_NS, _NEGLIGIBLE, _TOLD_APART = 1e-9, 1e-9, 1e4
_PRECISEST = 1e-3
"""No time is measured more precisely than this: what always comes in one proportion is not told apart by rounding."""


@dataclass(frozen=True, eq=False, slots=True)
class _Sums:
    """The normal equations of polls; columns as above."""

    at_ns: int = 0
    products: Floats = field(default_factory=lambda: np.zeros((_FIRST, _FIRST)))
    with_time: Floats = field(default_factory=lambda: np.zeros(_FIRST))
    squares: float = 0.0
    rows: float = 0.0

    @property
    def records(self) -> Floats:
        """float64[columns]: how many polls there were, and how many records of each topic they gave."""
        return np.asarray(self.products[1:].sum(axis=0))

    @property
    def busy_s(self) -> float:
        """How long all of that took."""
        return float(self.with_time[1:].sum())

    def faded(self, now_ns: int, half_life_s: float) -> _Sums:
        """The same some time later."""
        kept = 0.5 ** (max(now_ns - self.at_ns, 0) * _NS / half_life_s)
        return _Sums(now_ns, self.products * kept, self.with_time * kept, self.squares * kept, self.rows * kept)

    def plus(self, counts: Floats, busy_s: float) -> _Sums:
        """The same and polls that gave alike."""
        each = counts / counts[1:].sum()
        products, with_time = self.products + np.outer(each, counts), self.with_time + each * busy_s
        return _Sums(
            self.at_ns, products, with_time, self.squares + busy_s**2 / counts[1:].sum(), self.rows + counts[_POLL]
        )

    def of(self, columns: list[int]) -> _Sums:
        """The same with these columns only; -1 is one of which nothing is known."""
        known = np.array(columns) >= 0
        products = np.where(np.outer(known, known), self.products[np.ix_(columns, columns)], 0.0)
        return _Sums(self.at_ns, products, np.where(known, self.with_time[columns], 0.0), self.squares, self.rows)


class _Fit(NamedTuple):
    """What polls and records take, and the covariance of that; 0 where nothing is known."""

    times: Floats
    covariance: Floats

    def takes(self, counts: Floats) -> tuple[float, float]:
        """The seconds that so many polls and records take, and the standard error."""
        return float(counts @ self.times), math.sqrt(max(float(counts @ self.covariance @ counts), 0.0))


class BusyTime:
    """Times are in nanoseconds of one clock: a single record may take microseconds."""

    def __init__(self, tuning: WorkTuning | None = None) -> None:
        self._tuning = tuning or WorkTuning()
        self._given: tuple[Mapping[str, int], int] | None = None
        self._began_ns: int | None = None
        self._columns: dict[str, int] = {}
        self._sums = _Sums()
        self._moment: dict[object, tuple[int, dict[str, int], float]] = {}
        """Polls of this moment that gave alike, for a program may poll a thousand times a second."""
        self._expected: tuple[int, _Fit] | None = None
        """What polls and records took a while ago, and when that was."""

    def polls(self, now_ns: int) -> None:
        """The application asks for records: it has processed those that it was given."""
        given, self._given = self._given, None
        self._pass(now_ns)
        if given is not None:
            self.took(given[0], max(now_ns - given[1], 0) * _NS, now_ns)

    def given(self, records: Mapping[str, int], now_ns: int) -> None:
        """A poll has given so many records of each topic to the application; none of a topic that is not named."""
        counts = {topic: count for topic, count in records.items() if count}
        self._given = (counts, now_ns) if counts else None

    def took(self, counts: Mapping[str, int], busy_s: float, now_ns: int, *, polls: int = 1) -> None:
        """The member has worked for so long on so many records of each topic, which so many polls have given."""
        self._pass(now_ns)
        if not counts:
            return
        alike = frozenset((topic, count.bit_length()) for topic, count in counts.items())
        polls_before, before, took_s = self._moment.get(alike, (0, {}, 0.0))
        both = {topic: count + before.get(topic, 0) for topic, count in counts.items()}
        self._moment[alike] = polls_before + polls, both, took_s + busy_s

    @property
    def per_s(self) -> float:
        """Records in a busy second; 0 where that is not known, or not precisely enough."""
        sums, tuning = self._sums_now(), self._tuning
        records = sums.records
        if records[_POLL] < tuning.fewest_polls or not self._in_line(sums):
            return 0.0
        fit, given = _fitted(sums), records / records[1:].sum()
        for polls in (min(1 / tuning.large_poll, given[_POLL]), given[_POLL]):
            given[_POLL] = polls
            each_s, error_s = fit.takes(given)
            if each_s > 0 and error_s <= tuning.precise * each_s:
                return 1 / each_s
        return 0.0

    @property
    def each_s(self) -> dict[str, float]:
        """Topic to the seconds that one of its records takes, where these can be told from those of other topics.

        The topic that has taken most of all the time comes first.
        """
        columns, sums, tuning = dict(self._columns), self._sums_now(), self._tuning
        records = sums.records
        if records[_POLL] < tuning.fewest_polls_of_topics or not self._in_line(sums):
            return {}
        there = {
            topic: column for topic, column in columns.items() if sums.products[_POLL, column] >= tuning.polls_of_topic
        }
        fit, took = _fitted(sums), {}
        for topic, column in there.items() if len(there) > 1 else ():  # a single topic is compared with nothing
            one = np.zeros(len(records))
            one[column], one[_POLL] = 1.0, min(1 / tuning.large_poll, records[_POLL] / records[1:].sum())
            each_s, error_s = fit.takes(one)
            if fit.times[column] > 0 and error_s <= tuning.precise_for_topics * each_s:
                took[topic] = each_s
        return dict(sorted(took.items(), key=lambda each: -each[1] * records[columns[each[0]]]))

    def _in_line(self, sums: _Sums) -> bool:
        """Whether enough work was seen, so that what is done between two polls is the work on their records."""
        tuning, passed_s = self._tuning, (sums.at_ns - (self._began_ns or 0)) * _NS
        all_s = tuning.half_life_s / math.log(2) * (1 - 0.5 ** (passed_s / tuning.half_life_s))
        return bool(sums.busy_s >= max(tuning.enough_s, tuning.share * all_s))

    def _sums_now(self) -> _Sums:
        """With the polls of this moment; another thread may measure meanwhile."""
        sums = self._sums
        for polls, counts, busy_s in list(self._moment.values()):
            row = np.zeros(len(sums.with_time))
            row[_POLL] = polls
            for topic, count in counts.items():
                row[self._columns.get(topic, _OTHERS)] += count
            sums = sums.plus(row, self._without_a_stall(row, busy_s))
        return sums

    def _without_a_stall(self, row: Floats, busy_s: float) -> float:
        """A process that stood still for a moment is not a slow one; if it goes on so, it is."""
        expected_s = 0.0 if self._expected is None else self._expected[1].takes(row)[0]
        return min(busy_s, self._tuning.far * expected_s) if expected_s > 0 else busy_s

    def _pass(self, now_ns: int) -> None:
        """Time goes by: the polls of a moment ago are added up, and all before them count for less."""
        self._began_ns = now_ns if self._began_ns is None else self._began_ns
        if now_ns - self._sums.at_ns < self._tuning.moment_ns and now_ns >= self._sums.at_ns:
            return
        there = {topic for _, counts, _ in self._moment.values() for topic in counts}
        if not there <= self._columns.keys():
            self._make_room(there)
        sums, self._moment = self._sums_now(), {}
        self._sums = sums.faded(now_ns, self._tuning.half_life_s)
        if self._expected is None or now_ns - self._expected[0] > self._tuning.again_ns:
            enough = sums.records[_POLL] >= self._tuning.fewest_polls_of_topics
            self._expected = (now_ns, _fitted(sums)) if enough else None

    def _make_room(self, topics: Set[str]) -> None:
        """Give topics columns, as long as there are some; those of which nothing is left lose theirs."""
        records = self._sums.records
        kept = [topic for topic, column in self._columns.items() if records[column] > _NEGLIGIBLE]
        new = sorted(topics - set(kept))[: max(self._tuning.topics - len(kept), 0)]
        if not new:
            return
        columns = [_POLL, _OTHERS, *(self._columns[topic] for topic in kept), *(-1 for _ in new)]
        self._sums, self._expected = self._sums.of(columns), None
        self._columns = {topic: column for column, topic in enumerate([*kept, *new], _FIRST)}


def _fitted(sums: _Sums) -> _Fit:
    """Fit the times of the columns.

    What would be negative is left out, the worst first, and before that the poll itself where it cannot be told from
    its records. What is left out has a time of 0.
    """
    products, size = sums.products, len(sums.with_time)
    times, covariance = np.zeros(size), np.zeros((size, size))
    scale = np.sqrt(np.diag(products))
    places = np.flatnonzero(scale > _NEGLIGIBLE * scale.max())
    while len(places):
        each = scale[places]
        values, vectors = np.linalg.eigh(products[np.ix_(places, places)] / np.outer(each, each))
        undone = (vectors / np.maximum(values, _NEGLIGIBLE)) @ vectors.T
        found = undone @ (sums.with_time[places] / each)
        if places[0] == _POLL and undone[0, 0] > _TOLD_APART:
            places = places[1:]
        elif found.min() < 0:
            places = np.delete(places, np.argmin(found))
        else:
            times[places], covariance[np.ix_(places, places)] = found / each, undone / np.outer(each, each)
            break
    squares = float(sums.squares - 2 * times @ sums.with_time + times @ products @ times)
    degrees = max(sums.rows - np.count_nonzero(times), _NEGLIGIBLE)
    return _Fit(times, covariance * max(squares, _PRECISEST**2 * sums.squares) / degrees)
