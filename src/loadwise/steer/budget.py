"""How much a steering process writes into Kafka's ``__consumer_offsets``, where rack ids are kept. Pure."""

from __future__ import annotations

from collections import deque

MOST_BYTES = 1_000_000
"""The most bytes of notes in `WINDOW_S`, of all steering processes of a group."""
WINDOW_S = 60.0


class Budget:
    """What was written in the last minute."""

    def __init__(self) -> None:
        self._written: deque[tuple[float, int]] = deque()
        self.total = 0
        """All bytes since the beginning."""

    def wrote(self, size: int, now_s: float) -> None:
        """Take in that these bytes were written."""
        if size:
            self._written.append((now_s, size))
        self.total += size

    def recent(self, now_s: float) -> int:
        """Return the bytes of the last minute."""
        while self._written and self._written[0][0] <= now_s - WINDOW_S:
            self._written.popleft()
        return sum(size for _, size in self._written)

    def refusal(self, size: int, processes: int, now_s: float) -> str | None:
        """Return why a note of this size may not be written by this number of processes now; None if it may."""
        everywhere = size * processes
        if everywhere > MOST_BYTES:
            return (
                f"the plan has {size:,} bytes in each of {processes:,} steering processes, so {everywhere:,} in"
                f" __consumer_offsets; the limit is {MOST_BYTES:,} a minute: run fewer processes"
            )
        recent = self.recent(now_s) * processes
        if recent + everywhere > MOST_BYTES:
            return (
                f"the plan has {everywhere:,} bytes, and {recent:,} were written into __consumer_offsets in the last"
                f" minute; the limit is {MOST_BYTES:,}"
            )
        return None
