"""What the log of a group's leader is to warn of: each thing once, for as long as it lasts."""

from __future__ import annotations

from collections.abc import Iterator

from loadwise.assignor.live.decision import Decision

_HEAVY_MS = 30_000
"""A partition is too much for any member where it has been so for so long: a burst passes."""


class Warnings:
    """What was told already."""

    def __init__(self) -> None:
        self._too_small = self._waiting = self._too_heavy = False
        self._heavy_since_ms: int | None = None

    def news(self, decision: Decision) -> Iterator[str]:
        """The lines that are new with this decision."""
        if decision.missing and not self._too_small:
            yield decision.too_small
        self._too_small = bool(decision.missing)
        if decision.exhausted or (decision.waiting and not self._waiting):
            yield str(decision)
        self._waiting = decision.waiting
        if decision.overfull is None:
            self._heavy_since_ms, self._too_heavy = None, False
        elif self._heavy_since_ms is None:
            self._heavy_since_ms = decision.now_ms
        elif not self._too_heavy and decision.now_ms - self._heavy_since_ms >= _HEAVY_MS:
            self._too_heavy = True
            yield decision.too_heavy
