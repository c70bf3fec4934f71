"""Takes changes of a plan back that brokers can do without. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loadwise.balance.bounds import LEAST, Bounds
from loadwise.balance.placement import Placement
from loadwise.balance.rows import Mask, Rows


def restore(placement: Placement, bounds: Bounds) -> None:
    """Take changes back, of the largest partitions first, as long as brokers stay as well within their limits."""
    restored = True
    while restored:
        changed = placement.changed()
        promising = changed[_promising(placement, changed, bounds)]
        restored = sum(_restored(placement, partition, bounds) for partition in promising.tolist()) > 0


def _promising(placement: Placement, partitions: Rows, bounds: Bounds) -> Mask:
    """Which of these could be placed as before, or nearer to that, if all others stay.

    All are tried at once, which is much faster than one after another.
    """
    now, before = placement.replicas[partitions], placement.before[partitions]
    result = _harmless(placement, partitions, before, bounds)
    stays = (now[:, :, None] == before[:, None, :]).any(axis=2)
    returned = (before[:, :, None] == now[:, None, :]).any(axis=2)
    for column in range(now.shape[1]):
        for earlier in range(now.shape[1]):
            nearer = now.copy()
            nearer[:, column] = before[:, earlier]
            result |= ~stays[:, column] & ~returned[:, earlier] & _harmless(placement, partitions, nearer, bounds)
    return result


def _harmless(placement: Placement, partitions: Rows, replicas: Rows, bounds: Bounds) -> Mask:
    """Which partitions leave brokers as well within their limits if their replicas are placed like this."""
    harmless: Mask = placement.change_of_excess(partitions, replicas, bounds) <= LEAST
    return harmless


def _restored(placement: Placement, partition: int, bounds: Bounds) -> bool:
    """Place the partition as before, or nearer to that; whether it could be."""
    now, excess = placement.replicas[partition].copy(), placement.excess(bounds)
    for earlier in _nearer(now, placement.before[partition]):
        placement.put(partition, earlier)
        if placement.excess(bounds) <= excess + LEAST and placement.permits(partition, earlier):
            return True
        placement.put(partition, now)
    return False


def _nearer(now: Rows, before: Rows) -> Iterator[Rows]:
    yield before
    missing, arrived = np.setdiff1d(before, now), np.flatnonzero(~np.isin(now, before))
    if len(missing) > 1 or (len(missing) == 1 and now[0] != before[0]):
        for column in arrived:
            for broker in missing:
                nearer = now.copy()
                nearer[column] = broker
                yield nearer
