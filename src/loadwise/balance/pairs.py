"""Places partitions anew, two at a time: for clusters that are small enough to try all pairs. Pure."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from loadwise.balance.placement import LEAST, Placement, over
from loadwise.balance.rows import NONE, Floats, Rows

_MOST_TRIED = 2_000_000
"""Pairs of ways to place two partitions: more take longer than a person waits."""
_A_CHANGE = 1e-6
"""What a leader change costs, in bytes' share: of plans that move as many bytes, the one with fewer changes is better."""


class _Ways(NamedTuple):
    """All ways to place the replicas of a partition."""

    replicas: Rows
    """A row each."""
    load: Floats
    """What each brings to brokers and resources."""
    cost: Floats
    """The share of all bytes that moves, and a little for a changed leader."""


class Pairs:
    """Improves placements of one cluster."""

    def __init__(self, placement: Placement) -> None:
        total = max(float((placement.size * (placement.before != NONE).sum(axis=1)).sum()), 1.0)
        self._ways = [_ways(placement, partition, total) for partition in range(len(placement.before))]

    @classmethod
    def fits(cls, placement: Placement) -> bool:
        """Whether the cluster is small enough."""
        partitions, width = placement.before.shape
        ways = len(placement.load) * comb(len(placement.load) - 1, width - 1)
        return ways * ways * comb(partitions, 2) <= _MOST_TRIED

    def improve(self, placement: Placement, limit: Floats, price: float) -> None:
        """Place pairs anew while excess, and bytes at their price, become less."""
        ways = self._ways
        now = [int((each.replicas == row).all(axis=1).argmax()) for each, row in zip(ways, placement.replicas, strict=True)]
        found = True
        while found:
            found = False
            for one, other in combinations(range(len(ways)), 2):
                a, b = ways[one], ways[other]
                rest = placement.load - a.load[now[one]] - b.load[now[other]]
                total = over((rest + a.load)[:, None] + b.load, limit).sum(axis=-1)
                total += price * (a.cost[:, None] + b.cost)
                best = np.unravel_index(total.argmin(), total.shape)
                if total[best] < total[now[one], now[other]] - LEAST:
                    found = True
                    now[one], now[other] = int(best[0]), int(best[1])
                    placement.put(one, a.replicas[best[0]])
                    placement.put(other, b.replicas[best[1]])


def _ways(placement: Placement, partition: int, total_bytes: float) -> _Ways:
    before = placement.before[partition]
    width, count = len(before), int((before != NONE).sum())
    brokers = range(len(placement.load))
    rows = []
    for chosen in combinations(brokers, count):
        kept = sorted(chosen, key=lambda broker: (list(before).index(broker) if broker in before else width, broker))
        for leader in kept:
            row = [leader, *(broker for broker in kept if broker != leader)]
            rows.append(row + [NONE] * (width - count))
    replicas = np.array(rows, np.intp)
    replicas = replicas[[placement.keeps_racks(partition, row) for row in replicas]]
    load = np.zeros((len(replicas), *placement.load.shape))
    index = np.arange(len(replicas))
    load[index, replicas[:, 0]] += placement.leader[partition]
    for column in range(1, count):
        load[index, replicas[:, column]] += placement.follower[partition]
    arrived = count - (replicas[:, :count, None] == before[:count]).any(axis=2).sum(axis=1)
    cost = arrived * placement.size[partition] / total_bytes + _A_CHANGE * (replicas != before).any(axis=1)
    return _Ways(replicas, load, cost)
