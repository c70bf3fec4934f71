"""Restraint: when a rebalance that would help is worth its price, and what keeps a group from rebalancing too often.

The rule is that of ski rental: pay for the skis once the rent has come to their price. While a rebalance would help,
its gain adds up, in seconds of one member's work; when it has come to what the rebalance costs, it is asked for. So a
large imbalance is acted on at once and a small one later, and at worst the group pays twice what it would have paid
had it known the future.

What must outlive the leader (`loadwise.protocol.live_notes.Memory`) travels with the assignment and comes back with
the next join.
"""

from __future__ import annotations

from typing import NamedTuple

from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import RestraintTuning
from loadwise.protocol.live_notes import Memory

_HOUR_MS = 3_600_000


class _Past(NamedTuple):
    """What is known of the rebalances that were asked for; it outlives the leader."""

    asked_ms: tuple[int, ...] = ()
    back_off_ms: int = 0
    blocked_until_ms: int = 0
    gain: float = 0.0


class _Imbalance(NamedTuple):
    """What the present imbalance has cost, and how many readings in a row have shown it."""

    due: float = 0.0
    readings: int = 0
    read_ms: int | None = None


class Restraint:
    """The state between readings.

    ``jitter`` is from 0 to 1, drawn by the caller: groups that see the same shift do not all act at one moment.
    """

    def __init__(
        self, settings: LiveSettings, cooperative: bool, jitter: float = 0.0, tuning: RestraintTuning | None = None
    ) -> None:
        self._settings, self._cooperative, self._jitter = settings, cooperative, jitter
        self._tuning = tuning or RestraintTuning()
        self.unsure = False
        """Whether the last reading would have led to a rebalance, had others shown the same before it."""
        self.newly_exhausted = False
        """Whether the last reading is the first that would have led to a rebalance, had there not been enough."""
        self._told = False
        self._past = _Past()
        self._imbalance = _Imbalance()
        self._rebalanced: tuple[int | None, int] = None, 0
        """When the last rebalance ended, for whatever reason, and how long it took."""
        self._expected: tuple[float, float] | None = None
        """The highest utilisation when the last rebalance was asked for, and the one that it was to bring."""

    def rebalanced(self, now_ms: int, duration_ms: int) -> None:
        """A rebalance, for whatever reason, has ended and took that long."""
        self._rebalanced, self._imbalance = (now_ms, duration_ms), _Imbalance()
        self.newly_exhausted = self.unsure = False

    def unjudged(self, now_ms: int) -> None:
        """A reading tells no utilisation: what the imbalance costs is counted from here on."""
        self._imbalance = _Imbalance(read_ms=now_ms)

    def asked(self, now_ms: int, worst: float, best: float, healthy: float) -> None:
        """A rebalance was asked for."""
        recent = (at for at in self._past.asked_ms if now_ms - at < _HOUR_MS)
        self._past = self._past._replace(asked_ms=(*recent, now_ms), gain=max(worst, healthy) - max(best, healthy))
        self._told = False
        self._expected = (worst, best)
        self._imbalance = _Imbalance(read_ms=self._imbalance.read_ms)

    def refusal(self, now_ms: int, *, worst: float, best: float, moved_share: float) -> str | None:
        """Why no rebalance should be asked for after this reading; None where it should.

        To be called with every reading: it counts what the imbalance costs.
        """
        settings, tuning = self._settings, self._tuning
        self.newly_exhausted = self.unsure = False
        self._judge_the_last(now_ms, worst)
        gain = max(worst, settings.healthy) - max(best, settings.healthy)
        due, readings, read_ms = self._imbalance
        self._imbalance = _Imbalance(read_ms=now_ms)
        if worst <= settings.healthy:
            return f"nobody is above {settings.healthy:.0%}"
        if gain < settings.least_gain:
            return f"a rebalance would gain {max(gain, 0.0):.2f}, less than {settings.least_gain:g}"
        elapsed_s = 0.0 if read_ms is None else min((now_ms - read_ms) / 1000, tuning.longest_step_s)
        due += gain * elapsed_s
        self._imbalance = _Imbalance(due, readings + 1, now_ms)
        rebalanced_ms, took_ms = self._rebalanced
        stopped = max(moved_share, tuning.stopped_share) if self._cooperative else 1.0
        price = tuning.patience_s * (1 + 0.2 * self._jitter) + stopped * took_ms / 1000
        if readings + 1 < tuning.readings or due < price:
            self.unsure = True
            return f"the imbalance has cost {due:.1f} s of a member's work, a rebalance costs {price:.1f} s"
        if now_ms < self._past.blocked_until_ms:
            left_s = (self._past.blocked_until_ms - now_ms) / 1000
            return f"the last one did not help: the next in {left_s:.0f} s at most"
        if self._expected is not None:
            return "the effect of the last one is waited for"
        if rebalanced_ms is not None and now_ms - rebalanced_ms < tuning.least_interval_s * 1000:
            return f"the last rebalance is less than {tuning.least_interval_s:g} s ago"
        if self.exhausted(now_ms):
            self.newly_exhausted, self._told = not self._told, True
            return f"{settings.most_per_hour} rebalances for the load in an hour are the most"
        return None

    def exhausted(self, now_ms: int) -> bool:
        """Whether the rebalances of this hour are used up."""
        return self._used(now_ms) >= self._settings.most_per_hour

    def saves(self, now_ms: int) -> bool:
        """Whether half of the rebalances of this hour are used up, so that the others are not to be spent on lag."""
        used = self._used(now_ms)
        return used > 0 and 2 * used >= self._settings.most_per_hour

    def _used(self, now_ms: int) -> int:
        # None is forgotten here: the effect of the last one is to be judged, however long nothing could be read.
        return sum(now_ms - at < _HOUR_MS for at in self._past.asked_ms)

    def memory(self, now_ms: int) -> Memory:
        """What the next leader must know."""
        past = self._past
        return Memory(
            ages_ms=tuple(now_ms - at for at in past.asked_ms if now_ms - at < _HOUR_MS),
            back_off_ms=past.back_off_ms,
            left_ms=max(past.blocked_until_ms - now_ms, 0),
            gain=past.gain,
        )

    def remember(self, memory: Memory, now_ms: int) -> None:
        """Go on from what another leader knew."""
        asked_ms = tuple(now_ms - age for age in memory.ages_ms)
        self._past = _Past(asked_ms, memory.back_off_ms, now_ms + memory.left_ms, memory.gain)
        self._expected = None

    def _judge_the_last(self, now_ms: int, worst: float) -> None:
        """Back off where a rebalance for the load has not brought half of its promise within some time."""
        if self._expected is None or not self._past.asked_ms:
            return
        was, promised = self._expected
        since_ms = max(self._past.asked_ms[-1], self._rebalanced[0] or 0)
        if worst <= max((was + promised) / 2, self._settings.healthy):
            self._expected, self._past = None, self._past._replace(back_off_ms=0)
        elif now_ms - since_ms >= self._tuning.judged_after_s * 1000:
            first_ms, longest_ms = (
                round(1000 * each) for each in (self._tuning.first_back_off_s, self._tuning.longest_back_off_s)
            )
            back_off_ms = min(max(2 * self._past.back_off_ms, first_ms), longest_ms)
            self._expected = None
            self._past = self._past._replace(back_off_ms=back_off_ms, blocked_until_ms=since_ms + back_off_ms)
