"""What a played scene is measured by, beside the all-knowing assignor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.live.play import Outcome
from benchmarks.live.world import Scene

HEALTHY = 0.7
_LOOK_S = 900
_MOST_UTILISATION, _MOST_OVERLOAD, _MOST_MOVED, _LONGEST_S = 1.15, 0.02, 0.1, 60.0
"""Utilisation may be a gain higher that is no rebalance's worth (`LiveSettings.least_gain`, 0.1 above 0.7): members get
equal numbers of partitions before equal loads, and these stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One assignor in one scene."""

    ratio: float
    """Time-weighted mean of the highest utilisation, counted as 0.7 at least, over that of the all-knowing one."""
    avoidable: float
    """Seconds that members spent overloaded beyond those of the all-knowing one, as a share of all."""
    for_load: int
    """Rebalances that were asked for because of the load."""
    moved_per_s: float
    """Arrival rate of what was taken from members that stayed, added up over the day."""
    recovered_s: float
    """The longest time after a shift until the worst lag was below one second of traffic for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One assignor in one scene, drawn from several seeds: medians, and what the worst seed had."""

    ratio: float
    worst_ratio: float
    avoidable: float
    worst_avoidable: float
    for_load: float
    worst_for_load: int
    moved_of_greedy: float
    """The load moved by all seeds, over that of the greedy assignor; NaN where that was not played."""
    recovered_s: float
    """The longest of all seeds."""


def summary(seeds: Sequence[Figures], greedy: Sequence[Figures]) -> Summary:
    """The figures of several seeds, and those of the greedy assignor in the same."""
    moved, most = sum(it.moved_per_s for it in seeds), sum(it.moved_per_s for it in greedy)
    return Summary(
        ratio=median(it.ratio for it in seeds),
        worst_ratio=max(it.ratio for it in seeds),
        avoidable=median(it.avoidable for it in seeds),
        worst_avoidable=max(it.avoidable for it in seeds),
        for_load=median(it.for_load for it in seeds),
        worst_for_load=max(it.for_load for it in seeds),
        moved_of_greedy=moved / most if most else float(moved > 0) if greedy else math.nan,
        recovered_s=max(it.recovered_s for it in seeds),
    )


def missed(it: Summary, *, steady: bool) -> Iterator[str]:
    """The goals that an assignor misses in a scene, also those that it misses with the worst seed only.

    ``steady`` is whether nothing but chance changes there: then no rebalance is to be asked for.
    """
    if it.worst_ratio > _MOST_UTILISATION:
        yield f"utilisation {it.ratio:.3f}, worst {it.worst_ratio:.3f}: more than {_MOST_UTILISATION:.2f}"
    if it.worst_avoidable > _MOST_OVERLOAD:
        yield f"overload {it.avoidable:.2%}, worst {it.worst_avoidable:.2%}: more than {_MOST_OVERLOAD:.0%}"
    if it.moved_of_greedy > _MOST_MOVED:
        yield f"moved {it.moved_of_greedy:.2%} of what greedy moves: more than {_MOST_MOVED:.0%}"
    if it.recovered_s > _LONGEST_S:
        yield f"back after {it.recovered_s:.0f} s: more than {_LONGEST_S:.0f} s"
    if steady and it.worst_for_load:
        yield f"{it.worst_for_load} rebalances for the load: more than 0"


def figures(scene: Scene, outcome: Outcome, best: Outcome) -> Figures:
    """Measure an outcome. Shifts after which not even the all-knowing one recovers are left out."""
    worst, least = np.maximum(outcome.worst, HEALTHY), np.maximum(best.worst, HEALTHY)
    over = np.maximum(np.array(outcome.overloaded) - np.array(best.overloaded), 0)
    return Figures(
        ratio=float(worst.mean() / least.mean()),
        avoidable=float(over.sum()) / outcome.member_seconds,
        for_load=len(outcome.for_load),
        moved_per_s=outcome.moved_per_s,
        recovered_s=max(
            (
                _recovered(outcome, start, end)
                for start, end in _shifts(scene)
                if _recovered(best, start, end) < min(_LOOK_S, end - start)
            ),
            default=0.0,
        ),
    )


def _shifts(scene: Scene) -> list[tuple[int, int]]:
    starts = [piece.start_s for piece in scene.pieces] + [scene.end_s]
    return [
        (piece.start_s, min(end, piece.start_s + _LOOK_S))
        for piece, end in zip(scene.pieces, starts[1:], strict=True)
        if piece.is_shift
    ]


def _recovered(outcome: Outcome, start: int, end: int) -> float:
    late = np.flatnonzero(np.array(outcome.lag_s[start:end]) > 1)
    return float(late[-1] + 1) if len(late) else 0.0
