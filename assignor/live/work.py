"""How long a member works on its records between two polls: in all, and on a record of each topic in large polls.

The reported times are those in large polls, because a busy member gets such polls. A program that hands records to
other threads or tasks polls again at once: too little time adds up, and nothing is reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set

import numpy as np

from loadwise.assignor.live.fit import FIRST, NEGLIGIBLE, OTHERS, POLL, Fit, Sums, fitted
from loadwise.assignor.live.tuning import WorkTuning
from loadwise.assignor.model import Floats

_NS = 1e-9


class BusyTime:
    """Measures the work between polls. Times are nanoseconds of one clock: a record may take microseconds."""

    def __init__(self, tuning: WorkTuning | None = None) -> None:
        self._tuning = tuning or WorkTuning()
        self._given: tuple[Mapping[str, int], int] | None = None
        self._began_ns: int | None = None
        self._columns: dict[str, int] = {}
        self._sums = Sums()
        self._moment: dict[object, tuple[int, dict[str, int], float]] = {}
        """Similar polls of this moment, summed, because a program may poll a thousand times a second."""
        self._expected: tuple[int, Fit] | None = None  # the time of the newest fit, and the fit

    def polls(self, now_ns: int) -> None:
        """Note that the application polls: it has processed the records of the last poll."""
        given, self._given = self._given, None
        self._pass(now_ns)
        if given is not None:
            self.took(given[0], max(now_ns - given[1], 0) * _NS, now_ns)

    def given(self, records: Mapping[str, int], now_ns: int) -> None:
        """Note the records of each topic that a poll has returned to the application."""
        counts = {topic: count for topic, count in records.items() if count}
        self._given = (counts, now_ns) if counts else None

    def took(self, counts: Mapping[str, int], busy_s: float, now_ns: int, *, polls: int = 1) -> None:
        """Add a time of work on records of each topic, which came from ``polls`` polls."""
        self._pass(now_ns)
        if not counts:
            return
        alike = frozenset((topic, count.bit_length()) for topic, count in counts.items())
        polls_before, before, took_s = self._moment.get(alike, (0, {}, 0.0))
        both = {topic: count + before.get(topic, 0) for topic, count in counts.items()}
        self._moment[alike] = polls_before + polls, both, took_s + busy_s

    @property
    def per_s(self) -> float:
        """Records in a busy second; 0 if unknown or not precise enough."""
        sums, tuning = self._sums_now(), self._tuning
        records = sums.records
        if records[POLL] < tuning.fewest_polls or not self._in_line(sums):
            return 0.0
        fit, given = fitted(sums), records / records[1:].sum()
        for polls in (min(1 / tuning.large_poll, given[POLL]), given[POLL]):
            given[POLL] = polls
            each_s, error_s = fit.takes(given)
            if each_s > 0 and error_s <= tuning.precise * each_s:
                return 1 / each_s
        return 0.0

    @property
    def each_s(self) -> dict[str, float]:
        """Topic to the seconds of one of its records, if separable; the largest part of the total time first."""
        columns, sums, tuning = dict(self._columns), self._sums_now(), self._tuning
        records = sums.records
        if records[POLL] < tuning.fewest_polls_of_topics or not self._in_line(sums):
            return {}
        there = {
            topic: column for topic, column in columns.items() if sums.products[POLL, column] >= tuning.polls_of_topic
        }
        fit, took = fitted(sums), {}
        for topic, column in there.items() if len(there) > 1 else ():  # a single topic has no other to compare with
            one = np.zeros(len(records))
            one[column], one[POLL] = 1.0, min(1 / tuning.large_poll, records[POLL] / records[1:].sum())
            each_s, error_s = fit.takes(one)
            if each_s > 0 and error_s <= tuning.precise_for_topics * each_s:
                took[topic] = each_s
        return dict(sorted(took.items(), key=lambda each: -each[1] * records[columns[each[0]]]))

    def _in_line(self, sums: Sums) -> bool:
        """Return whether there was enough work, so that the time between two polls is work on their records."""
        tuning, passed_s = self._tuning, (sums.at_ns - (self._began_ns or 0)) * _NS
        all_s = tuning.half_life_s / math.log(2) * (1 - 0.5 ** (passed_s / tuning.half_life_s))
        return bool(sums.busy_s >= max(tuning.enough_s, tuning.share * all_s))

    def _sums_now(self) -> Sums:
        """Return the sums with the polls of this moment; another thread may measure meanwhile."""
        sums = self._sums
        for polls, counts, busy_s in list(self._moment.values()):
            row = np.zeros(len(sums.with_time))
            row[POLL] = polls
            for topic, count in counts.items():
                row[self._columns.get(topic, OTHERS)] += count
            sums = sums.plus(row, self._without_a_stall(row, busy_s))
        return sums

    def _without_a_stall(self, row: Floats, busy_s: float) -> float:
        """Return the time of a poll, capped: a process that stands still once is not slow, unless it goes on so."""
        expected_s = 0.0 if self._expected is None else self._expected[1].takes(row)[0]
        return min(busy_s, self._tuning.far * expected_s) if expected_s > 0 else busy_s

    def _pass(self, now_ns: int) -> None:
        """Advance the time: add the polls of the last moment to the sums, and fade the sums."""
        self._began_ns = now_ns if self._began_ns is None else self._began_ns
        if now_ns - self._sums.at_ns < self._tuning.moment_ns and now_ns >= self._sums.at_ns:
            return
        there = {topic for _, counts, _ in self._moment.values() for topic in counts}
        if not there <= self._columns.keys():
            self._make_room(there)
        sums, self._moment = self._sums_now(), {}
        self._sums = sums.faded(now_ns, self._tuning.half_life_s)
        if self._expected is None or now_ns - self._expected[0] > self._tuning.again_ns:
            enough = sums.records[POLL] >= self._tuning.fewest_polls_of_topics
            self._expected = (now_ns, fitted(sums)) if enough else None

    def _make_room(self, topics: Set[str]) -> None:
        """Give new topics free columns; topics whose records have faded lose theirs."""
        records = self._sums.records
        kept = [topic for topic, column in self._columns.items() if records[column] > NEGLIGIBLE]
        new = sorted(topics - set(kept))[: max(self._tuning.topics - len(kept), 0)]
        if not new:
            return
        columns = [POLL, OTHERS, *(self._columns[topic] for topic in kept), *(-1 for _ in new)]
        self._sums, self._expected = self._sums.of(columns), None
        self._columns = {topic: column for column, topic in enumerate([*kept, *new], FIRST)}
