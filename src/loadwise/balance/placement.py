"""Replicas as they are placed during the search for a plan. Pure."""

from __future__ import annotations

from copy import copy

import numpy as np

from loadwise.balance.bounds import Bounds
from loadwise.balance.rows import NONE, ClusterRows, Floats, Mask, Rows


class Placement:
    """Where replicas are placed, and what that makes of the brokers' loads."""

    def __init__(self, rows: ClusterRows, unit: Floats) -> None:
        """``unit`` of each resource: loads are counted in it, so that resources compare."""
        self._rows = rows
        self.before = rows.replicas
        self.replicas = rows.replicas.copy()
        self.follower = rows.follower / unit
        self.leader = rows.leader / unit
        self.size = rows.follower[:, 2]
        self.load = rows.load(rows.replicas) / unit
        self._racks = self._rows.rack_counts(rows.replicas)
        self.emptied = rows.emptied

    def copy(self) -> Placement:
        """The same placement, to be changed apart from this one."""
        copied = copy(self)
        copied.replicas, copied.load = self.replicas.copy(), self.load.copy()
        return copied

    def put(self, partition: int, replicas: Rows) -> None:
        """Place the replicas of a partition on other brokers."""
        for sign, placed in ((-1.0, self.replicas[partition]), (1.0, replicas)):
            there = placed[placed != NONE]
            self.load[there[0]] += sign * self.leader[partition]
            self.load[there[1:]] += sign * self.follower[partition]
        self.replicas[partition] = replicas

    def excess(self, bounds: Bounds) -> float:
        """How much all brokers together carry above their bounds, in units."""
        return float(bounds.total_excess(self.load))

    def moved_bytes(self) -> float:
        """What brokers have to copy until replicas are placed like this."""
        arrived = ~(self.before[:, None, :] == self.replicas[:, :, None]).any(axis=2) & (self.replicas != NONE)
        return float((arrived.sum(axis=1) * self.size).sum())

    def changed(self) -> Rows:
        """The partitions that are not placed as before, the largest first."""
        changed = np.flatnonzero((self.replicas != self.before).any(axis=1))
        return changed[np.argsort(-self.size[changed], kind="stable")]

    def weight(self, partitions: Rows, columns: Rows) -> Floats:
        """By resources: what the replicas in these columns load their brokers with."""
        return np.where((columns == 0)[..., None], self.leader[partitions], self.follower[partitions])

    def permitted(self, partitions: Rows, columns: Rows) -> Mask:
        """Pairs by brokers: whether the replica in this column may go there.

        A broker has one replica of a partition at most, and none if it is emptied. Racks are kept: replicas are in as
        many as before the plan.
        """
        others = self.replicas[partitions].copy()
        others[np.arange(len(partitions)), columns] = NONE
        taken = (self.replicas[partitions][:, :, None] == np.arange(len(self.load))).any(axis=1)
        racks = np.where(others == NONE, NONE, self._rows.rack[others])
        new_rack = ~(racks[:, :, None] == self._rows.rack).any(axis=1)
        enough = self._rows.rack_counts(others)[:, None] + new_rack >= self._racks[partitions][:, None]
        result: Mask = ~taken & enough & ~self.emptied
        return result

    def permits(self, partition: int, replicas: Rows) -> bool:
        """Whether replicas placed like this are in as many racks as before the plan, and not on emptied brokers."""
        if self.emptied[replicas[replicas != NONE]].any():
            return False
        return bool(self._rows.rack_counts(replicas[None])[0] >= self._racks[partition])
