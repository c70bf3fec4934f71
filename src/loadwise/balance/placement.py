"""Replicas as they are placed during the search for a plan. Pure."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from loadwise.balance.bounds import Bounds
from loadwise.balance.rows import DISK, NONE, ClusterRows, Floats, Mask, Rows


class Replicas(NamedTuple):
    """Some replicas; nothing changes the arrays."""

    partitions: Rows
    columns: Rows
    weight: Floats
    """By resources: what each loads its broker with."""


class Placement:
    """Where replicas are placed, and what that makes of the brokers' loads."""

    def __init__(self, rows: ClusterRows, unit: Floats) -> None:
        """``unit`` of each resource: loads are counted in it, so that resources compare."""
        self.before = rows.replicas
        self.replicas = rows.replicas.copy()
        self.follower = rows.follower / unit
        self.leader = rows.leader / unit
        self.size = rows.follower[:, DISK]
        self.load = rows.load(rows.replicas) / unit
        self.rack = rows.rack
        self.emptied, self.excluded, self.closed, self.fixed = rows.emptied, rows.excluded, rows.closed, rows.fixed
        self.racks = rows.rack_counts(rows.replicas)
        """In how many racks each partition stays at least."""
        self._rows = rows
        self._held: list[set[int]] = [set() for _ in rows.rack]
        for column in rows.replicas.T:
            for partition, broker in enumerate(column.tolist()):
                if broker != NONE:
                    self._held[broker].add(partition)
        self._on: dict[int, Replicas] = {}
        """Those that were asked for and have not changed since."""

    def copy(self) -> Placement:
        """The same placement, to be changed apart from this one."""
        copied = copy(self)
        copied.replicas, copied.load, copied.racks = self.replicas.copy(), self.load.copy(), self.racks.copy()
        copied._held = [held.copy() for held in self._held]
        copied._on = self._on.copy()
        return copied

    def put(self, partition: int, replicas: Rows) -> None:
        """Place the replicas of a partition on other brokers."""
        now = self.replicas[partition].tolist()
        then = replicas.tolist()
        leader, follower = self.leader[partition], self.follower[partition]
        for column, (old, new) in enumerate(zip(now, then, strict=True)):
            if old != new:
                weight = follower if column else leader
                if old != NONE:
                    self.load[old] -= weight
                if new != NONE:
                    self.load[new] += weight
        for broker in now:
            self._on.pop(broker, None)
            if broker != NONE and broker not in then:
                self._held[broker].discard(partition)
        for broker in then:
            self._on.pop(broker, None)
            if broker != NONE and broker not in now:
                self._held[broker].add(partition)
        self.replicas[partition] = replicas

    def on(self, broker: int) -> Replicas:
        """The replicas on a broker that may change, in the order of partitions."""
        found = self._on.get(broker)
        if found is None:
            held = self._held[broker]
            partitions = np.fromiter(held, np.intp, len(held))
            partitions.sort()
            partitions = partitions[~self.fixed[partitions]]
            columns = (self.replicas[partitions] == broker).argmax(axis=1)
            found = self._on[broker] = Replicas(partitions, columns, self.weight(partitions, columns))
        return found

    def excess(self, bounds: Bounds) -> float:
        """How much all brokers together carry outside of their bounds, in units."""
        return float(bounds.total_excess(self.load))

    def change_of_excess(self, partitions: Rows, replicas: Rows, bounds: Bounds) -> Floats:
        """How much more the brokers would carry outside of their bounds for each partition that is placed like this."""
        now = self.replicas[partitions]
        there = np.concatenate([now, replicas], axis=1)
        carried = self.weight(partitions[:, None], np.arange(now.shape[1]))
        weight = np.concatenate([-carried, carried], axis=1)
        change = np.zeros(len(partitions))
        for column in range(there.shape[1]):
            broker = there[:, [column]]
            first = ~(there[:, :column] == broker).any(axis=1)  # a broker may be in both
            came = (weight * (there == broker)[:, :, None]).sum(axis=1)
            load, of_brokers = self.load[broker[:, 0]], bounds.of(broker[:, 0])
            change += np.where(
                first & (broker[:, 0] != NONE), of_brokers.excess(load + came) - of_brokers.excess(load), 0.0
            )
        return change

    def moved_bytes(self) -> float:
        """What brokers have to copy until replicas are placed like this."""
        return float(self.moved_bytes_of(np.arange(len(self.replicas))).sum())

    def moved_bytes_of(self, partitions: Rows) -> Floats:
        """The same of each of these partitions."""
        now, before = self.replicas[partitions], self.before[partitions]
        arrived = ~(before[:, None, :] == now[:, :, None]).any(axis=2) & (now != NONE)
        moved: Floats = arrived.sum(axis=1) * self.size[partitions]
        return moved

    def changed(self) -> Rows:
        """The partitions that are not placed as before, the largest first."""
        changed = np.flatnonzero((self.replicas != self.before).any(axis=1))
        return changed[np.argsort(-self.size[changed], kind="stable")]

    def weight(self, partitions: Rows, columns: Rows) -> Floats:
        """By resources: what the replicas in these columns load their brokers with."""
        return np.where((columns == 0)[..., None], self.leader[partitions], self.follower[partitions])

    def permitted(self, partitions: Rows, columns: Rows, targets: Rows) -> Mask:
        """Pairs by targets: whether the replica in this column may go to the broker.

        A broker has one replica of a partition at most, and gets none if it is closed. Racks are kept.
        """
        placed = self.replicas[partitions]
        others = placed.copy()
        others[np.arange(len(partitions)), columns] = NONE
        taken = np.zeros((len(partitions), len(targets)), np.bool_)
        same_rack = taken.copy()
        for column in range(placed.shape[1]):
            taken |= placed[:, [column]] == targets
            rack = np.where(others[:, column] == NONE, NONE, self.rack[others[:, column]])
            same_rack |= rack[:, None] == self.rack[targets]
        enough = self._rows.rack_counts(others)[:, None] + ~same_rack >= self.racks[partitions][:, None]
        stays = self.excluded[placed[np.arange(len(partitions)), columns]] | self.fixed[partitions]
        result: Mask = ~taken & enough & ~self.closed[targets] & ~stays[:, None]
        return result

    def permits(self, partition: int, replicas: Rows) -> bool:
        """Whether a plan may place replicas like this."""
        before = self.before[partition].tolist()
        placed = replicas.tolist()
        if placed == before:
            return not self.emptied[replicas[replicas != NONE]].any() and self._in_racks(partition, replicas)
        if self.fixed[partition]:
            return False
        if any(self.closed[broker] for broker in placed if broker not in before):
            return False
        if any(self.emptied[broker] for broker in placed if broker != NONE):
            return False
        if any(self.excluded[broker] for broker in before if broker != NONE and broker not in placed):
            return False
        if placed[0] != before[0] and (self.closed[placed[0]] or self.excluded[before[0]]):
            return False
        return self._in_racks(partition, replicas)

    def _in_racks(self, partition: int, replicas: Rows) -> bool:
        return bool(self._rows.rack_counts(replicas[None])[0] >= self.racks[partition])

    def rack_counts(self, replicas: Rows) -> Rows:
        """In how many racks each partition is, with replicas placed like this."""
        return self._rows.rack_counts(replicas)
