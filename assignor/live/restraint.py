"""Restraint: when a rebalance that would help is worth its price, and what keeps a group from rebalancing too often.

The rule is that of ski rental: pay for the skis once the rent has come to their price. While a rebalance would help,
its gain adds up, in seconds of one member's work; when it has come to what the rebalance costs, it is asked for. So a
large imbalance is acted on at once and a small one later, and at worst the group pays twice what it would have paid
had it known the future.

What must outlive the leader (`loadwise.protocol.live_notes.Memory`) travels with the assignment and comes back with
the next join.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import RestraintTuning
from loadwise.protocol.live_notes import Memory

_HOUR_MS = 3_600_000


@dataclass(slots=True)
class Restraint:
    """The state between readings."""

    settings: LiveSettings
    cooperative: bool
    jitter: float = 0.0
    """From 0 to 1, drawn by the caller: groups that see the same shift do not all act at one moment."""
    tuning: RestraintTuning = field(default_factory=RestraintTuning)
    unsure: bool = False
    """Whether the last reading would have led to a rebalance, had others shown the same before it."""
    newly_exhausted: bool = False
    """Whether the last reading is the first that would have led to a rebalance, had there not been enough this hour."""
    _told: bool = False
    _due: float = 0.0
    _streak: int = 0
    _last_reading_ms: int | None = None
    _rebalanced_ms: int | None = None
    _duration_ms: int = 0
    _asked_ms: list[int] = field(default_factory=list)
    _back_off_ms: int = 0
    _blocked_until_ms: int = 0
    _gain: float = 0.0
    _expected: tuple[float, float] | None = None
    """The highest utilisation when the last rebalance was asked for, and the one that it was to bring."""

    def rebalanced(self, now_ms: int, duration_ms: int) -> None:
        """A rebalance, for whatever reason, has ended and took that long."""
        self._rebalanced_ms, self._duration_ms = now_ms, duration_ms
        self._due, self._streak, self._last_reading_ms = 0.0, 0, None
        self.newly_exhausted = self.unsure = False

    def unjudged(self, now_ms: int) -> None:
        """A reading tells no utilisation: what the imbalance costs is counted from here on."""
        self._due, self._streak, self._last_reading_ms = 0.0, 0, now_ms

    def asked(self, now_ms: int, worst: float, best: float, healthy: float) -> None:
        """A rebalance was asked for."""
        self._asked_ms = [*(at for at in self._asked_ms if now_ms - at < _HOUR_MS), now_ms]
        self._told = False
        self._gain = max(worst, healthy) - max(best, healthy)
        self._expected = (worst, best)
        self._due, self._streak = 0.0, 0

    def refusal(self, now_ms: int, *, worst: float, best: float, moved_share: float) -> str | None:
        """Why no rebalance should be asked for after this reading; None where it should.

        To be called with every reading: it counts what the imbalance costs.
        """
        settings, tuning = self.settings, self.tuning
        self.newly_exhausted = self.unsure = False
        self._judge_the_last(now_ms, worst)
        gain = max(worst, settings.healthy) - max(best, settings.healthy)
        elapsed = (
            0 if self._last_reading_ms is None else min(now_ms - self._last_reading_ms, tuning.longest_step_s * 1000)
        )
        self._last_reading_ms = now_ms
        if worst <= settings.healthy:
            self._due, self._streak = 0.0, 0
            return f"nobody is above {settings.healthy:.0%}"
        if gain < settings.least_gain:
            self._due, self._streak = 0.0, 0
            return f"a rebalance would gain {max(gain, 0.0):.2f}, less than {settings.least_gain:g}"
        self._streak += 1
        self._due += gain * elapsed / 1000
        stopped = max(moved_share, tuning.stopped_share) if self.cooperative else 1.0
        price = tuning.patience_s * (1 + 0.2 * self.jitter) + stopped * self._duration_ms / 1000
        if self._streak < tuning.readings or self._due < price:
            self.unsure = True
            return f"the imbalance has cost {self._due:.1f} s of a member's work, a rebalance costs {price:.1f} s"
        if now_ms < self._blocked_until_ms:
            return f"the last one did not help: the next in {(self._blocked_until_ms - now_ms) / 1000:.0f} s at most"
        if self._expected is not None:
            return "the effect of the last one is waited for"
        if self._rebalanced_ms is not None and now_ms - self._rebalanced_ms < tuning.least_interval_s * 1000:
            return f"the last rebalance is less than {tuning.least_interval_s:g} s ago"
        if self.exhausted(now_ms):
            self.newly_exhausted, self._told = not self._told, True
            return f"{settings.most_per_hour} rebalances for the load in an hour are the most"
        return None

    def exhausted(self, now_ms: int) -> bool:
        """Whether the rebalances of this hour are used up."""
        return self._used(now_ms) >= self.settings.most_per_hour

    def saves(self, now_ms: int) -> bool:
        """Whether half of the rebalances of this hour are used up, so that the others are not to be spent on lag."""
        used = self._used(now_ms)
        return used > 0 and 2 * used >= self.settings.most_per_hour

    def _used(self, now_ms: int) -> int:
        # None is forgotten here: the effect of the last one is to be judged, however long nothing could be read.
        return sum(now_ms - at < _HOUR_MS for at in self._asked_ms)

    def memory(self, now_ms: int) -> Memory:
        """What the next leader must know."""
        return Memory(
            ages_ms=tuple(now_ms - at for at in self._asked_ms if now_ms - at < _HOUR_MS),
            back_off_ms=self._back_off_ms,
            left_ms=max(self._blocked_until_ms - now_ms, 0),
            gain=self._gain,
        )

    def remember(self, memory: Memory, now_ms: int) -> None:
        """Go on from what another leader knew."""
        self._asked_ms = [now_ms - age for age in memory.ages_ms]
        self._back_off_ms, self._gain = memory.back_off_ms, memory.gain
        self._blocked_until_ms = now_ms + memory.left_ms
        self._expected = None

    def _judge_the_last(self, now_ms: int, worst: float) -> None:
        """Back off where a rebalance for the load has not brought half of its promise within some time."""
        if self._expected is None or not self._asked_ms:
            return
        was, promised = self._expected
        since_ms = max(self._asked_ms[-1], self._rebalanced_ms or 0)
        if worst <= max((was + promised) / 2, self.settings.healthy):
            self._expected, self._back_off_ms = None, 0
        elif now_ms - since_ms >= self.tuning.judged_after_s * 1000:
            first, longest = (
                round(1000 * each) for each in (self.tuning.first_back_off_s, self.tuning.longest_back_off_s)
            )
            self._expected, self._back_off_ms = None, min(max(2 * self._back_off_ms, first), longest)
            self._blocked_until_ms = since_ms + self._back_off_ms
