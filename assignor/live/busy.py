"""How many records a member processes in a busy second, measured between its polls.

From the moment when a poll has given records to the next poll the application works on them. Where it hands them to
other threads or tasks and polls again at once, that time is no measurement: then too little of it adds up, and no
capacity is claimed.
"""

from __future__ import annotations

_ENOUGH_NS = 500_000_000
"""So much work must have been seen before it is a measurement..."""
_SHARE = 0.02
"""... and so large a part of all time: an application that polls again at once does its work elsewhere."""
_HALF_LIFE_NS = 60_000_000_000


class BusyTime:
    """Times are in nanoseconds of one clock: a single record may take microseconds."""

    def __init__(self) -> None:
        self._working_since: int | None = None
        self._given = 0
        self._records = 0.0
        self._busy_ns = 0.0
        self._all_ns = 0.0
        self._last_ns: int | None = None

    def polls(self, now_ns: int) -> None:
        """The application asks for records: it has processed those that it was given."""
        if self._last_ns is None:
            self._last_ns = now_ns
        elapsed = max(now_ns - self._last_ns, 0)
        self._last_ns = now_ns
        kept = 0.5 ** (elapsed / _HALF_LIFE_NS)
        self._records, self._busy_ns, self._all_ns = self._records * kept, self._busy_ns * kept, self._all_ns * kept
        self._all_ns += elapsed
        if self._working_since is not None:
            self._records += self._given
            self._busy_ns += max(now_ns - self._working_since, 0)
            self._working_since = None

    def given(self, records: int, now_ns: int) -> None:
        """A poll has given so many records to the application."""
        self._given = records
        self._working_since = now_ns if records else None

    @property
    def per_s(self) -> float:
        """Records in a busy second; 0 where that is not known."""
        if self._busy_ns < _ENOUGH_NS or self._busy_ns < _SHARE * self._all_ns or not self._records:
            return 0.0
        return self._records * 1e9 / self._busy_ns
