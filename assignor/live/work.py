"""How long a member works on its records, measured between its polls: in all, and on a record of each topic.

From the moment when a poll has given records to the next poll the application works on them. Part of that time goes to
each record and part to the poll itself, however few records it gives. So the times are fitted by least squares: so long
for a poll, and so long for each record, none of them negative. The variance of a poll's time is taken to grow with its
records. What counts is a record's time in large polls: they are what a member gets once it is busy. Otherwise a member
that is given its records one by one would be taken for slower than its twin.

Nothing is claimed before it is precise, by the standard error. So a process that was stopped for a moment is not taken
for a slow one. Where an application hands records to other threads or tasks and polls again at once, too little time
adds up, and nothing is claimed either. Nor is it for topics that always come in the same proportion.

What a record of a topic takes is a matter of the program, and is remembered for longer than the speed. Polls in which
the process stood still are left out of it: those that took far longer than the fit of the others expects. Where more
than a few polls are so, that is what the records cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from loadwise.assignor.live.least_squares import POLL, TOLD_APART, WorkTuning, fit, ordinary
from loadwise.assignor.model import Floats

_TUNING = WorkTuning()
_NS = 1e-9


class _Row(NamedTuple):
    """Polls that gave alike within a moment; a program may poll a thousand times a second."""

    at_ns: int
    alike: object
    polls: int
    counts: Mapping[str, int]
    busy_s: float

    def and_one(self, counts: Mapping[str, int], busy_s: float) -> _Row:
        """The same and another poll."""
        both = {topic: count + counts[topic] for topic, count in self.counts.items()}
        return self._replace(polls=self.polls + 1, counts=both, busy_s=self.busy_s + busy_s)


class _Measured(NamedTuple):
    """What was found out, and when."""

    at_ns: int
    per_s: float
    each_s: dict[str, float]


class BusyTime:
    """Times are in nanoseconds of one clock: a single record may take microseconds."""

    def __init__(self) -> None:
        self._working_since: int | None = None
        self._given: Mapping[str, int] = {}
        self._since_ns: int | None = None
        self._last_ns = 0
        self._rows: list[_Row] = []
        self._measured = _Measured(-_TUNING.again_ns, 0.0, {})

    def polls(self, now_ns: int) -> None:
        """The application asks for records: it has processed those that it was given."""
        self._since_ns, self._last_ns = now_ns if self._since_ns is None else self._since_ns, now_ns
        if self._working_since is not None:
            self.took(self._given, max(now_ns - self._working_since, 0) * _NS, now_ns)
            self._working_since = None

    def given(self, records: Mapping[str, int], now_ns: int) -> None:
        """A poll has given so many records of each topic to the application; none of a topic that is not named."""
        self._given = {topic: count for topic, count in records.items() if count}
        self._working_since = now_ns if self._given else None

    def took(self, counts: Mapping[str, int], busy_s: float, now_ns: int) -> None:
        """The member has worked for so long on so many records of each topic."""
        self._since_ns, self._last_ns = now_ns if self._since_ns is None else self._since_ns, now_ns
        alike = frozenset((topic, count.bit_length()) for topic, count in counts.items())
        rows = self._rows
        for at in range(len(rows) - 1, -1, -1):
            if now_ns - rows[at].at_ns >= _TUNING.moment_ns:
                break
            if rows[at].alike == alike:
                rows[at] = rows[at].and_one(counts, busy_s)
                return
        rows.append(_Row(now_ns, alike, 1, counts, busy_s))
        if len(rows) >= 2 * _TUNING.rows:
            self._rows = rows[-_TUNING.rows :]

    @property
    def per_s(self) -> float:
        """Records in a busy second; 0 where that is not known, or not precisely enough."""
        return self._find().per_s

    @property
    def each_s(self) -> dict[str, float]:
        """Topic to the seconds that one of its records takes, where these can be told from those of other topics.

        The topic that has taken most of all the time comes first.
        """
        return self._find().each_s

    def _find(self) -> _Measured:
        """Find the times again after a while; each commit asks for them, and another thread may measure meanwhile."""
        measured, last_ns = self._measured, self._last_ns
        if last_ns - measured.at_ns >= _TUNING.again_ns or last_ns < measured.at_ns:
            rows = self._rows[-_TUNING.rows :]
            age_s = (last_ns - np.array([row.at_ns for row in rows], np.float64)) * _NS
            recent = np.exp2(-age_s / _TUNING.half_life_s)
            busy_s = float(recent @ np.array([row.busy_s for row in rows])) if rows else 0.0
            passed_s = (last_ns - (self._since_ns or last_ns)) * _NS
            all_s = _TUNING.half_life_s / np.log(2) * (1 - 0.5 ** (passed_s / _TUNING.half_life_s))
            measured = _Measured(last_ns, 0.0, {})
            if rows and busy_s >= max(_TUNING.enough_s, _TUNING.share * all_s):  # what is done is done in line
                lasting = np.exp2(-age_s / _TUNING.topic_half_life_s)
                measured = _Measured(last_ns, _per_s(rows, recent), _each_s(rows, lasting))
            self._measured = measured
        return measured


def _per_s(rows: Sequence[_Row], weight: Floats) -> float:
    polls = np.array([row.polls for row in rows], np.float64)
    records = np.array([sum(row.counts.values()) for row in rows], np.float64)
    if float(weight @ polls) < _TUNING.fewest_polls:
        return 0.0
    found = fit(np.column_stack([polls, records]), np.array([row.busy_s for row in rows]), weight)
    largest = float((records / polls * weight).max())
    for size in (max(largest, _TUNING.large_poll), largest):
        each_s, error_s = (float(each[1]) for each in found.in_polls_of(max(size, 1.0)))
        if each_s > 0 and error_s <= _TUNING.precise * each_s:
            return 1 / each_s
    return 0.0


def _each_s(rows: Sequence[_Row], weight: Floats) -> dict[str, float]:
    polls = Counter(chain.from_iterable(row.counts for row in rows))
    place = {topic: number for number, (topic, _) in enumerate(polls.most_common(_TUNING.topics), 1)}
    chosen = [number for number, row in enumerate(rows) if row.counts.keys() <= place.keys()] if len(place) > 1 else []
    if sum(rows[number].polls for number in chosen) < _TUNING.fewest_polls_of_topics:
        return {}  # a single topic is compared with nothing
    each = [(at, place[topic], count) for at, row in enumerate(chosen) for topic, count in rows[row].counts.items()]
    counts = np.zeros((len(chosen), len(place) + 1))
    at, column, count = np.array(each).T
    counts[at, column] = count
    counts[:, POLL] = [rows[number].polls for number in chosen]
    busy_s = np.array([rows[number].busy_s for number in chosen])
    kept = ordinary(counts, busy_s, weight[chosen], _TUNING)
    counts, busy_s, weight = counts[kept], busy_s[kept], weight[chosen][kept]
    found = fit(counts, busy_s, weight)
    records = counts[:, 1:].sum(axis=1)
    each_s, error_s = found.in_polls_of(max(_TUNING.large_poll, float(weight @ records / (weight @ counts[:, POLL]))))
    products = (counts**2 * (weight / records)[:, np.newaxis]).sum(axis=0)
    told_apart = np.diag(found.inverse) * products <= TOLD_APART
    enough = ((counts > 0) * (counts[:, :1] * weight[:, np.newaxis])).sum(axis=0) >= _TUNING.polls_of_topic
    claimed = (error_s <= _TUNING.precise_for_topics * each_s) & (found.times > 0) & told_apart & enough
    took_s = each_s * (weight @ counts)
    order = sorted(place.items(), key=lambda each: -took_s[each[1]])
    return {topic: float(each_s[number]) for topic, number in order if claimed[number]}
