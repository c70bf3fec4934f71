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

import numpy as np

from loadwise.assignor.live.fit import FIRST, NEGLIGIBLE, OTHERS, POLL, Fit, Sums, fitted
from loadwise.assignor.live.tuning import WorkTuning
from loadwise.assignor.model import Floats

_NS = 1e-9


class BusyTime:
    """Times are in nanoseconds of one clock: a single record may take microseconds."""

    def __init__(self, tuning: WorkTuning | None = None) -> None:
        self._tuning = tuning or WorkTuning()
        self._given: tuple[Mapping[str, int], int] | None = None
        self._began_ns: int | None = None
        self._columns: dict[str, int] = {}
        self._sums = Sums()
        self._moment: dict[object, tuple[int, dict[str, int], float]] = {}
        """Polls of this moment that gave alike, for a program may poll a thousand times a second."""
        self._expected: tuple[int, Fit] | None = None
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
        """Topic to the seconds that one of its records takes, where these can be told from those of other topics.

        The topic that has taken most of all the time comes first.
        """
        columns, sums, tuning = dict(self._columns), self._sums_now(), self._tuning
        records = sums.records
        if records[POLL] < tuning.fewest_polls_of_topics or not self._in_line(sums):
            return {}
        there = {
            topic: column for topic, column in columns.items() if sums.products[POLL, column] >= tuning.polls_of_topic
        }
        fit, took = fitted(sums), {}
        for topic, column in there.items() if len(there) > 1 else ():  # a single topic is compared with nothing
            one = np.zeros(len(records))
            one[column], one[POLL] = 1.0, min(1 / tuning.large_poll, records[POLL] / records[1:].sum())
            each_s, error_s = fit.takes(one)
            if fit.times[column] > 0 and error_s <= tuning.precise_for_topics * each_s:
                took[topic] = each_s
        return dict(sorted(took.items(), key=lambda each: -each[1] * records[columns[each[0]]]))

    def _in_line(self, sums: Sums) -> bool:
        """Whether enough work was seen, so that what is done between two polls is the work on their records."""
        tuning, passed_s = self._tuning, (sums.at_ns - (self._began_ns or 0)) * _NS
        all_s = tuning.half_life_s / math.log(2) * (1 - 0.5 ** (passed_s / tuning.half_life_s))
        return bool(sums.busy_s >= max(tuning.enough_s, tuning.share * all_s))

    def _sums_now(self) -> Sums:
        """With the polls of this moment; another thread may measure meanwhile."""
        sums = self._sums
        for polls, counts, busy_s in list(self._moment.values()):
            row = np.zeros(len(sums.with_time))
            row[POLL] = polls
            for topic, count in counts.items():
                row[self._columns.get(topic, OTHERS)] += count
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
            enough = sums.records[POLL] >= self._tuning.fewest_polls_of_topics
            self._expected = (now_ns, fitted(sums)) if enough else None

    def _make_room(self, topics: Set[str]) -> None:
        """Give topics columns, as long as there are some; those of which nothing is left lose theirs."""
        records = self._sums.records
        kept = [topic for topic, column in self._columns.items() if records[column] > NEGLIGIBLE]
        new = sorted(topics - set(kept))[: max(self._tuning.topics - len(kept), 0)]
        if not new:
            return
        columns = [POLL, OTHERS, *(self._columns[topic] for topic in kept), *(-1 for _ in new)]
        self._sums, self._expected = self._sums.of(columns), None
        self._columns = {topic: column for column, topic in enumerate([*kept, *new], FIRST)}
