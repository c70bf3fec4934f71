"""Evidence of members' capacities, in records/s: their own measurements, and the progress of their commits.

A member with a backlog in all readings for a while shows its capacity: the records that it commits in that time. They
come in steps, so the rate has bounds, narrower over a longer time. Without a backlog the rate is a lower bound.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from loadwise.assignor.live.capacity import Capacities, Known, capacities
from loadwise.assignor.live.seen import Pace
from loadwise.assignor.live.tuning import CapacityTuning
from loadwise.assignor.model import LARGEST, Bools, Floats


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The evidence of one member's capacity."""

    known: Known | None = None
    told: tuple[float, int] | None = None  # its own measurement, and when it was reported
    exact_ms: int | None = None  # when its notes last showed it at its capacity


_NONE = _Evidence()
_SAME = 1.25  # two reports that differ by at most this factor are the same


class CapacityEstimates:
    """The evidence of all members by name; ``slack_s`` is about the time between two commits."""

    def __init__(self, slack_s: float = 6.0, tuning: CapacityTuning | None = None) -> None:
        self._tuning, self._slack_ms = tuning or CapacityTuning(), slack_s * 1000
        self._of: dict[str, _Evidence] = {}
        self._off: dict[str, tuple[float, float]] = {}
        """Reported and observed capacities of members, where the two contradict each other."""
        self._seen_ms = 0
        """When a member was last seen to fall behind: until that ends, observed capacities count for all members."""
        self._members: tuple[str, ...] = ()
        self._seen: deque[tuple[int, Floats]] = deque()
        self._lagging_since = np.empty(0)

    def watch(self, members: tuple[str, ...], now_ms: int) -> None:
        """Restart with these members after a rebalance: the time of the rebalance is no measurement."""
        self._members = members
        self._begin_anew()
        for member in self._of.keys() - set(members):
            known = self._of[member].known
            if known is None or now_ms - known.at_ms > self._tuning.forgotten_ms:
                del self._of[member]
                self._off.pop(member, None)

    def rescale(self, factors: Mapping[str, float], since_ms: int) -> None:
        """Change the unit of records; estimates from before ``since_ms`` are dropped: they are of other topics."""
        known = ((member, self._of[member].known) for member in factors if member in self._of)
        recent = ((member, each) for member, each in known if each is not None and each.at_ms >= since_ms)
        self._of = {member: _Evidence(known=each.times(factors[member])) for member, each in recent}
        self._begin_anew()

    def forget(self) -> None:
        """Forget all capacities: they are of another unit."""
        self._of, self._off = {}, {}
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._seen.clear()
        self._lagging_since = np.full(len(self._members), math.nan)

    def measured(self, member: str, per_s: float, now_ms: int) -> None:
        """Take in a member's own measurement, corrected by the rate that it reached when it fell behind."""
        if per_s <= 0:
            return
        per_s = self._corrected(member, min(per_s, LARGEST))
        before = self._of.get(member, _NONE)
        known = before.known
        if known is not None and known.proven and known.at_ms - now_ms > self._tuning.recent_ms:
            return  # the report is much older than the estimate
        told = per_s, now_ms
        tuning, exact_ms = self._tuning, before.exact_ms
        if exact_ms is not None and now_ms - exact_ms < tuning.recent_ms and now_ms - self._seen_ms < tuning.held_ms:
            self._of[member] = replace(before, told=told)
            return
        self._of[member] = replace(before, told=told, known=Known.exactly(per_s, now_ms))

    def seen(self, member: str, pace: Pace, now_ms: int) -> None:
        """Take in the rate of a member that falls behind: this is its capacity, whatever it reports."""
        before = self._of.get(member, _NONE)
        if before.told is not None:
            each, at_ms = before.told
            said = self._off[member][0] if member in self._off else each
            if pace.least_per_s <= said <= pace.most_per_s:
                self._off.pop(member, None)
            elif pace.intervals < self._tuning.contradicts and member not in self._off:
                return
            elif pace.per_s > 0:
                self._off[member] = said, pace.per_s
                before = replace(before, told=(pace.per_s, at_ms))
        self._seen_ms = now_ms
        known = Known(pace.per_s, now_ms, True, pace.least_per_s, pace.most_per_s)
        self._of[member] = replace(before, exact_ms=now_ms, known=known)

    def outdid(self, member: str, per_s: float) -> None:
        """Drop a member's observed capacity if the member now exceeds it."""
        before = self._of.get(member, _NONE)
        if before.exact_ms is not None and before.known is not None and before.known.most_per_s < per_s:
            self._off.pop(member, None)
            self._of[member] = replace(before, exact_ms=None, known=None)

    def _corrected(self, member: str, per_s: float) -> float:
        """Return a reported capacity, corrected by the error of the member's report when it fell behind."""
        if member not in self._off:  # others' errors count if they make it faster: most members run the same program
            return per_s * max(median([*(seen / said for said, seen in self._off.values())] or [1.0]), 1.0)
        said, seen = self._off[member]
        if not said / _SAME <= per_s <= said * _SAME:
            self._off.clear()  # its speed has changed, which explains the contradiction, also for other members
            return per_s
        return per_s * seen / said

    def recalled(self, member: str, per_s: float, now_ms: int, *, instead: bool = False) -> None:
        """Take in a member's capacity from another leader; ``instead`` of an estimate if that leader led since."""
        before = self._of.get(member, _NONE)
        if per_s > 0 and (instead or before.known is None):
            self._of[member] = replace(before, known=Known.exactly(per_s, now_ms))

    def known_of(self, members: Sequence[str]) -> dict[str, float]:
        """Return the learned capacity of each member, in records/s; 0 if only a lower bound is known."""
        known = ((member, self._of.get(member, _NONE).known) for member in members)
        return {member: each.per_s if each is not None and each.proven else 0.0 for member, each in known}

    def update(
        self,
        processed: Floats,
        lagging: Bools,
        now_ms: int,
        *,
        since_ms: int | None = None,
        slack_s: float | None = None,
    ) -> None:
        """Take in the records that members have processed since `watch`; those ``lagging`` do so since ``since_ms``.

        ``slack_s`` is the time between two commits if it has changed.
        """
        self._slack_ms = self._slack_ms if slack_s is None else slack_s * 1000
        if self._seen and now_ms <= self._seen[-1][0]:
            return
        self._seen.append((now_ms, processed))
        began = np.fmin(self._lagging_since, now_ms if since_ms is None else since_ms)
        self._lagging_since = np.where(lagging, began, math.nan)
        longest_ms = max(self._tuning.longest_ms, self._tuning.longest_commits * self._slack_ms)
        while len(self._seen) > 2 and now_ms - self._seen[1][0] >= longest_ms:
            self._seen.popleft()
        for number, member in enumerate(self._members):
            self._observe(number, member, now_ms)

    def _observe(self, number: int, member: str, now_ms: int) -> None:
        tuning, before = self._tuning, self._of.get(member, _NONE)
        if before.exact_ms is not None and now_ms - before.exact_ms < tuning.recent_ms:
            return  # commits without notes are less precise
        since = float(self._lagging_since[number])
        saturated = now_ms - since >= tuning.shortest_ms
        start, earlier = next((each for each in self._seen if not saturated or each[0] >= since), self._seen[-1])
        watched_ms = now_ms - start
        records = max(float(self._seen[-1][1][number] - earlier[number]), 0.0)
        # Without records, its first commit may not be due yet.
        if watched_ms < (tuning.shortest_ms if records else max(tuning.shortest_ms, self._slack_ms)):
            return
        per_s = records * 1000 / watched_ms
        # At either end, records of about one commit interval may be processed but not committed yet.
        least = records * 1000 / (watched_ms + self._slack_ms)
        most = records * 1000 / max(watched_ms - self._slack_ms, 1.0)
        known = before.known
        if saturated:
            self._of[member] = replace(before, known=Known(per_s, now_ms, True, least, most))
        elif known is None or (not known.proven and per_s > known.per_s):
            self._of[member] = replace(before, known=Known(per_s, now_ms, False, least, math.inf))

    def recovered(self, stated: Mapping[str, float], now_ms: int) -> Capacities:
        """Return the capacities if members that were seen slower than they say have recovered; as `of`."""
        ended = {
            member: Known.exactly(said, now_ms)
            for member, (said, _) in self._off.items()
            if now_ms - (self._of[member].exact_ms or 0) >= self._tuning.held_ms
        }
        now, self._of = self._of, self._of | {m: replace(self._of[m], known=known) for m, known in ended.items()}
        try:
            return self.of(stated, now_ms)
        finally:
            self._of = now

    def of(self, stated: Mapping[str, float], now_ms: int) -> Capacities:
        """Return the capacities of these members; ``stated`` are relative capacities that users set, 0 if not set."""
        known = [self._of.get(member, _NONE).known for member in stated]
        falls_behind = bool(np.isfinite(self._lagging_since).any())
        given = np.array(list(stated.values()), np.float64)
        return capacities(known, given, self._tuning, now_ms, falls_behind=falls_behind)
