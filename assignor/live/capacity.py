"""What members can process, in records/s, learned from what they are seen to process.

Three kinds of evidence. A member with a backlog in all readings for a while shows its capacity: what it commits in that
time. A member that was measured while it was busy knows its own. What a member without a backlog processes is a lower
bound: it raises an estimate and never lowers it, so that a member that is given little is not taken for a slow one.

Estimates are drawn towards the median of the group the more, the shorter they were watched, and rounded to steps of a
quarter of an octave around it, so that identical machines come out as identical. An estimate below the median that
nothing confirms goes back to it with time: a machine that was slow once is tried again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadwise.assignor.model import LARGEST, SMALLEST_CAPACITY, Bools, Floats

_SHORTEST_MS = 8_000
"""A member must be seen for at least this long before its processing counts as a measurement."""
_LONGEST_MS = 30_000
"""What a member processes is its mean over the last half minute, or less if it was not watched that long."""
_TRUST_MS = 3_000
"""After so long an observation, an estimate is half the observation and half the median of the group."""
_STEPS_PER_OCTAVE = 4
_FURTHEST = 8.0
"""Estimates stay within an eighth of the median and eight times the median."""
_USED = 0.7
"""A member that keeps up with more than what others can do is taken to be used to this part of its capacity."""
_HALF_LIFE_MS = 1_800_000
"""A low estimate that nothing confirms has come half of its way back to the median after this time."""


@dataclass(slots=True)
class _Known:
    """What is known of one member."""

    per_s: float
    watched_ms: int
    at_ms: int
    proven: bool
    """Whether it is a capacity, and not only a lower bound."""


@dataclass(frozen=True, slots=True)
class Capacities:
    """What the members of a group can process."""

    per_s: Floats
    """float64[M], in records/s; where ``known`` is False, relative to each other."""
    known: bool
    """Whether somebody's capacity is known, so that a utilisation means something."""
    proven: Bools
    """bool[M]: whose capacity was seen, and not taken from the others."""


class CapacityEstimates:
    """The estimates of all members, by a name that outlives their ids where they have one."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._members: tuple[str, ...] = ()
        self._seen: deque[tuple[int, Floats]] = deque()
        self._lagging_since = np.empty(0)

    def watch(self, members: tuple[str, ...]) -> None:
        """Begin anew with these members, after a rebalance: what happened during it is no measurement."""
        self._members = members
        self._seen.clear()
        self._lagging_since = np.full(len(members), math.nan)

    def measured(self, member: str, per_s: float, now_ms: int) -> None:
        """Take in what a member has measured of itself while it was busy; what the group has seen of it counts more."""
        known = self._known.get(member)
        recent = known is not None and known.proven and now_ms - known.at_ms < 2 * _LONGEST_MS
        if per_s > 0 and not (recent and known is not None and known.watched_ms > 0):
            self._known[member] = _Known(per_s, _LONGEST_MS, now_ms, proven=True)

    def recalled(self, member: str, per_s: float, now_ms: int) -> None:
        """Take in what an earlier leader had learned of a member, unless more is known."""
        if per_s > 0 and member not in self._known:
            self._known[member] = _Known(per_s, _LONGEST_MS, now_ms, proven=True)

    def known_of(self, members: Sequence[str]) -> dict[str, float]:
        """What has been learned of each member, in records/s; 0 where nothing but a lower bound is known."""
        known = ((member, self._known.get(member)) for member in members)
        return {member: each.per_s if each is not None and each.proven else 0.0 for member, each in known}

    def update(self, processed: Floats, lagging: Bools, now_ms: int, *, since_ms: int | None = None) -> None:
        """Take in a reading: records that each member has processed since `watch`, and who has a backlog right now.

        Those who have one have had it since ``since_ms`` at least, or since now.
        """
        if self._seen and now_ms <= self._seen[-1][0]:
            return
        self._seen.append((now_ms, processed))
        began = now_ms if since_ms is None else since_ms
        self._lagging_since = np.where(
            lagging, np.where(np.isnan(self._lagging_since), began, self._lagging_since), math.nan
        )
        while len(self._seen) > 2 and now_ms - self._seen[1][0] >= _LONGEST_MS:
            self._seen.popleft()
        for number, member in enumerate(self._members):
            self._observe(number, member, now_ms)

    def _observe(self, number: int, member: str, now_ms: int) -> None:
        since = float(self._lagging_since[number])
        saturated = not math.isnan(since) and now_ms - since >= _SHORTEST_MS
        start = next((at for at, _ in self._seen if not saturated or at >= since), now_ms)
        watched_ms = now_ms - start
        if watched_ms < _SHORTEST_MS:
            return
        earlier = next(processed for at, processed in self._seen if at == start)
        per_s = float(self._seen[-1][1][number] - earlier[number]) * 1000 / watched_ms
        known = self._known.get(member)
        if saturated:
            self._known[member] = _Known(max(per_s, 0.0), watched_ms, now_ms, proven=True)
        elif known is None:
            self._known[member] = _Known(per_s, watched_ms, now_ms, proven=False)
        elif per_s > known.per_s:
            known.per_s, known.at_ms = per_s, now_ms

    def of(self, stated: Mapping[str, float], now_ms: int) -> Capacities:
        """The capacities of these members; ``stated`` is what users gave in relation to the others, 0 where nothing.

        A stated capacity stands. The others are relative to the median of what is known.
        """
        members = list(stated)
        given = np.array([stated[member] for member in members])
        known = [self._known.get(member) for member in members]
        proven = np.array([each is not None and each.proven for each in known], bool)
        seen = np.array([0.0 if each is None else each.per_s for each in known])
        per_unit = np.where(given > 0, seen / np.where(given > 0, given, 1.0), seen)
        if not proven.any():
            most = float(per_unit.max(initial=0.0)) if np.isfinite(self._lagging_since).any() else 0.0
            # Whoever falls behind shows soon what it can do. Until then, members can do what the best of them has done.
            return Capacities(_bounded(np.where(given > 0, given, 1.0) * (most or 1.0)), known=most > 0, proven=proven)
        median = max(float(np.median(per_unit[proven])), 1e-9)
        bounds = per_unit[~proven]
        if len(bounds) and (bound := float(np.median(bounds))) > median:
            # Only slow members have shown their capacity. The others keep up with more, and so can do more than that.
            median = bound / _USED
        ratio = np.ones(len(members))
        for number, each in enumerate(known):
            if each is not None and each.proven and given[number] == 0:
                ratio[number] = _ratio(each, median, now_ms)
        return Capacities(_bounded(np.where(given > 0, given, ratio) * median), known=True, proven=proven)


def _bounded(per_s: Floats) -> Floats:
    """What a group takes as capacities: members may tell numbers whose products it does not take."""
    return np.clip(per_s, SMALLEST_CAPACITY, LARGEST)


def _ratio(known: _Known, median: float, now_ms: int) -> float:
    ratio = min(max(known.per_s / median, 1 / _FURTHEST), _FURTHEST)
    trust = known.watched_ms / (known.watched_ms + _TRUST_MS)
    if ratio < 1:
        trust *= 0.5 ** ((now_ms - known.at_ms) / _HALF_LIFE_MS)
    octaves = math.log2(ratio) * trust
    return float(2.0 ** (round(octaves * _STEPS_PER_OCTAVE) / _STEPS_PER_OCTAVE))
