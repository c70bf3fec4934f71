"""How many records a member processes in a busy second, measured between its polls.

From the moment when a poll has given records to the next poll the application works on them. Part of that time goes to
each record and part to the poll itself, however few records it gives. So the time is fitted by a line over the number
of records, and what counts is the time per record in large polls: they are what a member gets once it is busy.
Otherwise a member that is given its records one by one would be taken for slower than its twin.

No speed is claimed before it is precise, by the standard error of that line. So a process that was stopped for a moment
is not taken for a slow one, and nobody is before there were enough polls of different sizes. Where an application hands
records to other threads or tasks and polls again at once, too little time adds up, and no speed is claimed either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from loadwise.assignor.live.topic_times import LARGE_POLL, TopicTimes

_ENOUGH_S = 0.5
"""So much work must have been seen before it is a measurement..."""
_SHARE = 0.02
"""... and so large a part of all time: an application that polls again at once does its work elsewhere."""
_FEWEST = 4.0
"""So many polls must have given records..."""
_PRECISE = 0.05
"""... and the standard error must be no larger than this part of the result."""
_HALF_LIFE_S = 60.0
_ROUNDING = 1e-6
_NS = 1e-9


class BusyTime:
    """Times are in nanoseconds of one clock: a single record may take microseconds."""

    def __init__(self) -> None:
        self._working_since: int | None = None
        self._given: Mapping[str, int] = {}
        self._topics = TopicTimes()
        self._last_ns: int | None = None
        self._all_s = 0.0
        self._largest = 0.0
        """The most records that a poll has given, forgotten like the rest."""
        self._polls = self._records = self._busy_s = 0.0
        self._squares = self._products = self._busy_squares = 0.0
        """Sums over the polls: of squared records, of records times seconds, and of squared seconds."""

    def polls(self, now_ns: int) -> None:
        """The application asks for records: it has processed those that it was given."""
        if self._last_ns is None:
            self._last_ns = now_ns
        elapsed_s = max(now_ns - self._last_ns, 0) * _NS
        self._last_ns = now_ns
        self._forget(0.5 ** (elapsed_s / _HALF_LIFE_S))
        self._all_s += elapsed_s
        if self._working_since is not None:
            busy_s = max(now_ns - self._working_since, 0) * _NS
            self._take(sum(self._given.values()), busy_s)
            self._topics.took(self._given, busy_s, now_ns)
            self._working_since = None

    def given(self, records: Mapping[str, int], now_ns: int) -> None:
        """A poll has given so many records of each topic to the application; none of a topic that is not named."""
        self._given = records
        self._working_since = now_ns if any(records.values()) else None

    @property
    def per_s(self) -> float:
        """Records in a busy second; 0 where that is not known, or not precisely enough."""
        if not self._in_line or self._polls < _FEWEST:
            return 0.0
        largest = max(self._largest, self._records / self._polls)
        return self._speed(max(largest, LARGE_POLL)) or self._speed(largest)

    @property
    def each_s(self) -> dict[str, float]:
        """Topic to the seconds that one of its records takes, where these can be told from those of other topics."""
        return self._topics.each_s if self._in_line else {}

    @property
    def _in_line(self) -> bool:
        """Whether enough work was seen, so that what is done between two polls is the work on their records."""
        return self._busy_s >= max(_ENOUGH_S, _SHARE * self._all_s)

    def _speed(self, size: float) -> float:
        """Records in a busy second in polls of this size; 0 where that is not known precisely enough."""
        polls, records, busy_s = self._polls, self._records, self._busy_s
        if polls <= 2 or records <= 0:
            return 0.0  # another thread has polled after a long pause, and all before it is forgotten
        spread = self._squares - records * records / polls
        differ = spread > _ROUNDING * self._squares
        each = busy_s / records  # neither a poll nor a record takes less than no time
        slope = min(max((self._products - records * busy_s / polls) / spread, 0.0), each) if differ else each
        fixed = (busy_s - slope * records) / polls
        squares = self._busy_squares - 2 * (fixed * busy_s + slope * self._products)
        squares += polls * fixed**2 + 2 * fixed * slope * records + slope**2 * self._squares
        away = size - records / polls
        if abs(away) > _ROUNDING * size and not differ:
            return 0.0  # what part of the time belongs to the polls cannot be told
        leverage = 1 / polls + (away**2 / spread if differ else 0.0)
        error_s = math.sqrt(max(squares, 0.0) / (polls - 2) * leverage)
        cost_s = fixed + slope * size
        return size / cost_s if cost_s > 0 and error_s <= _PRECISE * cost_s else 0.0

    def _forget(self, kept: float) -> None:
        self._all_s *= kept
        self._largest *= kept
        self._polls, self._records, self._busy_s = self._polls * kept, self._records * kept, self._busy_s * kept
        self._squares, self._products = self._squares * kept, self._products * kept
        self._busy_squares *= kept

    def _take(self, records: int, busy_s: float) -> None:
        self._largest = max(self._largest, records)
        self._polls += 1
        self._records += records
        self._busy_s += busy_s
        self._squares += records * records
        self._products += records * busy_s
        self._busy_squares += busy_s * busy_s
