"""Write balance.json: the exact optimum of small clusters, by CP-SAT, which `loadwise balance` is compared with.

::

    python -m venv exact && exact/bin/pip install numpy ortools
    PYTHONPATH=src:tests/support exact/bin/python tests/golden/make_balance.py

Of each cluster it has ``[stretch, excess, moved]``, the least of each with those before it kept: how far the limits
must be stretched until some placement is within them; the load above the mean plus a tenth or below the lower limits,
in means, of all brokers and resources together; and the megabytes that move.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ortools.sat.python import cp_model
from random_clusters import KILOBYTE, MEGABYTE, SMALL, lower_limits, small_cluster

from loadwise.balance.cluster import Cluster

SCALE = 1_000_000
"""Of a limit."""


def optimum(cluster: Cluster) -> tuple[float, float, int]:
    """The least stretch, then the least excess within it, then the least megabytes that move for both."""
    model = cp_model.CpModel()
    brokers = [broker.id for broker in cluster.brokers]
    rack = {broker.id: broker.rack or str(broker.id) for broker in cluster.brokers}
    placed, leads = {}, {}
    for index, partition in enumerate(cluster.partitions):
        for broker in brokers:
            placed[index, broker] = model.new_bool_var(f"placed {index} {broker}")
            leads[index, broker] = model.new_bool_var(f"leads {index} {broker}")
            model.add_implication(leads[index, broker], placed[index, broker])
        model.add(sum(placed[index, broker] for broker in brokers) == len(partition.replicas))
        model.add_exactly_one(leads[index, broker] for broker in brokers)
        held = []
        for name in sorted(set(rack.values())):
            holds = model.new_bool_var(f"rack {index} {name}")
            model.add_bool_or(placed[index, broker] for broker in brokers if rack[broker] == name).only_enforce_if(
                holds
            )
            held.append(holds)
        model.add(sum(held) >= len({rack[broker] for broker in partition.replicas}))

    parts = range(len(cluster.partitions))
    coming = [each.bytes_in_per_s // KILOBYTE for each in cluster.partitions]
    going = [
        each.bytes_out_per_s // KILOBYTE + (len(each.replicas) - 1) * coming[index]
        for index, each in enumerate(cluster.partitions)
    ]
    size = [each.size_bytes // MEGABYTE for each in cluster.partitions]
    replicas = [len(each.replicas) for each in cluster.partitions]
    stretch = model.new_int_var(SCALE, 100 * SCALE, "stretch")
    excesses = []
    lower = lower_limits(cluster)
    for where, weights, copies, least in (
        (placed, coming, replicas, lower[0] / KILOBYTE),
        (leads, going, [1] * len(going), lower[1] / KILOBYTE),
        (placed, size, replicas, lower[2] / MEGABYTE),
    ):
        mean = sum(weight * count for weight, count in zip(weights, copies, strict=True)) / len(brokers)
        limit = max(1.1 * mean, *weights)
        for broker in brokers:
            model.add(sum(round(weights[each] * SCALE / limit) * where[each, broker] for each in parts) <= stretch)
            above = model.new_int_var(0, 100 * SCALE, f"above {len(excesses)}")
            excesses.append(above)
            held = sum(round(weights[each] * SCALE / mean) * where[each, broker] for each in parts)
            model.add(held - round(1.1 * SCALE) <= above)
            below = model.new_int_var(0, 100 * SCALE, f"below {len(excesses)}")
            excesses.append(below)
            model.add(round(least * SCALE / mean) - held <= below)
    moved = sum(
        int(size[index]) * placed[index, broker]
        for index, each in enumerate(cluster.partitions)
        for broker in brokers
        if broker not in each.replicas
    )
    found = []
    for aim in (stretch, sum(excesses), moved):
        model.minimize(aim)
        found.append(solved(model))
        model.add(aim <= found[-1])
    return found[0] / SCALE, found[1] / SCALE, found[2]


def solved(model: cp_model.CpModel) -> int:
    """The proven optimum."""
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = 900
    solver.parameters.num_workers = 2
    status = solver.solve(model)
    assert status == cp_model.OPTIMAL, solver.status_name(status)
    return round(solver.objective_value)


def main(seeds: Sequence[int]) -> None:
    """Write the optimum of each cluster."""
    found = []
    for seed in seeds:
        found.append(optimum(small_cluster(seed)))
        print(seed, *found[-1], file=sys.stderr, flush=True)
    rows = ",\n ".join(json.dumps(row) for row in found)
    Path(__file__).with_name("balance.json").write_text(f"[\n {rows}\n]\n")


if __name__ == "__main__":
    main(range(SMALL))
