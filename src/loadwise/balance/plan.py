"""The plan: leader changes and moved replicas that bring each broker near the mean. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from loadwise.balance.bounds import LEAST
from loadwise.balance.cluster import Broker, Cluster, Partition
from loadwise.balance.errors import NoPlanError
from loadwise.balance.limits import Limits
from loadwise.balance.placement import Placement
from loadwise.balance.rows import NONE, RESOURCES, ClusterRows, Floats, Rows
from loadwise.balance.search import empty
from loadwise.balance.stretch import placed


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A cluster as it is and as it should be."""

    cluster: Cluster
    planned: Cluster
    """The same brokers and partitions. Each partition is led by its first replica, the preferred leader."""
    limits: Limits

    @cached_property
    def reassigned(self) -> tuple[Partition, ...]:
        """The planned partitions whose replicas differ, be it in order alone."""
        return tuple(now for before, now in self._pairs if before.replicas != now.replicas)

    @cached_property
    def elected(self) -> tuple[Partition, ...]:
        """The planned partitions that get another leader."""
        return tuple(now for before, now in self._pairs if before.leader != now.leader)

    @cached_property
    def kept_leaders(self) -> tuple[Partition, ...]:
        """The planned partitions whose leader becomes the preferred one, so that Kafka does not elect another."""
        return tuple(
            now for before, now in self._pairs if before.leader == now.leader and before.leader != before.replicas[0]
        )

    @cached_property
    def moved(self) -> tuple[tuple[Partition, int], ...]:
        """Each replica that moves: its planned partition, and the broker that gets it."""
        return tuple(
            (now, broker) for before, now in self._pairs for broker in now.replicas if broker not in before.replicas
        )

    @property
    def moved_bytes(self) -> float:
        """What brokers copy."""
        return sum(partition.size_bytes for partition, _ in self.moved)

    @cached_property
    def before(self) -> Floats:
        """The load of each broker now: brokers by resources."""
        return _load(self.cluster)

    @cached_property
    def after(self) -> Floats:
        """The load of each broker after the plan: brokers by resources."""
        return _load(self.planned)

    @cached_property
    def heaviest_on(self) -> Floats:
        """The most that one replica loads each broker with after the plan: brokers by resources."""
        rows = ClusterRows.of(self.planned)
        return rows.heaviest_on(rows.replicas)

    def above(self, resource: int) -> tuple[Broker, ...]:
        """The brokers that the plan leaves above the mean plus a tenth of a resource, given by its row."""
        most = self.limits.target[resource] + LEAST * self.limits.unit[resource]
        return tuple(self.cluster.brokers[row] for row in np.flatnonzero(self.after[:, resource] > most))

    @property
    def _pairs(self) -> zip[tuple[Partition, Partition]]:
        return zip(self.cluster.partitions, self.planned.partitions, strict=True)


def plan(cluster: Cluster) -> Plan:
    """Plan leader changes and moves that move few bytes. Raises `NoPlanError`."""
    rows = ClusterRows.of(cluster)
    limits = Limits.of(cluster, rows)
    start = Placement(rows, limits.unit)
    empty(start, limits.at_goal)
    _check_emptied(cluster, start)
    placement = placed(limits, start)
    _check_capacity(cluster, limits, placement)
    return Plan(cluster=cluster, planned=_placed(cluster, placement.replicas), limits=limits)


def _check_emptied(cluster: Cluster, placement: Placement) -> None:
    left = placement.emptied[placement.replicas] & (placement.replicas != NONE)
    for partition, column in np.argwhere(left):
        broker = cluster.brokers[placement.replicas[partition, column]].id
        raise NoPlanError(
            f"broker {broker} cannot be emptied of partition {cluster.partitions[partition].name}, whose replicas would"
            " be in fewer racks; add brokers to racks, or state more"
        )


def _check_capacity(cluster: Cluster, limits: Limits, placement: Placement) -> None:
    load = placement.load * limits.unit
    for broker, resource in zip(*np.nonzero(load > limits.capacity + LEAST * limits.unit), strict=True):
        raise NoPlanError(
            f"no plan was found that keeps broker {cluster.brokers[broker].id} within its capacity of"
            f" {RESOURCES[resource]}: {load[broker, resource]:,.0f} of {limits.capacity[broker, resource]:,.0f}; add"
            " brokers, or state more"
        )


def _placed(cluster: Cluster, replicas: Rows) -> Cluster:
    ids = [broker.id for broker in cluster.brokers]
    partitions = []
    for partition, row in zip(cluster.partitions, replicas.tolist(), strict=True):
        placed = tuple(ids[broker] for broker in row if broker != NONE)
        unchanged = placed == partition.replicas and placed[0] == partition.leader
        partitions.append(partition if unchanged else replace(partition, replicas=placed, leader=placed[0]))
    return replace(cluster, partitions=tuple(partitions))


def _load(cluster: Cluster) -> Floats:
    rows = ClusterRows.of(cluster)
    row = {broker.id: index for index, broker in enumerate(cluster.brokers)}
    return rows.load_led_by(np.array([row[each.leader] for each in cluster.partitions], np.intp))
