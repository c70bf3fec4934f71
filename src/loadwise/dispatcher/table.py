"""The table of one topic: which broker gets the next batch, and in which of its partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from loadwise.dispatcher.rounds import SmoothRoundRobin

NO_LEADER = -1
"""The leader of a partition that has none, or whose leader is unknown."""

_LEAST_SHARE = 1e-3
"""Share of the best weight that every broker gets: its acknowledgements are how a slow one comes back."""


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

    def shares(self, waiting: Mapping[int, int], silent: Set[int]) -> dict[int, float]:
        """Return the weights of the next turn.

        The more batches wait for a broker, the less is its share (by the square), so that a broker that was just slowed
        gets little before the next table knows it. A silent broker has none.
        """
        return {
            node: 0.0 if node in silent else weight / (1 + waiting[node]) ** 2 for node, weight in self.weights.items()
        }

    def next(self, shares: Mapping[int, float]) -> int:
        """Return the broker of the next turn."""
        return self.rounds.next(shares)

    def charge(self, node: int, cost: float, shares: Mapping[int, float]) -> None:
        """Account for a turn of a broker, by the share of a batch that was filled."""
        self.rounds.charge(node, cost, shares)

    def best(self, silent: Set[int]) -> int:
        """Return a partition of the broker with the highest weight."""
        able = [node for node in self.weights if node not in silent]
        return self.partition(max(able, key=self.weights.__getitem__))

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

    Without scores a broker's weight is the number of its partitions, which is round robin over partitions. Brokers that
    are ``slow`` get as little as one with the least score. If no partition has a leader, all of them are those of one
    broker, `NO_LEADER`.
    """
    led = {partition: leader for partition, leader in leaders.items() if leader != NO_LEADER} or leaders
    partitions: dict[int, list[int]] = {}
    for partition, leader in sorted(led.items()):
        partitions.setdefault(leader, []).append(partition)
    best = max(scores.get(node, 0.0) for node in partitions) if scores else 0.0
    if not scores or best <= 0:
        weights = {node: float(len(mine)) for node, mine in partitions.items()}
    else:
        weights = {
            node: max(0.0 if node in slow else scores.get(node, 0.0), best * _LEAST_SHARE) for node in partitions
        }
    return Table(partitions, weights) if last is None else Table(partitions, weights, last.rounds, last.places)
