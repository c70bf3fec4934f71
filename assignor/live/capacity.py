"""What members can process, in records/s, learned from what they are seen to process.

Three kinds of evidence. A member that was measured while it was busy knows its own capacity. One with a backlog in all
readings for a while shows it: what it commits in that time, give or take a commit. So what the member tells is believed
as far as it agrees with that. What a member without a backlog processes is a lower bound: it raises an estimate and
never lowers it, so that a member that is given little is not taken for a slow one.

Commits come in steps, so what one shows is known in bounds, which become narrower the longer it is watched. Who may be
as fast as the median of the group is taken to be. The other estimates are rounded to steps of a quarter of an octave
around it, and to none near it, so that identical machines come out as identical. An estimate below the median that
nothing confirms goes back to it with time: a machine that was slow once is tried again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from loadwise.assignor.live.seen import Pace
from loadwise.assignor.model import LARGEST, SMALLEST_CAPACITY, Bools, Floats

_SHORTEST_MS = 8_000
"""A member must be seen for at least this long before its processing counts as a measurement."""
_LONGEST_MS = 30_000
"""What a member processes is its mean over the last half minute, or less if it was not watched that long..."""
_LONGEST_COMMITS = 4
"""... or over the time of so many commits, where these come rarely."""
_RECENT_MS = 2 * _LONGEST_MS
"""What a member has told or shown so long ago is not compared any more with what it shows or tells now."""
_RECALLED = 0.9
"""How much of an estimate is kept that another leader has made; the rest is the median of the group."""
_STEPS_PER_OCTAVE = 4
_TWINS = 0.3
"""Members less than so many octaves from the median are as fast as it is..."""
_NEARLY = 2.0**_TWINS
"""... which is so many times."""
_FURTHEST = 8.0
"""Estimates stay within an eighth of the median and eight times the median."""
_USED = 0.7
"""A member that keeps up with more than what others can do is taken to be used to this part of its capacity."""
_HALF_LIFE_MS = 1_800_000
"""A low estimate that nothing confirms has come half of its way back to the median after this time."""
_SMALLEST, _ROUNDING = 1e-9, 1e-9
_FORGOTTEN_MS = 3_600_000
"""What is known of a member is kept for so long after it was learned, while the member is not there."""


@dataclass(slots=True)
class _Known:
    """What is known of one member."""

    per_s: float
    trust: float
    """How much of it is believed, from 0 to 1; the rest is the median of the group."""
    at_ms: int
    proven: bool
    """Whether it is a capacity, and not only a lower bound."""
    least_per_s: float
    most_per_s: float
    """What it may be, where it was seen in the commits: the same where the member has told it."""

    @classmethod
    def exactly(cls, per_s: float, trust: float, at_ms: int) -> _Known:
        """What somebody has measured."""
        return cls(per_s, trust, at_ms, proven=True, least_per_s=per_s, most_per_s=per_s)


class _Shown(NamedTuple):
    """What a member with a backlog has processed, as the group's commits show it: in bounds, for they come in steps."""

    least_per_s: float
    most_per_s: float
    at_ms: int


@dataclass(frozen=True, slots=True)
class Capacities:
    """What the members of a group can process."""

    per_s: Floats
    """float64[M], in records/s; where ``known`` is False, relative to each other."""
    known: bool
    """Whether somebody's capacity is known, so that a utilisation means something."""
    proven: Bools
    """bool[M]: whose capacity was seen, and not taken from the others."""
    reliable: Bools
    """bool[M]: which of these may leave a member without a partition: it was seen to process, and lately if slow.

    A member that has stopped, or was slow long ago, gets a partition by which it can show what it can do now.
    """


class CapacityEstimates:
    """The estimates of all members, by a name that outlives their ids where they have one.

    ``slack_s`` is about the time between two commits of a member.
    """

    def __init__(self, slack_s: float = 6.0) -> None:
        self._slack_ms = slack_s * 1000
        self._longest_ms = max(_LONGEST_MS, _LONGEST_COMMITS * self._slack_ms)
        self._known: dict[str, _Known] = {}
        self._told: dict[str, tuple[float, int]] = {}
        """What members have measured of themselves, and when."""
        self._shown: dict[str, _Shown] = {}
        self._exact: dict[str, int] = {}
        """When members were last seen to process all that they can, by their notes."""
        self._off: dict[str, float] = {}
        """What members have said of themselves over what they were seen to process, where that contradicts it."""
        self._members: tuple[str, ...] = ()
        self._seen: deque[tuple[int, Floats]] = deque()
        self._lagging_since = np.empty(0)
        self._since_ms = 0
        """When the present assignment began."""

    def watch(self, members: tuple[str, ...], now_ms: int) -> None:
        """Begin anew with these members, after a rebalance: what happened during it is no measurement."""
        self._members, self._since_ms = members, now_ms
        self._begin_anew()
        there = set(members)
        for member, known in list(self._known.items()):
            if member not in there and now_ms - known.at_ms > _FORGOTTEN_MS:
                del self._known[member]
                for each in (self._told, self._shown, self._exact, self._off):
                    each.pop(member, None)

    def rescale(self, factors: Mapping[str, float]) -> None:
        """Records are counted in another unit from now on, in which each member's numbers are so many times as large.

        What was seen in the old unit is no measurement in the new one. What was learned of a member before the present
        assignment is forgotten: it may have been by other records, for which the factor is another one.
        """
        self._known = {member: known for member, known in self._known.items() if known.at_ms >= self._since_ms}
        for member, factor in factors.items():
            if member in self._known:
                known = self._known[member]
                known.per_s *= factor
                known.least_per_s *= factor
                known.most_per_s *= factor
        self._told.clear()
        self._shown.clear()
        self._exact.clear()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._seen.clear()
        self._lagging_since = np.full(len(self._members), math.nan)

    def measured(self, member: str, per_s: float, now_ms: int) -> None:
        """Take in what a member has measured of itself while it was busy, as far as the group's commits bear it out.

        It is corrected by what the member was seen to do when it fell behind. Where it never has, it is by what the
        others were: they are mostly of the same program.
        """
        if per_s > 0:
            per_s = min(per_s, LARGEST) / self._off_by(member)
            known = self._known.get(member)
            if known is not None and known.proven and known.at_ms - now_ms > _RECENT_MS:
                return  # it was told long before what is known was learned
            self._told[member] = per_s, now_ms
            shown = self._shown.get(member)
            if shown is not None and now_ms - shown.at_ms <= _RECENT_MS:
                per_s = min(max(per_s, shown.least_per_s), shown.most_per_s)
            self._known[member] = _Known.exactly(per_s, 1.0, now_ms)

    def seen(self, member: str, pace: Pace, now_ms: int) -> None:
        """A member that falls behind processes so much: that is its capacity, whatever it says."""
        said = self._told.get(member)
        if said is not None:
            each = said[0] * self._off_by(member)
            if pace.least_per_s <= each <= pace.most_per_s:
                self._off.pop(member, None)
            elif pace.per_s > 0:
                self._off[member] = each / pace.per_s
                self._told[member] = pace.per_s, said[1]
        self._exact[member] = now_ms
        self._show(member, pace.per_s, _Shown(pace.least_per_s, pace.most_per_s, now_ms))

    def _off_by(self, member: str) -> float:
        others = self._off.get(member)
        return float(np.median([*self._off.values()])) if others is None and self._off else others or 1.0

    def recalled(self, member: str, per_s: float, now_ms: int, *, instead: bool = False) -> None:
        """Take in what an earlier leader had learned of a member, unless more is known.

        ``instead`` of what is known, where that leader has led since it was learned.
        """
        if per_s > 0 and (instead or member not in self._known):
            self._known[member] = _Known.exactly(per_s, _RECALLED, now_ms)

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
        while len(self._seen) > 2 and now_ms - self._seen[1][0] >= self._longest_ms:
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
        # Before and after the time there may be as much that was processed and is not committed, or was earlier.
        least = max(per_s, 0.0) * watched_ms / (watched_ms + self._slack_ms)
        most = max(per_s, 0.0) * watched_ms / max(watched_ms - self._slack_ms, 1.0)
        if now_ms - self._exact.get(member, -_RECENT_MS) < _RECENT_MS:
            return  # what its commits show without its notes is less precise
        if saturated:
            self._show(member, max(per_s, 0.0), _Shown(least, most, now_ms))
        elif known is None or not known.proven:
            if known is None or per_s > known.per_s:
                self._known[member] = _Known(per_s, 0.0, now_ms, False, least, math.inf)
        elif least > known.per_s:
            # That is no new measurement, so it is as old as the one before.
            self._known[member] = _Known(per_s, known.trust, known.at_ms, True, least, max(most, known.most_per_s))

    def _show(self, member: str, per_s: float, shown: _Shown) -> None:
        """A member with a backlog has processed so much: no less and no more than that, but for a commit."""
        self._shown[member] = shown
        told = self._told.get(member)
        if told is not None and shown.at_ms - told[1] <= _RECENT_MS:
            per_s = min(max(told[0], shown.least_per_s), shown.most_per_s)
            self._known[member] = _Known.exactly(per_s, 1.0, shown.at_ms)
            return
        least, most = shown.least_per_s, shown.most_per_s
        known = self._known.get(member)
        if known is not None and known.proven and known.least_per_s <= most and least <= known.most_per_s:
            # Soon after an assignment little is seen. What is known agrees with it, and is known better.
            least, most = max(least, known.least_per_s), min(most, known.most_per_s)
        self._known[member] = _Known(min(max(per_s, least), most), 1.0, shown.at_ms, True, least, most)

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
        # Who has a backlog and processes nothing has stopped, or does not commit: it is no measure for the others.
        working = proven & (per_unit > 0)
        if not working.any():
            most = float(per_unit.max(initial=0.0)) if np.isfinite(self._lagging_since).any() else 0.0
            # Whoever falls behind shows soon what it can do. Until then, members can do what the best of them has done.
            guessed = _bounded(np.where(given > 0, given, 1.0) * (most or 1.0))
            return Capacities(guessed, known=most > 0, proven=proven, reliable=working)
        unit = np.where(given > 0, given, 1.0)
        lower = np.array([0.0 if each is None else each.least_per_s for each in known]) / unit
        upper = np.array([0.0 if each is None else each.most_per_s for each in known]) / unit
        median, covered = _median(per_unit[working], lower[working], upper[working])
        bounds = per_unit[~proven]
        if len(bounds) and float(np.median(lower[~proven])) > covered:
            # Only slow members have shown their capacity. The others keep up with more, and so can do more than that.
            median = float(np.median(bounds)) / _USED
        ratio = np.ones(len(members))
        for number, each in enumerate(known):
            if each is not None and each.proven and given[number] == 0:
                ratio[number] = _ratio(each, median, now_ms)
        per_s = _bounded(np.where(given > 0, given, ratio) * median)
        at_ms = np.array([now_ms if each is None else each.at_ms for each in known])
        recent = (ratio >= 1) | (now_ms - at_ms < _HALF_LIFE_MS)
        return Capacities(per_s, known=True, proven=proven, reliable=working & recent)


def _median(per_s: Floats, least: Floats, most: Floats) -> tuple[float, float]:
    """The capacity that most members may have, near the median, and the largest one that as many may have.

    ``least`` and ``most`` are the bounds of what is known of each, float64[n] like ``per_s``.
    """
    middle = max(float(np.median(per_s)), _SMALLEST)
    candidates = np.clip(np.concatenate([[middle], least, most]), float(np.median(least)), float(np.median(most)))
    # Rounding must not take a candidate out of the bounds that it was made of.
    wide = 1 + _ROUNDING
    starts, ends = np.sort(least / wide), np.sort(most * wide)
    members = np.searchsorted(starts, candidates, side="right") - np.searchsorted(ends, candidates, side="left")
    best = np.maximum(candidates[members == members.max()], _SMALLEST)
    return float(best[np.argmin(np.abs(np.log(best / middle)))]), float(best.max())


def _bounded(per_s: Floats) -> Floats:
    """What a group takes as capacities: members may tell numbers whose products it does not take."""
    return np.clip(per_s, SMALLEST_CAPACITY, LARGEST)


def _ratio(known: _Known, median: float, now_ms: int) -> float:
    if known.least_per_s < median * _NEARLY and median < known.most_per_s * _NEARLY:
        return 1.0
    ratio = min(max(known.per_s / median, 1 / _FURTHEST), _FURTHEST)
    trust = known.trust
    if ratio < 1:
        trust *= 0.5 ** ((now_ms - known.at_ms) / _HALF_LIFE_MS)
    octaves = math.log2(ratio) * trust
    if abs(octaves) < _TWINS:
        return 1.0
    return float(2.0 ** (round(octaves * _STEPS_PER_OCTAVE) / _STEPS_PER_OCTAVE))
