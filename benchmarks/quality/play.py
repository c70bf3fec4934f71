"""Plays a scene with each assignor: its assignment of one round is owned in the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.quality.scenes import Scene
from loadwise.assignor.measure import measure
from loadwise.assignor.model import Assignor, GroupSnapshot


@dataclass(frozen=True, slots=True)
class Score:
    """One answer in numbers."""

    ratio: float
    """Highest load in relation to capacity, over what no assignment can beat: 1 is perfect."""
    moved: float
    """Load taken from members that are still there, as a share of all load; 0 in a first round."""


def play(scene: Scene, assignor: Assignor) -> list[Score]:
    """One score a round."""
    scores: list[Score] = []
    owned: Mapping[str, dict[str, list[int]]] = {}
    for number, round_ in enumerate(scene.rounds):
        members = [
            replace(member, owned=owned.get(member.id, {}), generation=number if member.id in owned else -1)
            for member in round_.members
        ]
        group = GroupSnapshot.of(members, scene.partitions, load=round_.told, racks=scene.racks)
        answer = assignor.assign(group)
        weight = np.concatenate([round_.load[topic] for topic in group.topics])
        measured = measure(answer, load=weight)
        total = float(weight.sum()) or 1.0
        scores.append(Score(measured.max_over_bound, measured.moved_load / total))
        owned = answer.by_member()
    return scores


@dataclass(frozen=True, slots=True)
class Summary:
    """What became of one scene under one assignor, over all its seeds."""

    ratio_mean: float
    ratio_worst: float
    moved_mean: float
    """Of the rounds after the first; NaN without any."""

    @classmethod
    def of(cls, runs: Sequence[Sequence[Score]]) -> Summary:
        """Sum up runs, each a score a round."""
        ratios = [score.ratio for run in runs for score in run]
        later = [score.moved for run in runs for score in run[1:]]
        return cls(
            ratio_mean=float(np.mean(ratios)),
            ratio_worst=max(ratios),
            moved_mean=float(np.mean(later)) if later else float("nan"),
        )
