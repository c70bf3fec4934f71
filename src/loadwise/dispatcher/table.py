"""The table of one topic: which broker gets the next batch, and in which of its partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from loadwise.dispatcher.acknowledgements import Moment
from loadwise.dispatcher.rounds import SmoothRoundRobin

NO_LEADER = -1
"""The leader of a partition that has none, or whose leader is unknown."""

_LEAST_SHARE = 1e-3
"""Share of the best weight that every broker gets: its acknowledgements are how a slow one comes back."""

_MOST_TIMES = 3.0
"""A partition gets at most this many times the mean, while no broker is slow: its consumer must keep up with it."""


@dataclass(slots=True, eq=False)
class Table:
    """The brokers that lead partitions of a topic, each with its weight."""

    partitions: Mapping[int, Sequence[int]]
    """The partitions that each broker leads."""
    weights: Mapping[int, float]
    """The weight of each broker, above 0."""
    rounds: SmoothRoundRobin = field(default_factory=SmoothRoundRobin)
    places: dict[int, int] = field(default_factory=dict)
    """How many turns each broker had: the next one goes to the partition after the last."""

    def shares(self, now: Moment) -> dict[int, float]:
        """Return the weights of the next turn.

        The more batches wait for a broker, the less is its share (by the square), so that a broker that was just slowed
        gets little before the next table knows it. A slow one gets a few records, and a silent one none.
        """
        found = {}
        for node, weight in self.weights.items():
            share = weight / (1 + now.waiting[node]) ** 2
            found[node] = 0.0 if node in now.silent else share * _LEAST_SHARE if node in now.slow else share
        return found

    def next(self, shares: Mapping[int, float]) -> int:
        """Return the broker of the next turn."""
        return self.rounds.next(shares)

    def charge(self, node: int, cost: float, shares: Mapping[int, float]) -> None:
        """Account for a turn of a broker, by the share of a batch that was filled."""
        self.rounds.charge(node, cost, shares)

    def best(self, now: Moment) -> int:
        """Return a partition of the broker with the highest weight of those that answer."""
        able = [node for node in self.weights if node not in now.silent]
        return self.partition(max(able, key=lambda node: (node not in now.slow, self.weights[node])))

    def partition(self, node: int) -> int:
        """Return the next partition of a broker."""
        mine = self.partitions[node]
        turn = self.places.get(node, 0)
        self.places[node] = turn + 1
        return mine[turn % len(mine)]


def table_of(
    leaders: Mapping[int, int],
    scores: Mapping[int, float] | None = None,
    *,
    slow: Set[int] = frozenset(),
    last: Table | None = None,
) -> Table:
    """Return the table for the leader of each partition and the score of each broker; ``last`` is the one before.

    Without scores a broker's weight is the number of its partitions, which is round robin over partitions. Otherwise it
    is the score, less if a broker leads few of the partitions that no ``slow`` one leads. If no partition has a leader,
    all of them are those of one broker, `NO_LEADER`.
    """
    led = {partition: leader for partition, leader in leaders.items() if leader != NO_LEADER} or leaders
    partitions: dict[int, list[int]] = {}
    for partition, leader in sorted(led.items()):
        partitions.setdefault(leader, []).append(partition)
    counts = {node: len(mine) for node, mine in partitions.items()}
    best = max(scores.get(node, 0.0) for node in partitions) if scores else 0.0
    if not scores or best <= 0:
        weights = {node: float(count) for node, count in counts.items()}
    else:
        weights = {node: max(scores.get(node, 0.0), best * _LEAST_SHARE) for node in partitions}
        weights |= _limited({node: weight for node, weight in weights.items() if node not in slow}, counts)
    return Table(partitions, weights) if last is None else Table(partitions, weights, last.rounds, last.places)


def _limited(weights: Mapping[int, float], counts: Mapping[int, int]) -> dict[int, float]:
    """Lower the weights of brokers whose partitions would each get too much, and give the rest to the others."""
    found: dict[int, float] = {}
    free = dict(weights)
    whole = left = sum(weights.values())
    led = sum(counts[node] for node in weights)
    while free:
        total = sum(free.values())
        shares = {node: weight / total * left for node, weight in free.items()}
        most = {node: whole * _MOST_TIMES * counts[node] / led for node in free}
        over = [node for node in free if shares[node] > most[node]]
        if not over:
            return found | shares
        for node in over:
            found[node] = most[node]
            left -= most[node]
            del free[node]
    return found
