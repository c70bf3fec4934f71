"""What can be reached within the budget: an assignor that knows the whole day, but may act no more often than loadwise.

It reads as often, each of its rebalances stops the group as long, and it asks for no more of them in any hour. When to
ask is planned ahead by dynamic programming over the pieces of the scene: a plan is the set of pieces at whose beginning
the group is assigned by what is true then, and the cost is the highest utilisation, counted as 0.7 at least, and each
member above 1, over time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.live.figures import HEALTHY
from benchmarks.live.policies import AllKnowing, Reading
from benchmarks.live.world import Piece, Scene
from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.model import Floats, GroupSnapshot, Member, Owners

_HOUR_S = 3600
_MOST_PIECES_PER_HOUR = 20


class Planned(AllKnowing):
    """Knows everything, and has the same budget as loadwise."""

    free = False

    def __init__(self, most_per_hour: int = LiveSettings().most_per_hour) -> None:
        super().__init__()
        self.name = f"all-knowing, {most_per_hour} an hour"
        self._most = most_per_hour
        self._acts: frozenset[int] = frozenset()

    def begin(self, scene: Scene, minute_ago: Reading) -> None:
        """Plan the day."""
        super().begin(scene, minute_ago)
        self._acts = plan(scene, self._most)

    def changed(self, now_s: int) -> None:
        """Rebalance at the next reading, where that was planned."""
        self._changed = self._changed or now_s in self._acts


def can_plan(scene: Scene) -> bool:
    """Whether conditions change so rarely that all plans can be looked at."""
    return len(scene.pieces) <= _MOST_PIECES_PER_HOUR * max(scene.end_s / _HOUR_S, 1)


def plan(scene: Scene, most_per_hour: int) -> frozenset[int]:
    """The seconds at which to assign the group anew: the cheapest ones of which no hour has more than that many."""
    pieces = scene.pieces
    ends = [piece.start_s for piece in pieces[1:]] + [scene.end_s]
    targets = [_target(scene, piece) for piece in pieces]
    # By the piece whose assignment is in force, and the acts of the last hour: the cost so far and all acts.
    states: dict[tuple[int, tuple[int, ...]], tuple[float, tuple[int, ...]]] = {(0, ()): (0.0, ())}
    for number, (piece, end_s) in enumerate(zip(pieces, ends, strict=True)):
        seconds, now_s = end_s - piece.start_s, piece.start_s
        joins = number > 0 and _joins(pieces[number - 1], piece)
        following: dict[tuple[int, tuple[int, ...]], tuple[float, tuple[int, ...]]] = {}
        costs: dict[int, float] = {}
        for (force, recent), (cost, acts) in states.items():
            left = tuple(at for at in recent if now_s - at < _HOUR_S)
            choices = [(number if joins else force, left, acts)]
            if number and not joins and len(left) < most_per_hour:
                choices.append((number, (*left, now_s), (*acts, now_s)))
            for chosen, acted, all_acts in choices:
                if chosen not in costs:
                    costs[chosen] = _cost_a_second(scene, piece, targets[chosen])
                total = cost + seconds * costs[chosen]
                if total < following.get((chosen, acted), (float("inf"), ()))[0]:
                    following[chosen, acted] = total, all_acts
        states = following
    return frozenset(min(states.values())[1])


def _joins(before: Piece, piece: Piece) -> bool:
    """Whether the group is assigned anew whatever anybody wants."""
    there, now = ({topic: len(rates) for topic, rates in each.rates.items()} for each in (before, piece))
    return before.capacity.keys() != piece.capacity.keys() or there != now


def _target(scene: Scene, piece: Piece) -> tuple[Sequence[str], Owners]:
    members = [
        Member(id=name, topics=sorted(piece.subscriptions.get(name, scene.sizes)), capacity=capacity)
        for name, capacity in piece.capacity.items()
    ]
    group = GroupSnapshot.of(members, scene.sizes, load=_work(scene, piece))
    return group.members, Weighted(epsilon=0.0, trigger=0.0).assign(group).owner


def _cost_a_second(scene: Scene, piece: Piece, target: tuple[Sequence[str], Owners]) -> float:
    members, owner = target
    work = _work(scene, piece)
    load = np.bincount(owner, np.concatenate([work[topic] for topic in sorted(work)]), len(members))
    used = load / np.array([piece.capacity.get(member, np.inf) for member in members])
    return max(float(used.max()), HEALTHY) + float((used > 1).sum())


def _work(scene: Scene, piece: Piece) -> dict[str, Floats]:
    return {
        topic: np.pad(rates, (0, size - len(rates))) * piece.cost.get(topic, 1.0)
        for topic, size in scene.sizes.items()
        for rates in [piece.rates.get(topic, np.zeros(0))]
    }
