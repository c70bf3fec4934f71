"""Restraint: asks for a rebalance once the imbalance has cost as much as a rebalance does.

So a large imbalance is acted on at once and a small one later. At worst the group pays twice what it would pay if it
knew the future; this is the rule of ski rental. A gain that ends before it has paid for its rebalance doubles the price
of the next one, so that a group whose load keeps shifting becomes patient. A budget of standstill bounds all of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import RestraintTuning
from loadwise.protocol.live_notes import Memory, Price

_BUSY = 0.9
"""A member above this utilisation may fall behind: its capacity is an estimate."""
_KEPT = 5  # earlier requests whose times are kept for leaders of an older version, which count them


class Restraint:
    """The state between readings; its `Memory` travels with assignments and joins to the next leader."""

    def __init__(self, settings: LiveSettings, cooperative: bool, tuning: RestraintTuning | None = None) -> None:
        self._settings, self._tuning = settings, tuning or RestraintTuning()
        self._cooperative = cooperative
        self._asked_ms: tuple[int, ...] = ()  # the times of the newest requests
        self._price = Price()
        self._owed_s = 0.0  # what the gain of the last request has not yet paid of its price
        self._pays = False  # whether the gain alone justifies a request now
        self._exhausted_told = False
        self._due, self._read_ms = 0.0, math.nan
        """The cost of the present imbalance, in seconds of a member's work, and the time of its last update."""
        self._took_ms = 0  # the duration of the last rebalance, whatever its cause
        self._price_s = self._stop_s = 0.0  # the price of a rebalance now, and the part of it that is standstill

    def rebalanced(self, duration_ms: int) -> None:
        """Note the end of a rebalance, whatever its cause, and its duration."""
        self._took_ms, self._due, self._read_ms = duration_ms, 0.0, math.nan

    def unjudged(self, now_ms: int) -> None:
        """Note a reading without utilisation: the cost of the imbalance starts from 0 here."""
        self._due, self._read_ms = 0.0, now_ms

    def asked(self, now_ms: int) -> None:
        """Note that a rebalance was requested."""
        times = min(2 * self._price.times, self._tuning.dearest) if self._owed_s > 0 else self._price.times
        # A rebalance that waits for a member that hangs does not use up more than ten minutes save.
        self._price = Price(min(self._lacking_s(now_ms) + self._stop_s, 2 * self._most_s), times)
        self._asked_ms = (*self._asked_ms[-_KEPT:], now_ms)
        self._owed_s = self._price_s if self._pays else 0.0
        self._due, self._exhausted_told = 0.0, False

    def paid(self, gain_s: float) -> None:
        """Note what the last request has saved since the reading before, in seconds of a member's work."""
        if self._owed_s > 0:
            self._owed_s -= gain_s
            if self._owed_s <= 0:
                self._price = self._price._replace(times=max(self._price.times / 2, 1.0))

    def refusal(
        self,
        now_ms: int,
        *,
        worst: float,
        best: float,
        moved_share: float,
        redone_s: float = 0.0,
        saves_lag: bool = True,
    ) -> Refusal | None:
        """Return why no rebalance should be requested; None if one should.

        Call it after every reading, because it adds up the cost of the imbalance. ``saves_lag``: False if the group has
        more lag than without its rebalances.
        """
        settings, tuning = self._settings, self._tuning
        gain = gained(worst, best, settings.healthy)
        elapsed_s = min((now_ms - self._read_ms) / 1000, tuning.longest_step_s)
        due, self._due, self._read_ms, self._pays = self._due, 0.0, now_ms, False
        stopped = max(moved_share, tuning.stopped_share) if self._cooperative else 1.0
        self._stop_s = stopped * self._took_ms / 1000
        self._price_s = self._price.times * (tuning.patience_s + self._stop_s + stopped * redone_s)
        if worst <= settings.healthy:
            return Refusal(f"no member is above {settings.healthy:.0%}")
        if gain < settings.least_gain:
            return Refusal(f"a rebalance would gain {max(gain, 0.0):.2f}, less than {settings.least_gain:g}")
        room = 1.0 if saves_lag else tuning.room
        self._due = due + gained(worst, best, settings.healthy, room) * elapsed_s if elapsed_s > 0 else due
        if self._due < self._price_s:
            cost = (
                f"the imbalance has cost {self._due:.1f} s of a member's work, a rebalance costs {self._price_s:.1f} s"
            )
            return Refusal(cost, soon=True)
        if self.exhausted(now_ms):
            told, self._exhausted_told = self._exhausted_told, True
            reason = f"rebalances for the load have stopped members for {settings.standstill:.1%} of the time"
            return Refusal(reason, exhausted=not told)
        self._pays = True
        return None

    @property
    def patient(self) -> bool:
        """Whether the last gains did not last."""
        return self._price.times > 1.0

    def exhausted(self, now_ms: int, *, asking: bool = False) -> bool:
        """Return whether the budget of standstill is used up; with ``asking``, after the next request."""
        return self._lacking_s(now_ms) + (self._stop_s if asking else 0.0) >= self._most_s

    @property
    def _most_s(self) -> float:
        return self._settings.standstill * self._tuning.saved_s

    def _lacking_s(self, now_ms: int) -> float:
        if not self._asked_ms:
            return 0.0
        return max(self._price.spent_s - self._settings.standstill * (now_ms - self._asked_ms[-1]) / 1000, 0.0)

    def memory(self, now_ms: int) -> Memory:
        """Return the state that the next leader needs."""
        return Memory(ages_ms=tuple(now_ms - at for at in self._asked_ms), price=self._price)

    def remember(self, memory: Memory, now_ms: int) -> None:
        """Continue from the state of another leader."""
        asked_ms, self._asked_ms, self._price = [now_ms - age for age in memory.ages_ms], (), Price()
        for at in asked_ms if memory.price is None else ():  # an older version counts requests
            self._price, self._asked_ms = Price(self._lacking_s(at) + self._tuning.stop_s), (at,)
        self._asked_ms, self._price = tuple(asked_ms), memory.price or self._price


class Refusal(NamedTuple):
    """Why no rebalance is requested."""

    reason: str
    soon: bool = False
    """Whether the next reading should come soon, because it may show that a rebalance is worth its cost."""
    exhausted: bool = False
    """Whether this is the first request that the budget of standstill prevents."""
    waiting: bool = False
    """Whether a rebalance would have to wait for a member that stands still."""


def gained(worst: float, best: float, healthy: float, room: float = 1.0) -> float:
    """Return by how much the highest utilisation falls above the healthy level.

    It is relative to ``best`` above 1, because the utilisation of a group that is too small varies by more. ``room``:
    the part that counts of utilisation at which a member has time left.
    """
    return (_above(worst, healthy, room) - _above(best, healthy, room)) / max(best, 1.0)


def _above(utilisation: float, healthy: float, room: float) -> float:
    busy = max(_BUSY, healthy)
    return max(utilisation - busy, 0.0) + room * max(min(utilisation, busy) - healthy, 0.0)
