"""Capacity: what the members of a group can process, from what is known of each of them.

Who may be as fast as the median of the group is taken to be, so that identical machines come out as identical. An
estimate below the median that nothing confirms goes back to it with time: a machine that was slow once is tried again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadwise.assignor.live.tuning import CapacityTuning
from loadwise.assignor.model import LARGEST, SMALLEST_CAPACITY, Bools, Floats

_SMALLEST, _ROUNDING = 1e-9, 1e-9


@dataclass(frozen=True, slots=True)
class Known:
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
    def exactly(cls, per_s: float, trust: float, at_ms: int) -> Known:
        """What somebody has measured."""
        return cls(per_s, trust, at_ms, proven=True, least_per_s=per_s, most_per_s=per_s)

    def times(self, by: float) -> Known:
        """The same in a unit in which the numbers are so many times as large."""
        return replace(self, per_s=by * self.per_s, least_per_s=by * self.least_per_s, most_per_s=by * self.most_per_s)


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

    @property
    def total_per_s(self) -> float | None:
        """All of them together; None where it is not known."""
        return float(self.per_s.sum()) if self.known else None


def capacities(
    known: Sequence[Known | None], given: Floats, tuning: CapacityTuning, now_ms: int, *, falls_behind: bool
) -> Capacities:
    """The capacities of members; ``given`` is what users gave in relation to the others, 0 where nothing.

    A given capacity stands. The others are relative to the median of what is known. ``falls_behind``: a member has a
    backlog right now.
    """
    proven = np.array([each is not None and each.proven for each in known], bool)
    unit = np.where(given > 0, given, 1.0)
    fields = [(0.0, 0.0, 0.0) if each is None else (each.per_s, each.least_per_s, each.most_per_s) for each in known]
    per_unit, lower, upper = np.array(fields, np.float64).reshape(-1, 3).T / unit
    # Who has a backlog and processes nothing has stopped, or does not commit: it is no measure for the others.
    working = proven & (per_unit > 0)
    if not working.any():
        most = float(per_unit.max(initial=0.0)) if falls_behind else 0.0
        # Whoever falls behind shows soon what it can do. Until then, members can do what the best of them has done.
        return Capacities(_bounded(unit * (most or 1.0)), known=most > 0, proven=proven, reliable=working)
    median, covered = _median(per_unit[working], lower[working], upper[working], within=2.0**tuning.measured_within)
    bounds = per_unit[~proven]
    if len(bounds) and float(np.median(lower[~proven])) > covered:
        # Only slow members have shown their capacity. The others keep up with more, and so can do more than that.
        median = float(np.median(bounds)) / tuning.used
    ratio = np.ones(len(known))
    for number, each in enumerate(known):
        if each is not None and each.proven and given[number] == 0:
            ratio[number] = _ratio(each, median, tuning, now_ms)
    per_s = _bounded(np.where(given > 0, given, ratio) * median)
    at_ms = np.array([now_ms if each is None else each.at_ms for each in known])
    recent = (ratio >= 1) | (now_ms - at_ms < tuning.half_life_ms)
    return Capacities(per_s, known=True, proven=proven, reliable=working & recent)


def _median(per_s: Floats, least: Floats, most: Floats, *, within: float) -> tuple[float, float]:
    """The capacity that most members may have, near the median, and the largest one that as many may have.

    ``least`` and ``most`` are the bounds of what is known of each, float64[n] like ``per_s``; these may be this many
    times too small or too large: what a member has measured of itself has no bounds.
    """
    middle = float(np.median(per_s))
    least, most = np.minimum(least, per_s / within), np.maximum(most, per_s * within)
    candidates = np.clip(np.concatenate([[middle], least, most]), float(np.median(least)), float(np.median(most)))
    # Rounding must not take a candidate out of the bounds that it was made of.
    wide = 1 + _ROUNDING
    starts, ends = np.sort(least / wide), np.sort(most * wide)
    members = np.searchsorted(starts, candidates, side="right") - np.searchsorted(ends, candidates, side="left")
    best = np.maximum(candidates[members == members.max()], _SMALLEST)
    nearest = float(best[np.argmin(np.abs(np.log(best / max(middle, _SMALLEST))))])
    alike = (least / wide <= nearest) & (nearest <= most * wide)
    if alike.any():  # what those have that may have it, and not the end of a bound
        nearest = min(max(float(np.median(per_s[alike])), float(least[alike].max())), float(most[alike].min()))
    return max(nearest, _SMALLEST), float(best.max())


def _bounded(per_s: Floats) -> Floats:
    """What a group takes as capacities: members may tell numbers whose products it does not take."""
    return np.clip(per_s, SMALLEST_CAPACITY, LARGEST)


def _ratio(known: Known, median: float, tuning: CapacityTuning, now_ms: int) -> float:
    nearly: float = 2.0**tuning.twins
    if known.least_per_s < median * nearly and median < known.most_per_s * nearly:
        return 1.0
    ratio = min(max(known.per_s / median, 1 / tuning.furthest), tuning.furthest)
    trust = known.trust
    if ratio < 1:
        trust *= 0.5 ** ((now_ms - known.at_ms) / tuning.half_life_ms)
    octaves = math.log2(ratio) * trust
    return 1.0 if abs(octaves) < tuning.twins else 2.0**octaves
