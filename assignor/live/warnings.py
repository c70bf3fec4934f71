"""The warnings of a group's leader: each condition is logged once while it lasts."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from loadwise.assignor.live.decision import Decision
from loadwise.assignor.troubles import Troubles

_HEAVY_MS = 30_000  # A partition is reported as too much for any member after this time, because a burst is shorter


class Warnings:
    """The conditions that were logged already."""

    def __init__(self) -> None:
        self.troubles = Troubles()
        self._too_slow: frozenset[str] = frozenset()
        self._heavy_since_ms: int | None = None

    def news(self, decision: Decision) -> Iterator[str]:
        """Yield the log lines that are new with this decision."""
        if self._begins("too small", decision.missing > 0):
            yield decision.too_small
        if self._begins("waiting", decision.waiting) or decision.exhausted:
            yield str(decision)
        if decision.overfull is None:
            self._heavy_since_ms = None
        elif self._heavy_since_ms is None:
            self._heavy_since_ms = decision.now_ms
        heavy = self._heavy_since_ms is not None and decision.now_ms - self._heavy_since_ms >= _HEAVY_MS
        if self._begins("too heavy", heavy):
            yield decision.too_heavy

    def worse_than_sticky(self, decision: Decision) -> str:
        """Return the log line that ``sticky`` would have been better; empty if it is not new."""
        return decision.worse_than_sticky if self._begins("worse than sticky", decision.loses) else ""

    def too_slow(self, names: Collection[str]) -> str:
        """Return the log line about members without a partition because they are too slow; empty without new ones."""
        news, self._too_slow = frozenset(names) - self._too_slow, frozenset(names)
        if not news:
            return ""
        return (
            "These members get no partition, because even the lightest one would make each busier than the busiest"
            f" member is now: {', '.join(sorted(news))}"
        )

    def _begins(self, trouble: str, there: bool) -> bool:
        if not there:
            self.troubles.over(trouble)
        return there and self.troubles.begins(trouble)
