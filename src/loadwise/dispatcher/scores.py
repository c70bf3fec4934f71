"""The score of each broker: how it compares with the others, in one metric or in several."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Set

from loadwise.dispatcher.errors import BadDispatcherError

AVERAGE = 60.0
"""The score of a broker that lies halfway between the least and the most loaded one."""

_OUTLIER_TIMES = 4.0
"""An outlier takes this many times the median..."""
_OUTLIER_S = 0.02
"""... and longer than this, because differences below it are noise."""


def node_scores(loads: Mapping[int, float]) -> dict[int, float]:
    """Return ``60 * (2 - x / ((max + min) / 2))`` of each broker's load ``x``: below 120, and higher for less load.

    Loads are finite and 0 or more. If all are 0, all scores are 60.
    """
    if not loads:
        return {}
    middle = max(loads.values()) / 2 + min(loads.values()) / 2
    # Below the smallest normal number a quotient can overflow; such loads are as good as none.
    if middle < 1e-300:
        return dict.fromkeys(loads, AVERAGE)
    return {node: AVERAGE * (2 - load / middle) for node, load in loads.items()}


def weighted_scores(
    metrics: Mapping[str, Mapping[int, float]], weights: Mapping[str, float], nodes: Set[int]
) -> dict[int, float] | None:
    """Return the weighted sum of each broker's scores; None if no metric that counts has a value for any.

    A broker that a metric has no valid value for gets the average score in it.
    """
    total = dict.fromkeys(nodes, 0.0)
    found = False
    for name, loads in metrics.items():
        weight = weights.get(name, 1.0)
        valid = {node: loads[node] for node in nodes if node in loads and 0 <= loads[node] < math.inf}
        if not weight or not valid:
            continue
        found = True
        scores = node_scores(valid)
        for node in nodes:
            total[node] += weight * scores.get(node, AVERAGE)
    return total if found else None


def outliers(latency_s: Mapping[int, float]) -> set[int]:
    """Return the brokers that are so much slower than the median that a few records are enough to see them recover.

    A score is a share: a broker ten times as slow as the others would still get one record in twenty, and these alone
    would be the slowest hundredth. It is no outlier any more if the others slow down under the load that it loses.
    """
    if not latency_s:
        return set()
    least_s = max(_OUTLIER_TIMES * sorted(latency_s.values())[(len(latency_s) - 1) // 2], _OUTLIER_S)
    return {node for node, each_s in latency_s.items() if each_s > least_s}


def check_weights(weights: Mapping[str, float], metrics: Collection[str]) -> None:
    """Raise `BadDispatcherError` for a weight without a metric, below 0 or not finite, and if no metric counts."""
    for name, weight in weights.items():
        if name not in metrics:
            raise BadDispatcherError(
                f"there is a weight for {name!r}, but no such metric; choose from {sorted(metrics)}"
            )
        given: object = weight
        if not isinstance(given, int | float) or not 0 <= given < math.inf:
            raise BadDispatcherError(f"the weight of {name!r} is {weight!r}; it must be a finite number of 0 or more")
    if metrics and all(weights.get(name, 1.0) == 0 for name in metrics):
        raise BadDispatcherError(f"the weights of all metrics are 0; give one of {sorted(metrics)} a weight above 0")
