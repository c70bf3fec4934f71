"""Evidence of what members can process, in records/s: what they say of themselves, and what they are seen to do.

A member that was measured while it was busy knows its own capacity. One with a backlog in all readings for a while
shows it: what it commits in that time, give or take a commit. What a member without a backlog processes is a lower
bound, which counts until its capacity is known.

Commits come in steps, so what one shows is known in bounds, which become narrower the longer it is watched.
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
    """All that is known of one member."""

    known: Known | None = None
    told: tuple[float, int] | None = None
    """What it has measured of itself, and when."""
    exact_ms: int | None = None
    """When it was last seen to process all that it can, by its notes."""


_NONE = _Evidence()
_SAME = 1.25
"""So many times as much or as little is the same statement."""


class CapacityEstimates:
    """The evidence of all members, by a name that outlives their ids where they have one.

    ``slack_s`` is about the time between two commits of a member.
    """

    def __init__(self, slack_s: float = 6.0, tuning: CapacityTuning | None = None) -> None:
        self._tuning, self._slack_ms = tuning or CapacityTuning(), slack_s * 1000
        self._of: dict[str, _Evidence] = {}
        self._off: dict[str, tuple[float, float]] = {}
        """What members have said of themselves and what they were seen to process, where that contradicts it."""
        self._seen_ms = 0
        """When a member was last seen to fall behind: what is seen counts for all of them until it is over."""
        self._members: tuple[str, ...] = ()
        self._seen: deque[tuple[int, Floats]] = deque()
        self._lagging_since = np.empty(0)

    def watch(self, members: tuple[str, ...], now_ms: int) -> None:
        """Begin anew with these members, after a rebalance: what happened during it is no measurement."""
        self._members = members
        self._begin_anew()
        for member in self._of.keys() - set(members):
            known = self._of[member].known
            if known is None or now_ms - known.at_ms > self._tuning.forgotten_ms:
                del self._of[member]
                self._off.pop(member, None)

    def rescale(self, factors: Mapping[str, float], since_ms: int) -> None:
        """Records are counted in another unit from now on, in which each member's numbers are so many times as large.

        What was seen in the old unit is no measurement in the new one. What was learned of a member before then is
        forgotten: it may have been by other records, for which the factor is another one.
        """
        known = ((member, self._of[member].known) for member in factors if member in self._of)
        recent = ((member, each) for member, each in known if each is not None and each.at_ms >= since_ms)
        self._of = {member: _Evidence(known=each.times(factors[member])) for member, each in recent}
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._seen.clear()
        self._lagging_since = np.full(len(self._members), math.nan)

    def measured(self, member: str, per_s: float, now_ms: int) -> None:
        """Take in what a member has measured of itself while it was busy, as far as the group's commits bear it out.

        It is corrected by what the member was seen to do when it fell behind.
        """
        if per_s <= 0:
            return
        per_s = self._corrected(member, min(per_s, LARGEST))
        before = self._of.get(member, _NONE)
        known = before.known
        if known is not None and known.proven and known.at_ms - now_ms > self._tuning.recent_ms:
            return  # it was told long before what is known was learned
        told = per_s, now_ms
        tuning, exact_ms = self._tuning, before.exact_ms
        if exact_ms is not None and now_ms - exact_ms < tuning.recent_ms and now_ms - self._seen_ms < tuning.held_ms:
            self._of[member] = replace(before, told=told)
            return
        self._of[member] = replace(before, told=told, known=Known.exactly(per_s, 1.0, now_ms))

    def seen(self, member: str, pace: Pace, now_ms: int) -> None:
        """A member that falls behind processes so much: that is its capacity, whatever it says."""
        before, self._seen_ms = self._of.get(member, _NONE), now_ms
        if before.told is not None:
            each, at_ms = before.told
            said = self._off[member][0] if member in self._off else each
            if pace.least_per_s <= said <= pace.most_per_s:
                self._off.pop(member, None)
            elif pace.per_s > 0:
                self._off[member] = said, pace.per_s
                before = replace(before, told=(pace.per_s, at_ms))
        known = Known(pace.per_s, 1.0, now_ms, True, pace.least_per_s, pace.most_per_s)
        self._of[member] = replace(before, exact_ms=now_ms, known=known)

    def outdid(self, member: str, per_s: float) -> None:
        """A member has processed so much at least: what it was seen to do before, if that is less, holds no more."""
        before = self._of.get(member, _NONE)
        if before.exact_ms is not None and before.known is not None and before.known.most_per_s < per_s:
            self._off.pop(member, None)
            self._of[member] = replace(before, exact_ms=None, known=None)

    def _corrected(self, member: str, per_s: float) -> float:
        """What a member says, divided by how much too much it said while it was seen to fall behind.

        Where it never has, it can do more than it says if the others can: they are mostly of the same program.
        """
        if member not in self._off:
            return per_s * max(median([*(seen / said for said, seen in self._off.values())] or [1.0]), 1.0)
        said, seen = self._off[member]
        if (
            not said / _SAME <= per_s <= said * _SAME
        ):  # its speed has changed: that was the contradiction, also for others
            self._off.clear()
            return per_s
        return per_s * seen / said

    def recalled(self, member: str, per_s: float, now_ms: int, *, instead: bool = False) -> None:
        """Take in what an earlier leader had learned of a member, unless more is known.

        ``instead`` of what is known, where that leader has led since it was learned.
        """
        before = self._of.get(member, _NONE)
        if per_s > 0 and (instead or before.known is None):
            self._of[member] = replace(before, known=Known.exactly(per_s, self._tuning.recalled, now_ms))

    def known_of(self, members: Sequence[str]) -> dict[str, float]:
        """What has been learned of each member, in records/s; 0 where nothing but a lower bound is known."""
        known = ((member, self._of.get(member, _NONE).known) for member in members)
        return {member: each.per_s if each is not None and each.proven else 0.0 for member, each in known}

    def update(self, processed: Floats, lagging: Bools, now_ms: int, *, since_ms: int | None = None) -> None:
        """Take in a reading: records that each member has processed since `watch`, and who has a backlog right now.

        Those who have one have had it since ``since_ms`` at least, or since now.
        """
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
            return  # what its commits show without its notes is less precise
        since = float(self._lagging_since[number])
        saturated = now_ms - since >= tuning.shortest_ms
        start, earlier = next((each for each in self._seen if not saturated or each[0] >= since), self._seen[-1])
        watched_ms = now_ms - start
        if watched_ms < tuning.shortest_ms:
            return
        records = max(float(self._seen[-1][1][number] - earlier[number]), 0.0)
        per_s = records * 1000 / watched_ms
        # Before and after the time there may be as much that was processed and is not committed, or was earlier.
        least = records * 1000 / (watched_ms + self._slack_ms)
        most = records * 1000 / max(watched_ms - self._slack_ms, 1.0)
        known = before.known
        if saturated:
            self._of[member] = replace(before, known=Known(per_s, 1.0, now_ms, True, least, most))
        elif known is None or (not known.proven and per_s > known.per_s):
            self._of[member] = replace(before, known=Known(per_s, 0.0, now_ms, False, least, math.inf))

    def of(self, stated: Mapping[str, float], now_ms: int) -> Capacities:
        """The capacities of these members; ``stated`` is what users gave in relation to the others, 0 where nothing."""
        known = [self._of.get(member, _NONE).known for member in stated]
        falls_behind = bool(np.isfinite(self._lagging_since).any())
        given = np.array(list(stated.values()), np.float64)
        return capacities(known, given, self._tuning, now_ms, falls_behind=falls_behind)
