"""Smooth weighted round robin: shares in the ratio of weights, without long stretches of the heaviest."""

from __future__ import annotations

from collections.abc import Mapping


class SmoothRoundRobin:
    """Takes turns among brokers so that the costs of their turns are in the ratio of their weights.

    With weights 5, 1, 1 and equal costs the turns are 1 1 2 1 3 1 1. A cost is known after its turn: a slow broker's
    batches are fuller than a fast one's, so counting turns alone would send it more than its share (KIP-794).
    """

    def __init__(self) -> None:
        self._credit: dict[int, float] = {}
        self._last_cost = 1.0

    def next(self, weights: Mapping[int, float]) -> int:
        """Return whose turn it is; the first of equals. Weights are 0 or more, and one is above 0."""
        ahead = self._last_cost / sum(weights.values())
        credit = self._credit
        return max(
            (node for node, weight in weights.items() if weight > 0),
            key=lambda node: credit.get(node, 0.0) + ahead * weights[node],
        )

    def charge(self, node: int, cost: float, weights: Mapping[int, float]) -> None:
        """Account for a turn of this broker."""
        each = cost / sum(weights.values())
        self._credit = {other: self._credit.get(other, 0.0) + each * weight for other, weight in weights.items()}
        if node in weights:
            self._credit[node] -= cost
        self._last_cost = cost
