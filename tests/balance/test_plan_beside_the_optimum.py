"""Plans of small clusters beside the exact optimum of CP-SAT, which tests/golden/make_balance.py wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from random_clusters import MEGABYTE, SMALL, loads, lower_limits, racks_of_partitions, small_cluster

from loadwise.balance.cluster import Cluster
from loadwise.balance.plan import plan

OPTIMA = json.loads((Path(__file__).parents[1] / "golden" / "balance.json").read_text())
QUICK = (5, 18, 50, 65, 125)
FAR = (11, 16, 40, 75, 76)
"""The plans that move more than 1.2 times the least."""


def _stretch(before: Cluster, after: Cluster) -> float:
    """How far above the limits the busiest broker is: the mean plus a tenth, or the heaviest replica."""
    heaviest = [0.0, 0.0, 0.0]
    for partition in before.partitions:
        sent = partition.bytes_out_per_s + (len(partition.replicas) - 1) * partition.bytes_in_per_s
        alone = (partition.bytes_in_per_s, sent, partition.size_bytes)
        heaviest = [max(pair) for pair in zip(heaviest, alone, strict=True)]
    of_resource = list(zip(*loads(after).values(), strict=True))
    return max(
        1.0,
        *(
            max(each) / max(1.1 * sum(each) / len(each), alone, 1e-9)
            for each, alone in zip(of_resource, heaviest, strict=True)
        ),
    )


def _outside(after: Cluster) -> float:
    """The load above the mean plus a tenth or below the lower limits, in means, of all brokers and resources."""
    total = 0.0
    for each, lower in zip(zip(*loads(after).values(), strict=True), lower_limits(after), strict=True):
        mean = max(sum(each) / len(each), 1e-9)
        total += sum(max(load / mean - 1.1, lower / mean - load / mean, 0) for load in each)
    return total


@pytest.mark.parametrize(
    "seed", [*QUICK, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(SMALL) if seed not in QUICK)]
)
def test_the_plan_is_near_the_optimum(seed: int) -> None:
    cluster = small_cluster(seed)
    least_stretch, least_outside, least_moved = OPTIMA[seed]
    planned = plan(cluster)
    racks = zip(racks_of_partitions(planned.planned), racks_of_partitions(cluster), strict=True)
    assert all(after >= before for after, before in racks)
    assert _stretch(cluster, planned.planned) <= 1.02 * least_stretch
    assert _outside(planned.planned) <= least_outside + 0.02
    assert planned.moved_bytes <= (1.5 if seed in FAR else 1.2) * least_moved * MEGABYTE
