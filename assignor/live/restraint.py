"""Restraint: when a rebalance that would help is worth its price, and what keeps a group from rebalancing too often.

The rule is that of ski rental: pay for the skis once the rent has come to their price. While a rebalance would help,
its gain adds up, in seconds of one member's work; when it has come to what the rebalance costs, it is asked for. So a
large imbalance is acted on at once and a small one later, and at worst the group pays twice what it would have paid
had it known the future.

What must outlive the leader (`loadwise.protocol.live_notes.Memory`) travels with the assignment and comes back with
the next join.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import RestraintTuning
from loadwise.protocol.live_notes import Memory

_HOUR_MS = 3_600_000


class Restraint:
    """The state between readings.

    ``jitter`` is from 0 to 1, drawn by the caller: groups that see the same shift do not all act at one moment.
    """

    def __init__(
        self, settings: LiveSettings, cooperative: bool, jitter: float = 0.0, tuning: RestraintTuning | None = None
    ) -> None:
        self._settings, self._tuning = settings, tuning or RestraintTuning()
        self._patience_s = self._tuning.patience_s * (1 + 0.2 * jitter)
        self._cooperative = cooperative
        self._asked_ms: tuple[int, ...] = ()
        """When the rebalances of the last hour were asked for."""
        self._exhausted_told = False
        self._due, self._read_ms = 0.0, math.nan
        """What the present imbalance has cost, in seconds of a member's work, and when that was counted last."""
        self._rebalanced_ms, self._took_ms = -math.inf, 0
        """When the last rebalance ended, for whatever reason, and how long it took."""

    def rebalanced(self, now_ms: int, duration_ms: int) -> None:
        """A rebalance, for whatever reason, has ended and took that long."""
        self._rebalanced_ms, self._took_ms = now_ms, duration_ms
        self._due, self._read_ms = 0.0, math.nan

    def unjudged(self, now_ms: int) -> None:
        """A reading tells no utilisation: what the imbalance costs is counted from here on."""
        self._due, self._read_ms = 0.0, now_ms

    def asked(self, now_ms: int) -> None:
        """A rebalance was asked for."""
        self._asked_ms = (*(at for at in self._asked_ms if now_ms - at < _HOUR_MS), now_ms)
        self._due, self._exhausted_told = 0.0, False

    def refusal(self, now_ms: int, *, worst: float, best: float, moved_share: float) -> Refusal | None:
        """Why no rebalance should be asked for after this reading; None where it should.

        To be called with every reading: it counts what the imbalance costs.
        """
        settings, tuning = self._settings, self._tuning
        gain = gained(worst, best, settings.healthy)
        elapsed_s = min((now_ms - self._read_ms) / 1000, tuning.longest_step_s)
        due, self._due, self._read_ms = self._due, 0.0, now_ms
        if worst <= settings.healthy:
            return Refusal(f"nobody is above {settings.healthy:.0%}")
        if gain < settings.least_gain:
            return Refusal(f"a rebalance would gain {max(gain, 0.0):.2f}, less than {settings.least_gain:g}")
        self._due = due + gain * elapsed_s if elapsed_s > 0 else due
        stopped = max(moved_share, tuning.stopped_share) if self._cooperative else 1.0
        price = self._patience_s + stopped * self._took_ms / 1000
        if self._due < price:
            cost = f"the imbalance has cost {self._due:.1f} s of a member's work, a rebalance costs {price:.1f} s"
            return Refusal(cost, unsure=True)
        if now_ms - max((self._rebalanced_ms, *self._asked_ms[-1:])) < tuning.least_interval_s * 1000:
            return Refusal(f"the last rebalance is less than {tuning.least_interval_s:g} s ago")
        if self.exhausted(now_ms):
            told, self._exhausted_told = self._exhausted_told, True
            reason = f"{settings.most_per_hour} rebalances for the load in an hour are the most"
            return Refusal(reason, newly_exhausted=not told)
        return None

    def exhausted(self, now_ms: int) -> bool:
        """Whether the rebalances of this hour are used up."""
        return len(self.memory(now_ms).ages_ms) >= self._settings.most_per_hour

    def memory(self, now_ms: int) -> Memory:
        """What the next leader must know."""
        return Memory(ages_ms=tuple(now_ms - at for at in self._asked_ms if now_ms - at < _HOUR_MS))

    def remember(self, memory: Memory, now_ms: int) -> None:
        """Go on from what another leader knew."""
        self._asked_ms = tuple(now_ms - age for age in memory.ages_ms)


class Refusal(NamedTuple):
    """Why no rebalance is asked for."""

    reason: str
    unsure: bool = False
    """Whether a further reading may show that it is worth it."""
    newly_exhausted: bool = False
    """Whether this is the first that would be asked for, had there not been as many in this hour as there may be."""
    waiting: bool = False
    """Whether a rebalance would have to wait for a member that stands still."""


def gained(worst: float, best: float, healthy: float) -> float:
    """By how much the highest utilisation comes down, as far as it is above the healthy level.

    In relation to what is left where that is above 1: a group that is too small varies by more.
    """
    return (max(worst, healthy) - max(best, healthy)) / max(best, 1.0)
