"""The plan: leader changes and moved replicas that bring each broker near the mean. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from loadwise.balance.batches import MOVES_PER_BROKER, Blocked, Schedule, schedule
from loadwise.balance.bounds import LEAST
from loadwise.balance.cluster import Broker, Cluster, Partition
from loadwise.balance.errors import NoPlanError
from loadwise.balance.limits import Limits
from loadwise.balance.placement import Placement
from loadwise.balance.required import empty, repair
from loadwise.balance.rows import DISK, NONE, ClusterRows, Floats, Rows
from loadwise.balance.scope import Scope, stays
from loadwise.balance.stretch import placed

HEADROOM = 0.8
"""The part of a disk that a plan may fill, as Cruise Control's."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A cluster as it is and as it should be."""

    cluster: Cluster
    planned: Cluster
    """The same brokers and partitions. Each partition is led by its first replica, the preferred leader."""
    limits: Limits
    scope: Scope
    schedule: Schedule
    """The batches that make the cluster as planned, and what was left out because disks have no space for it."""

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
        """The brokers that the plan leaves above their share plus a tenth of a resource, given by its row."""
        most = self.limits.target[:, resource] + LEAST * self.limits.unit[resource]
        return tuple(self.cluster.brokers[row] for row in np.flatnonzero(self.after[:, resource] > most))

    @property
    def _pairs(self) -> zip[tuple[Partition, Partition]]:
        return zip(self.cluster.partitions, self.planned.partitions, strict=True)


def plan(
    cluster: Cluster,
    scope: Scope | None = None,
    *,
    headroom: float = HEADROOM,
    moves_per_broker: int = MOVES_PER_BROKER,
) -> Plan:
    """Plan leader changes and moves that move few bytes. Raises `NoPlanError`, and `UnfitClusterError` for the scope.

    ``headroom`` is the part of a stated disk that a plan may fill, ``moves_per_broker`` how many partitions move from
    or to a broker at a time. Changes that no order of batches has the space for are left out.
    """
    scope = scope or Scope()
    scope.check(cluster)
    rows = ClusterRows.of(cluster, scope)
    limits = Limits.of(cluster, rows, headroom)
    planned = _searched(cluster, rows, limits, scope)
    batches = partial(schedule, cluster, headroom=headroom, moves_per_broker=moves_per_broker)
    scheduled = batches(planned)
    if scheduled.blocked:
        possible = [cluster, _without(cluster, planned, scheduled.blocked)]
        full = rows.load(rows.replicas)[:, DISK] > headroom * rows.capacity[:, DISK]
        with suppress(NoPlanError):
            beside = _searched(cluster, replace(rows, closed=rows.closed | full), limits, scope)
            possible.append(_without(cluster, beside, batches(beside).blocked))
        bounds = limits.at_mean(1.0)
        planned = min(possible, key=lambda each: float(bounds.total_excess(_load(each) / limits.unit)))
        scheduled = replace(batches(planned), blocked=scheduled.blocked)
    return Plan(cluster=cluster, planned=planned, limits=limits, scope=scope, schedule=scheduled)


def _searched(cluster: Cluster, rows: ClusterRows, limits: Limits, scope: Scope) -> Cluster:
    start = Placement(rows, limits.unit)
    empty(start, limits.at_goal)
    _check_emptied(cluster, start)
    repair(start, limits.at_goal)
    placement = placed(limits, start, scope.max_moved_bytes)
    _check_capacity(cluster, limits, placement)
    return _placed(cluster, placement.replicas)


def _without(cluster: Cluster, planned: Cluster, blocked: Iterable[Blocked]) -> Cluster:
    """The planned cluster with the blocked partitions as they are."""
    names = {each.partition.name for each in blocked}
    pairs = zip(cluster.partitions, planned.partitions, strict=True)
    return replace(planned, partitions=tuple(was if now.name in names else now for was, now in pairs))


def _check_emptied(cluster: Cluster, placement: Placement) -> None:
    left = placement.emptied[placement.replicas] & (placement.replicas != NONE)
    for row, column in np.argwhere(left):
        broker, partition = cluster.brokers[placement.replicas[row, column]].id, cluster.partitions[row]
        if partition.is_reassigned:
            why = "which is being reassigned; wait until kafka-reassign-partitions.sh --list shows none"
        elif partition.out_of_sync:
            listed = ", ".join(map(str, partition.out_of_sync))
            why = f"which has replicas that are not in sync, on {listed}; wait until they are, or start these brokers"
        elif placement.fixed[row]:
            why = "whose topic is excluded; do not exclude it"
        else:
            why = "whose replicas would be in fewer racks; add brokers to racks, or state more"
        raise NoPlanError(f"broker {broker} cannot be emptied of partition {partition.name}, {why}")


def _check_capacity(cluster: Cluster, limits: Limits, placement: Placement) -> None:
    load = placement.load * limits.unit
    for broker, resource in zip(*np.nonzero(load > limits.capacity + LEAST * limits.unit), strict=True):
        carried, most = load[broker, resource], limits.capacity[broker, resource]
        raise NoPlanError(
            f"no plan was found that keeps broker {cluster.brokers[broker].id} within its capacity of"
            f" {cluster.resources[resource]}: {carried:,.0f} of {most:,.0f}; add brokers, or state more capacity"
        )


def _placed(cluster: Cluster, replicas: Rows) -> Cluster:
    ids = [broker.id for broker in cluster.brokers]
    partitions = []
    for partition, row in zip(cluster.partitions, replicas.tolist(), strict=True):
        placed = tuple(ids[broker] for broker in row if broker != NONE)
        unchanged = stays(partition) or (placed == partition.replicas and placed[0] == partition.leader)
        partitions.append(
            partition if unchanged else replace(partition, replicas=placed, leader=placed[0], in_sync=None)
        )
    return replace(cluster, partitions=tuple(partitions))


def _load(cluster: Cluster) -> Floats:
    rows = ClusterRows.of(cluster)
    row = {broker.id: index for index, broker in enumerate(cluster.brokers)}
    return rows.load_led_by(np.array([row[each.leader] for each in cluster.partitions], np.intp))
