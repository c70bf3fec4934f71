"""What a plan changes in any case: replicas leave emptied brokers, and partitions get into as many racks as can be.

Pure.
"""

from __future__ import annotations

import numpy as np

from loadwise.balance.bounds import Bounds
from loadwise.balance.placement import Placement
from loadwise.balance.rows import NONE


def empty(placement: Placement, bounds: Bounds) -> None:
    """Move the replicas of emptied brokers, the heaviest first, to where they are permitted and fit best.

    Those that load no broker go to the brokers with the fewest replicas.
    """
    held = np.bincount(placement.replicas[placement.replicas != NONE], minlength=len(placement.load))
    every = np.arange(len(placement.load))
    for broker in np.flatnonzero(placement.emptied):
        partitions, columns, weight = placement.on(int(broker))
        for index in np.argsort(-weight.max(axis=1), kind="stable"):
            permitted = placement.permitted(partitions[[index]], columns[[index]], every)[0]
            targets = np.flatnonzero(permitted)
            if not targets.size:
                continue
            then = placement.load[targets] + weight[index]
            above = bounds.of(targets).excess(then) - bounds.of(targets).excess(placement.load[targets])
            best = targets[np.lexsort((held[targets], then.max(axis=1), above))[0]]
            held[best] += 1
            _move(placement, int(partitions[index]), int(columns[index]), int(best))


def repair(placement: Placement, bounds: Bounds) -> None:
    """Move replicas that share a rack to other racks, the largest partitions first, followers before leaders."""
    racks = len(set(placement.rack[~placement.emptied].tolist()))
    wanted = np.minimum((placement.replicas != NONE).sum(axis=1), racks)
    broken = np.flatnonzero((placement.rack_counts(placement.replicas) < wanted) & ~placement.fixed)
    for partition in broken[np.argsort(-placement.size[broken], kind="stable")].tolist():
        while placement.rack_counts(placement.replicas[[partition]])[0] < wanted[partition]:
            if not _spread(placement, bounds, partition):
                break
        placement.racks[partition] = placement.rack_counts(placement.replicas[[partition]])[0]


def _spread(placement: Placement, bounds: Bounds, partition: int) -> bool:
    """Move one replica to a rack that the partition is not in; whether one could."""
    row = placement.replicas[partition]
    racks = [placement.rack[broker] for broker in row if broker != NONE]
    doubled = [column for column, rack in enumerate(racks) if racks.count(rack) > 1]
    targets = np.flatnonzero(~np.isin(placement.rack, racks))
    for leads in (False, True):
        columns = np.array([column for column in doubled if (column == 0) == leads], np.intp)
        partitions = np.full(len(columns), partition)
        permitted = placement.permitted(partitions, columns, targets)
        if permitted.any():
            then = placement.load[targets] + placement.weight(partitions, columns)[:, None]
            above = bounds.of(targets).excess(then) - bounds.of(targets).excess(placement.load[targets])
            worst = np.where(permitted, then.max(axis=2), np.inf)
            index = np.lexsort((worst.ravel(), np.where(permitted, above, np.inf).ravel()))[0]
            column, target = np.unravel_index(index, permitted.shape)
            _move(placement, partition, int(columns[column]), int(targets[target]))
            return True
    return False


def _move(placement: Placement, partition: int, column: int, target: int) -> None:
    row = placement.replicas[partition].copy()
    row[column] = target
    placement.put(partition, row)
