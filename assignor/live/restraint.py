"""Restraint: asks for a rebalance once the imbalance has cost as much as a rebalance does.

So a large imbalance is acted on at once and a small one later. At worst the group pays twice what it would pay if it
knew the future; this is the rule of ski rental.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import RestraintTuning
from loadwise.protocol.live_notes import Memory

_HOUR_MS = 3_600_000


class Restraint:
    """The state between readings; its `Memory` travels with assignments and joins to the next leader."""

    def __init__(self, settings: LiveSettings, cooperative: bool, tuning: RestraintTuning | None = None) -> None:
        self._settings, self._tuning = settings, tuning or RestraintTuning()
        self._cooperative = cooperative
        self._asked_ms: tuple[int, ...] = ()  # the times of the requests of the last hour
        self._exhausted_told = False
        self._due, self._read_ms = 0.0, math.nan
        """The cost of the present imbalance, in seconds of a member's work, and the time of its last update."""
        self._took_ms = 0  # the duration of the last rebalance, whatever its cause

    def rebalanced(self, duration_ms: int) -> None:
        """Note the end of a rebalance, whatever its cause, and its duration."""
        self._took_ms, self._due, self._read_ms = duration_ms, 0.0, math.nan

    def unjudged(self, now_ms: int) -> None:
        """Note a reading without utilisation: the cost of the imbalance starts from 0 here."""
        self._due, self._read_ms = 0.0, now_ms

    def asked(self, now_ms: int) -> None:
        """Note that a rebalance was requested."""
        self._asked_ms = (*(now_ms - age for age in self.memory(now_ms).ages_ms), now_ms)
        self._due, self._exhausted_told = 0.0, False

    def refusal(
        self, now_ms: int, *, worst: float, best: float, moved_share: float, redone_s: float = 0.0
    ) -> Refusal | None:
        """Return why no rebalance should be requested; None if one should.

        Call it after every reading, because it adds up the cost of the imbalance.
        """
        settings, tuning = self._settings, self._tuning
        gain = gained(worst, best, settings.healthy)
        elapsed_s = min((now_ms - self._read_ms) / 1000, tuning.longest_step_s)
        due, self._due, self._read_ms = self._due, 0.0, now_ms
        if worst <= settings.healthy:
            return Refusal(f"no member is above {settings.healthy:.0%}")
        if gain < settings.least_gain:
            return Refusal(f"a rebalance would gain {max(gain, 0.0):.2f}, less than {settings.least_gain:g}")
        self._due = due + gain * elapsed_s if elapsed_s > 0 else due
        stopped = max(moved_share, tuning.stopped_share) if self._cooperative else 1.0
        price = tuning.patience_s + stopped * (self._took_ms / 1000 + redone_s)
        if self._due < price:
            cost = f"the imbalance has cost {self._due:.1f} s of a member's work, a rebalance costs {price:.1f} s"
            return Refusal(cost, soon=True)
        if self.exhausted(now_ms):
            told, self._exhausted_told = self._exhausted_told, True
            reason = f"the limit of {settings.most_per_hour} rebalances for the load in an hour is reached"
            return Refusal(reason, exhausted=not told)
        return None

    def exhausted(self, now_ms: int) -> bool:
        """Return whether the hourly limit of rebalances is reached."""
        return len(self.memory(now_ms).ages_ms) >= self._settings.most_per_hour

    def memory(self, now_ms: int) -> Memory:
        """Return the state that the next leader needs."""
        return Memory(ages_ms=tuple(now_ms - at for at in self._asked_ms if now_ms - at < _HOUR_MS))

    def remember(self, memory: Memory, now_ms: int) -> None:
        """Continue from the state of another leader."""
        self._asked_ms = tuple(now_ms - age for age in memory.ages_ms)


class Refusal(NamedTuple):
    """Why no rebalance is requested."""

    reason: str
    soon: bool = False
    """Whether the next reading should come soon, because it may show that a rebalance is worth its cost."""
    exhausted: bool = False
    """Whether this is the first request that the hourly limit prevents."""
    waiting: bool = False
    """Whether a rebalance would have to wait for a member that stands still."""


def gained(worst: float, best: float, healthy: float) -> float:
    """Return by how much the highest utilisation falls above the healthy level.

    It is relative to ``best`` above 1, because the utilisation of a group that is too small varies by more.
    """
    return (max(worst, healthy) - max(best, healthy)) / max(best, 1.0)
