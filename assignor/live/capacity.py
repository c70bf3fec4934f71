"""Capacity: the estimate of each member, or the median if it may be as fast, so that identical machines stay equal.

An unconfirmed estimate below the median returns to it with time, so that a machine that was slow once is tried again.
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
    """The estimate of one member's capacity."""

    per_s: float
    at_ms: int
    proven: bool
    """Whether it is a capacity, not only a lower bound."""
    least_per_s: float
    most_per_s: float
    """Bounds of an estimate from commits; both equal ``per_s`` if the member reported it."""

    @classmethod
    def exactly(cls, per_s: float, at_ms: int) -> Known:
        """Return an estimate without bounds, from a measurement."""
        return cls(per_s, at_ms, proven=True, least_per_s=per_s, most_per_s=per_s)

    def times(self, by: float) -> Known:
        """Return the estimate in a unit in which numbers are ``by`` times as large."""
        return replace(self, per_s=by * self.per_s, least_per_s=by * self.least_per_s, most_per_s=by * self.most_per_s)


@dataclass(frozen=True, slots=True)
class Capacities:
    """The capacities of the members of a group."""

    per_s: Floats
    """float64[M], in records/s; relative to each other if ``known`` is False."""
    known: bool
    """Whether a member's capacity is known, so that utilisation is meaningful."""
    proven: Bools
    """bool[M]: members whose own capacity was measured, not derived from other members."""
    reliable: Bools
    """bool[M]: capacities that may leave a member without a partition: it was seen to process, and lately if slow.

    A member that has stopped, or was slow long ago, gets a partition, which shows its present capacity.
    """

    @property
    def total_per_s(self) -> float | None:
        """The sum of all capacities; None if unknown."""
        return float(self.per_s.sum()) if self.known else None


def capacities(
    known: Sequence[Known | None], given: Floats, tuning: CapacityTuning, now_ms: int, *, falls_behind: bool
) -> Capacities:
    """Return the capacities of members; ``given`` by users, relative, or 0; ``falls_behind``: one has a backlog."""
    proven = np.array([each is not None and each.proven for each in known], bool)
    unit = np.where(given > 0, given, 1.0)
    fields = [(0.0, 0.0, 0.0) if each is None else (each.per_s, each.least_per_s, each.most_per_s) for each in known]
    per_unit, lower, upper = np.array(fields, np.float64).reshape(-1, 3).T / unit
    # A member that processes nothing of its backlog has stopped, or does not commit: do not compare others with it.
    working = proven & (per_unit > 0)
    if not working.any():
        most = float(per_unit.max(initial=0.0)) if falls_behind else 0.0
        # A member that falls behind soon shows its capacity. Until then, assume the best rate seen for every member.
        return Capacities(_bounded(unit * (most or 1.0)), known=most > 0, proven=proven, reliable=working)
    median, covered = _median(per_unit[working], lower[working], upper[working], within=2.0**tuning.measured_within)
    bounds = per_unit[~proven]
    if len(bounds) and float(np.median(lower[~proven])) > covered:
        # Only slow members have shown their capacity. The others keep up with more, so their capacity is larger.
        median = float(np.median(bounds)) / tuning.used
    ratio = np.ones(len(known))
    for number, each in enumerate(known):
        if each is not None and each.proven and given[number] == 0:
            ratio[number] = _ratio(each, median, tuning, now_ms)
    per_s = _bounded(np.where(given > 0, given, ratio) * median)
    at_ms = np.array([now_ms if each is None else each.at_ms for each in known])
    recent = (per_unit >= median) | (now_ms - at_ms < tuning.half_life_ms)
    return Capacities(per_s, known=True, proven=proven, reliable=working & recent)


def _median(per_s: Floats, least: Floats, most: Floats, *, within: float) -> tuple[float, float]:
    """Return the capacity near the median that most members may have, and the largest one that as many may have.

    ``least`` and ``most``, float64[n], bound each estimate. They are widened to at least a factor of ``within``:
    a member's own measurement has no bounds.
    """
    middle = float(np.median(per_s))
    least, most = np.minimum(least, per_s / within), np.maximum(most, per_s * within)
    candidates = np.clip(np.concatenate([[middle], least, most]), float(np.median(least)), float(np.median(most)))
    # Rounding must not put a candidate outside the bounds that it comes from.
    wide = 1 + _ROUNDING
    starts, ends = np.sort(least / wide), np.sort(most * wide)
    members = np.searchsorted(starts, candidates, side="right") - np.searchsorted(ends, candidates, side="left")
    best = np.maximum(candidates[members == members.max()], _SMALLEST)
    nearest = float(best[np.argmin(np.abs(np.log(best / max(middle, _SMALLEST))))])
    alike = (least / wide <= nearest) & (nearest <= most * wide)
    if alike.any():  # the median of the members that may have it, not the end of a bound
        nearest = min(max(float(np.median(per_s[alike])), float(least[alike].max())), float(most[alike].min()))
    return max(nearest, _SMALLEST), float(best.max())


def _bounded(per_s: Floats) -> Floats:
    """Return capacities within a group's limits, which products of reported numbers may exceed."""
    return np.clip(per_s, SMALLEST_CAPACITY, LARGEST)


def _ratio(known: Known, median: float, tuning: CapacityTuning, now_ms: int) -> float:
    nearly: float = 2.0**tuning.twins
    if known.least_per_s < median * nearly and median < known.most_per_s * nearly:
        return 1.0
    ratio = min(max(known.per_s / median, 1 / tuning.furthest), tuning.furthest)
    octaves = math.log2(ratio)
    if octaves < 0:
        octaves *= 0.5 ** ((now_ms - known.at_ms) / tuning.half_life_ms)
    return 1.0 if abs(octaves) < tuning.twins else 2.0**octaves
