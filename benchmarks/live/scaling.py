"""`python -m benchmarks.live.scaling`: a group that is scaled over a day, by what its leader asks for and by its lag.

Kubernetes' autoscaler looks every 15 seconds and ignores changes of less than a tenth; a new member is there half a
minute later. KEDA's Kafka scaler asks for the whole lag over a threshold, and shrinks after five minutes that ask for
less. The arrivals of 36 partitions rise and fall over the day, and double for ten minutes at times.
"""

from __future__ import annotations

import argparse
import math
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from benchmarks.live.play import SimulatedGroup
from benchmarks.live.policies import Live
from benchmarks.live.scenes import DAY_S, equal_members
from benchmarks.live.world import Piece, Scene, zipf

_SPEED = 600.0
_PARTITIONS = 36
_LOOKS_S, _STARTS_S, _TOLERANCE = 15, 30, 0.1
_FIRST = 6


Scaler = Callable[[Live, float, int], int | None]
"""How many members a group with so much lag should have at a time; None: as many as it has."""


def by_the_leader(policy: Live, _lag: float, _now_s: int) -> int | None:
    """Do what the leader asks for, as examples/kubernetes/scaledobject.yaml."""
    return policy.wanted


def by_lag(threshold: float) -> Scaler:
    """KEDA's Kafka scaler: a member for each so many records of lag; the most that was asked for in five minutes."""
    asked = deque[tuple[int, int]]()

    def members(_policy: Live, lag: float, now_s: int) -> int:
        asked.append((now_s, min(max(math.ceil(lag / threshold), 1), _PARTITIONS)))
        while asked[0][0] < now_s - 300:
            asked.popleft()
        return max(each for _, each in asked)

    return members


class ScaledGroup(SimulatedGroup):
    """A group whose members a scaler starts and ends."""

    def __init__(self, scene: Scene, policy: Live, seed: int, scaler: Scaler) -> None:
        super().__init__(scene, policy, seed)
        self.scalings = 0
        self._live, self._scaler = policy, scaler
        self._there = self._wanted = _FIRST
        self._changes: list[tuple[int, int]] = []
        self._looks_s = 0

    def _begin(self, piece: Piece, now_s: int) -> bool:
        while self._changes and self._changes[0][0] <= now_s:
            self._there = self._changes.pop(0)[1]
        return super()._begin(replace(piece, capacity=equal_members(self._there, _SPEED)), now_s)

    def _read(self, now_s: int) -> None:
        super()._read(now_s)
        if now_s < self._looks_s:
            return
        self._looks_s = now_s + _LOOKS_S
        asked = self._scaler(self._live, float((self._end - self._committed).sum()), now_s)
        if asked is None or abs(asked / self._wanted - 1) <= _TOLERANCE:
            return
        at_s = now_s + (_STARTS_S if asked > self._wanted else 1)
        self.scalings, self._wanted = self.scalings + 1, asked
        self._changes = [*(change for change in self._changes if change[0] < at_s), (at_s, asked)]
        rates = next(piece.rates for piece in reversed(self._scene.pieces) if piece.start_s <= at_s)
        pieces = list(self._pieces)
        insort(pieces, Piece(start_s=at_s, rates=rates, capacity={}), key=lambda piece: piece.start_s)
        self._pieces = deque(pieces)


def scene(seed: int, hours: float) -> Scene:
    """A day: few records at night, many at noon, and four rushes."""
    rng = np.random.default_rng(seed)
    shares = zipf(_PARTITIONS, 1.0, 0.5, rng)
    rushes = [int(at) for at in rng.integers(0, DAY_S - 600, 4)]
    pieces = []
    for at in range(0, round(hours * 3600), 300):
        total = 2400 - 1800 * math.cos(2 * math.pi * at / DAY_S)
        total *= 2 if any(rush <= at < rush + 600 for rush in rushes) else 1
        pieces.append(Piece(start_s=at, rates={"t": shares * total}, capacity={}))
    return Scene(name="scaled", pieces=tuple(pieces), end_s=round(hours * 3600), noise=4.0)


def lines(seed: int, hours: float) -> Iterator[str]:
    """The table."""
    yield f"{'scaled by':26} {'overloaded member-s':>20} {'member-hours':>13} {'scalings':>9} {'worst lag, s':>13}"
    scalers: dict[str, Scaler] = {"loadwise_members_wanted": by_the_leader}
    scalers |= {f"KEDA, lagThreshold {threshold:,}": by_lag(threshold) for threshold in (10, 1000, 3000)}
    for name, scaler in scalers.items():
        group = ScaledGroup(scene(seed, hours), Live(), seed, scaler)
        group.run()
        outcome = group.outcome
        yield (
            f"{name:26} {sum(outcome.overloaded):20,} {outcome.member_seconds / 3600:13,.0f} {group.scalings:9}"
            f" {max(outcome.lag_s):13.1f}"
        )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.scaling", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=24.0)
    args = parser.parse_args()
    for line in lines(args.seed, args.hours):
        print(line, flush=True)


if __name__ == "__main__":
    main()
