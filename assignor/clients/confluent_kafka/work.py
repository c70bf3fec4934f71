"""Measure how many records an application processes between calls of confluent-kafka's consumer, and how long it takes.

The application has processed everything it read whenever it asks for more, and only then. The time in calls, and the
time after a call without records, is not work on records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loadwise.assignor.clients.membership import OffsetAndMetadata, Partition
from loadwise.assignor.live.work import BusyTime

_LEAST_S, _LARGEST_SHARE = 0.05, 0.02
"""How often to measure what the application processes, and the largest share of time that measuring may take."""


class WorkBetweenCalls:
    """The work between calls. Times are in seconds of one clock, which the caller reads."""

    def __init__(self, now_s: float) -> None:
        self.idle_since_s: float | None = None
        """When the last call ended, if it returned no records."""
        self._positions: dict[Partition, int] = {}
        """The positions at the last measurement."""
        self._measured_at_s = now_s
        self._due_at_s = 0.0
        self._waited_s = 0.0
        """The time since then that was spent in calls, on measuring or not on records."""
        self._measuring_s = 0.0
        """How long the last measurement took."""
        self._batches: int | None = 0
        """How many calls since then asked for more than one record, once there were some; None if one asked for one."""

    def waited(self, waited_s: float) -> None:
        """Add the time of a call, for records or for the member."""
        self._waited_s += waited_s

    def asks(self, most: int, now_s: float) -> bool:
        """Note that the application asks for at most ``most`` records; return whether to measure now.

        Calls for a single record need not be noted each: they are as many as the records.
        """
        if most == 1:
            self._batches = None
        elif self._batches is not None and self.idle_since_s is None:
            self._batches += 1
        if self.idle_since_s is not None:
            self._waited_s += now_s - self.idle_since_s
            self.idle_since_s = None
        return now_s >= self._due_at_s

    def measure(self, busy: BusyTime, positions: Mapping[Partition, OffsetAndMetadata], now_s: float) -> None:
        """Report what was processed up to these positions, and how long it took."""
        before, self._positions = self._positions, {key: at.offset for key, at in positions.items()}
        records: dict[str, int] = {}
        for key, offset in self._positions.items():
            if (count := offset - before.get(key, offset)) > 0:
                records[key.topic] = records.get(key.topic, 0) + count
        worked_s = max(0.0, now_s - self._measured_at_s - self._waited_s)
        polls = sum(records.values()) if self._batches is None else self._batches
        busy.took(records, worked_s, int(now_s * 1e9), polls=max(1, polls))
        self._measured_at_s, self._waited_s, self._batches = now_s, 0.0, 0

    def took(self, measuring_s: float) -> None:
        """Note how long a measurement took.

        The shorter of the last two decides when the next is due: librdkafka's thread answers, and may be busy once.
        """
        usual_s, self._measuring_s = min(self._measuring_s, measuring_s), measuring_s
        self._due_at_s = self._measured_at_s + max(_LEAST_S, usual_s / _LARGEST_SHARE)
        self.waited(measuring_s)

    def moved(self) -> None:
        """Note that the application changed its positions."""
        self._positions = {}

    def gone(self, partitions: Iterable[Partition]) -> None:
        """Drop these partitions: if they come back, others have processed the records in between."""
        for key in partitions:
            self._positions.pop(key, None)
