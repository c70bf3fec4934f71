"""How many records an application processes between its calls of confluent-kafka's consumer, and for how long.

It has processed all that was read whenever it asks for more, and only then. Neither the time for which its calls wait,
nor what it does after a call that gave it nothing, is work on records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as Partition

from loadwise.assignor.live.work import BusyTime

_LEAST_S, _LARGEST_SHARE = 0.05, 0.02
"""How often it is measured what the application processes, and what part of all time that may take at most."""


class WorkBetweenCalls:
    """Times are in seconds of one clock, which the caller reads."""

    def __init__(self, now_s: float) -> None:
        self.idle_since_s: float | None = None
        """When a call has ended without records, if the last one has."""
        self._positions: dict[Partition, int] = {}
        """The positions when it was measured last."""
        self._measured_at_s = now_s
        self._due_at_s = 0.0
        self._waited_s = 0.0
        """How long calls have waited, and the application has done something else, since then."""

    def waited(self, waited_s: float) -> None:
        """A call has waited for so long, for records or in a turn of the member."""
        self._waited_s += waited_s

    def asks(self, now_s: float) -> bool:
        """The application asks for records; whether it is time to measure."""
        if self.idle_since_s is not None:
            self._waited_s += now_s - self.idle_since_s
            self.idle_since_s = None
        return now_s >= self._due_at_s

    def measure(self, busy: BusyTime, positions: Mapping[Partition, OffsetAndMetadata], now_s: float) -> None:
        """Tell what was processed up to these positions, and how long it took."""
        before, self._positions = self._positions, {key: at.offset for key, at in positions.items()}
        records: dict[str, int] = {}
        for key, offset in self._positions.items():
            if (count := offset - before.get(key, offset)) > 0:
                records[key.topic] = records.get(key.topic, 0) + count
        worked_s = max(0.0, now_s - self._measured_at_s - self._waited_s)
        now_ns = int(now_s * 1e9)
        busy.given(records, now_ns - int(worked_s * 1e9))
        busy.polls(now_ns)
        self._measured_at_s, self._waited_s = now_s, 0.0

    def took(self, measuring_s: float) -> None:
        """To measure has taken so long."""
        self._due_at_s = self._measured_at_s + max(_LEAST_S, measuring_s / _LARGEST_SHARE)

    def moved(self) -> None:
        """The application reads on from somewhere else."""
        self._positions = {}

    def gone(self, partitions: Iterable[Partition]) -> None:
        """These are read no more: if they come back, others have processed what was in between."""
        for key in partitions:
            self._positions.pop(key, None)
