"""All ways to place each partition, and what is found by trying them: for clusters of few partitions. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from loadwise.balance.bounds import LEAST, Bounds
from loadwise.balance.placement import Placement
from loadwise.balance.rows import NONE, Floats, Rows

_LEAST_WIDTH, _MOST_WIDTH = 50, 300
"""How many unfinished placements a beam keeps."""
_PRICES, _FEW_PRICES = (1.0, 0.5, 0.25, 0.12), (0.5, 0.12)
"""What moving all bytes costs, in units of excess of a broker; the few are for clusters with more to try."""
_MANY = 2_000_000
"""Ways to place pairs of partitions."""
_STEPS = 1_500_000
"""How many loads of brokers a beam computes at most; it becomes narrower for that."""
_A_CHANGE = 1e-6
"""What a changed partition costs, in shares of bytes: of plans that move as much, that with fewer changes is better."""


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
        copies = (start.before != NONE).sum(axis=1)
        total = max(float((start.size * copies).sum()), 1.0)
        self._ways = [_ways(start, partition, total) for partition in range(len(copies))]
        brokers = max(len(start.load), 1)
        computed = brokers * sum(len(each.cost) for each in self._ways)
        self._width = min(max(_STEPS // computed, _LEAST_WIDTH), _MOST_WIDTH)
        weight = (start.leader / np.maximum(start.leader.sum(axis=0), LEAST)).max(axis=1)
        self.orders: tuple[Rows, ...] = (np.argsort(-weight), np.argsort(weight), np.argsort(-start.size))
        """Of partitions: the heaviest first, the heaviest last, the largest first."""
        self.prices = tuple(brokers * price for price in (_PRICES if tried(start) <= _MANY else _FEW_PRICES))
        """What the share of all bytes costs, in units of excess."""

    def improve(self, placement: Placement, bounds: Bounds) -> None:
        """Place two partitions at a time again while that leaves less excess, or as much and moves less data."""
        ways = self._ways
        now = [each.like(row) for each, row in zip(ways, placement.replicas, strict=True)]
        price, pairs = self.prices[-1] / 100, list(combinations(range(len(ways)), 2))
        left = len(pairs)
        while left:
            for one, other in pairs:
                left -= 1
                a, b = ways[one], ways[other]
                rest = placement.load - a.load[now[one]] - b.load[now[other]]
                total = bounds.total_excess((rest + a.load)[:, None] + b.load)
                total += price * (a.cost[:, None] + b.cost)
                first, second = divmod(int(total.argmin()), len(b.cost))
                if total[first, second] < total[now[one], now[other]] - LEAST:
                    left = len(pairs)
                    now[one], now[other] = first, second
                    placement.put(one, a.replicas[first])
                    placement.put(other, b.replicas[second])
                if not left:
                    break

    def beam(self, start: Placement, bounds: Bounds, order: Rows, price: float) -> Placement:
        """Place all partitions again, one after the other: later ones count with their initial placement.

        Of all placements up to here, those with the least excess and cost, at its price, are followed further.
        """
        load, cost, width = start.load[None], np.zeros(1), self._width
        taken = np.zeros((1, 0), np.intp)
        for partition in order:
            ways = self._ways[partition]
            now = ways.like(start.replicas[partition])
            then, costs = load[:, None] + (ways.load - ways.load[now]), cost[:, None] + ways.cost - ways.cost[now]
            total = (bounds.total_excess(then) + price * costs).ravel()
            kept = np.argpartition(total, width)[:width] if len(total) > width else np.arange(len(total))
            before, way = np.divmod(kept, len(ways.cost))
            load, cost = then[before, way], costs[before, way]
            taken = np.hstack([taken[before], way[:, None]])
        excess = np.maximum(bounds.total_excess(load) - LEAST, 0.0)
        best = np.lexsort((cost, excess))[0]
        placement = start.copy()
        for partition, way in zip(order.tolist(), taken[best], strict=True):
            placement.put(partition, self._ways[partition].replicas[way])
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
    replicas = replicas[[start.keeps_racks(partition, row) for row in replicas]]
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
