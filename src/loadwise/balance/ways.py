"""All ways to place each partition, and what is found by trying them: for clusters of few partitions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple, TypeAlias

import numpy as np

from loadwise.balance.bounds import LEAST
from loadwise.balance.placement import Placement
from loadwise.balance.rows import NONE, Floats, Rows

Aim: TypeAlias = Callable[[Floats], Floats]
"""From the brokers' loads, of many placements at once, to what should be low."""

_PRICE = 0.2
"""What moving all bytes costs, in units of the aim."""
_A_CHANGE = 1e-6
"""What a changed partition costs, in shares of bytes: of plans that move as much, that with fewer changes is better."""
_CHAINS = 600
_STEPS, _MOST_STEPS = 200, 3000
"""Of annealing: for each partition, and in all."""
_HOT, _COLD = 0.3, 1e-5
"""What an accepted step may cost at first and in the end, in units of the aim."""
_ALONE = 0.5
"""Of all steps: how many place one partition, not two."""
_BEST, _TRIED = 10, 10_000_000
"""So many of the chains are followed up: fewer if there is more to try than this for all of them."""


class _Ways(NamedTuple):
    """The ways to place the replicas of a partition."""

    replicas: Rows
    """A row each."""
    load: Floats
    """What each brings to brokers and resources."""
    cost: Floats
    """The share of all bytes that moves."""

    def like(self, replicas: Rows) -> int:
        """The way that places them like this; followers may be in another order."""
        same = (self.replicas[:, 0] == replicas[0]) & (np.sort(self.replicas) == np.sort(replicas)).all(axis=1)
        return int(same.argmax())


class AllWays:
    """The ways of all partitions of one cluster."""

    def __init__(self, start: Placement) -> None:
        total = max(float((start.size * (start.before != NONE).sum(axis=1)).sum()), 1.0)
        self._ways = [_ways(start, partition, total) for partition in range(len(start.before))]
        self._best = min(max(_TRIED // tried(start), 1), _BEST)
        self._count = np.array([len(each.cost) for each in self._ways])
        self._first = np.cumsum(self._count) - self._count
        self._load = np.concatenate([each.load for each in self._ways])
        self._cost = np.concatenate([each.cost for each in self._ways])

    def annealed(self, start: Placement, aim: Aim) -> list[Placement]:
        """The best placements that simulated annealing finds.

        All chains take a step at a time: each places one or two partitions at random, and keeps that if it is better,
        or by chance.
        """
        random = np.random.default_rng(0)
        chains, partitions = np.arange(_CHAINS), len(self._ways)
        at = self._first + [each.like(row) for each, row in zip(self._ways, start.replicas, strict=True)]
        now, load = np.tile(at, (_CHAINS, 1)), np.tile(start.load, (_CHAINS, 1, 1))
        cost = np.full(_CHAINS, self._cost[at].sum())
        worth = aim(load) + _PRICE * cost
        for heat in np.geomspace(_HOT, _COLD, min(_STEPS * partitions, _MOST_STEPS)):
            one, other = random.integers(partitions, size=(2, _CHAINS))
            before, other_before = now[chains, one], now[chains, other]
            way, other_way = self._any_way(one, random), self._any_way(other, random)
            alone = (one == other) | (random.random(_CHAINS) < _ALONE)
            other_way[alone] = other_before[alone]
            then_load = load + (self._load.take(way, axis=0) - self._load.take(before, axis=0))
            then_load += self._load.take(other_way, axis=0) - self._load.take(other_before, axis=0)
            then_cost = (
                cost + (self._cost[way] - self._cost[before]) + (self._cost[other_way] - self._cost[other_before])
            )
            then_worth = aim(then_load) + _PRICE * then_cost
            kept = np.flatnonzero(then_worth - worth < random.exponential(heat, _CHAINS))
            now[kept, other[kept]] = other_way[kept]
            now[kept, one[kept]] = way[kept]
            load[kept], cost[kept], worth[kept] = then_load[kept], then_cost[kept], then_worth[kept]
        best = now[np.lexsort((cost, np.maximum(aim(load) - LEAST, 0.0)))]
        distinct = np.sort(np.unique(best, axis=0, return_index=True)[1])[: self._best]
        return [self._placement(start, best[chain] - self._first) for chain in distinct]

    def _any_way(self, partitions: Rows, random: np.random.Generator) -> Rows:
        ways: Rows = self._first[partitions] + (random.random(len(partitions)) * self._count[partitions]).astype(
            np.intp
        )
        return ways

    def improve(self, placement: Placement, aim: Aim) -> None:
        """Place two partitions at a time again while that comes nearer to the aim, or as near and moves less data."""
        ways = self._ways
        now = [each.like(row) for each, row in zip(ways, placement.replicas, strict=True)]
        price, pairs = _PRICE / 100, list(combinations(range(len(ways)), 2))
        left = len(pairs)
        while left:
            for one, other in pairs:
                left -= 1
                a, b = ways[one], ways[other]
                rest = placement.load - a.load[now[one]] - b.load[now[other]]
                total = aim((rest + a.load)[:, None] + b.load)
                total += price * (a.cost[:, None] + b.cost)
                first, second = divmod(int(total.argmin()), len(b.cost))
                if total[first, second] < total[now[one], now[other]] - LEAST:
                    left = len(pairs)
                    now[one], now[other] = first, second
                    placement.put(one, a.replicas[first])
                    placement.put(other, b.replicas[second])
                if not left:
                    break

    def _placement(self, start: Placement, chosen: Rows) -> Placement:
        placement = start.copy()
        for partition, (ways, way) in enumerate(zip(self._ways, chosen.tolist(), strict=True)):
            placement.put(partition, ways.replicas[way])
        return placement


def tried(placement: Placement) -> int:
    """How much there is to try for all pairs of partitions."""
    partitions, width = placement.before.shape
    brokers = len(placement.load)
    ways = brokers * comb(brokers - 1, width - 1)
    return comb(partitions, 2) * ways * ways * brokers


def _ways(start: Placement, partition: int, total_bytes: float) -> _Ways:
    before = start.before[partition]
    width, count = len(before), int((before != NONE).sum())
    rows = [
        _in_order(chosen, leader, before.tolist())
        for chosen in combinations(range(len(start.load)), count)
        for leader in chosen
    ]
    replicas = np.array([row + [NONE] * (width - count) for row in rows], np.intp)
    replicas = replicas[[start.permits(partition, row) for row in replicas]]
    load = np.zeros((len(replicas), *start.load.shape))
    index = np.arange(len(replicas))
    load[index, replicas[:, 0]] += start.leader[partition]
    for column in range(1, count):
        load[index, replicas[:, column]] += start.follower[partition]
    arrived = count - (replicas[:, :count, None] == before[:count]).any(axis=2).sum(axis=1)
    changed = (replicas != before).any(axis=1)
    return _Ways(replicas, load, arrived * start.size[partition] / total_bytes + _A_CHANGE * changed)


def _in_order(chosen: Sequence[int], leader: int, before: Sequence[int]) -> list[int]:
    """The leader, then the followers that stay in their order, then those that come."""
    stay = [broker for broker in before if broker in chosen and broker != leader]
    return [leader, *stay, *(broker for broker in chosen if broker not in before and broker != leader)]
