"""How much each broker may carry after the plan. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from loadwise.balance.bounds import BEYOND, Bounds
from loadwise.balance.cluster import Cluster
from loadwise.balance.errors import NoPlanError
from loadwise.balance.rows import RESOURCES, ClusterRows, Floats
from loadwise.counted import counted

TOLERANCE = 0.1
"""A broker is balanced up to the mean plus this part of it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Limits:
    """What brokers may carry."""

    mean: Floats
    """Of each resource. Where capacities are below the mean, the other brokers share the rest."""
    heaviest: Floats
    """Of each resource: the most that one replica loads its broker with."""
    in_rack: Floats
    """Brokers by resources: the mean of what the broker's rack must hold, because partitions have a replica in each."""
    capacity: Floats
    """Brokers by resources; 0 of those that are emptied."""

    @classmethod
    def of(cls, cluster: Cluster, rows: ClusterRows) -> Limits:
        """Raises `NoPlanError` if the stated capacities hold less than there is."""
        usable = int((~rows.emptied).sum())
        for partition in cluster.partitions:
            if len(partition.replicas) > usable:
                raise NoPlanError(
                    f"partition {partition.name} has {len(partition.replicas)} replicas, and"
                    f" {counted(usable, 'broker')} with the capacity for one; add brokers, or state more"
                )
        capacity = np.where(rows.emptied[:, None], 0.0, rows.capacity)
        total = rows.load(rows.replicas).sum(axis=0)
        for resource, name in enumerate(RESOURCES):
            if capacity[:, resource].sum() < total[resource]:
                raise NoPlanError(
                    f"the brokers' capacities of {name} hold {capacity[:, resource].sum():,.0f} together, and the"
                    f" replicas need {total[resource]:,.0f}; add brokers, or state more of {name}"
                )
        mean = np.array([_level(capacity[:, each], total[each]) for each in range(len(RESOURCES))])
        return cls(
            mean=mean,
            heaviest=rows.leader.max(axis=0, initial=0.0),
            in_rack=_in_rack(rows),
            capacity=capacity,
        )

    @property
    def unit(self) -> Floats:
        """The mean of each resource, for dividing by it: 1 where there is no load."""
        return np.where(self.mean > 0.0, self.mean, 1.0)

    @property
    def target(self) -> Floats:
        """Of each resource: the mean plus a tenth."""
        return (1.0 + TOLERANCE) * self.mean

    @property
    def goal(self) -> Floats:
        """Brokers by resources: the target, or what is more and cannot be avoided."""
        return np.maximum(self._in_any_case, self.heaviest)

    @property
    def _in_any_case(self) -> Floats:
        return np.where(self.in_rack > self.target, (1.0 + TOLERANCE) * self.in_rack, self.target)

    @property
    def stated(self) -> Bounds:
        """The capacities alone."""
        return Bounds(self.capacity / self.unit)

    @property
    def at_goal(self) -> Bounds:
        """The goal, within capacities."""
        capacity = self.capacity / self.unit if np.isfinite(self.capacity).any() else None
        return Bounds(np.minimum(self.goal, self.capacity) / self.unit, capacity)

    def at_mean(self, stretch: float) -> Bounds:
        """The mean plus a tenth; the stretched goal is a capacity."""
        reached = np.minimum(self.goal * stretch, self.capacity)
        return Bounds(np.minimum(self._in_any_case, reached) / self.unit, reached / self.unit)

    def stretch(self, load: Floats) -> float:
        """How many times the goal the loads of brokers are, in units; at least 1."""
        return float((load / self._goal).max(initial=1.0))

    def stretches(self, load: Floats) -> Floats:
        """The same of many placements at once, and much more for loads above stated capacities."""
        factor: Floats = np.maximum((load / self._goal).max(axis=(-1, -2)), 1.0)
        return factor + BEYOND * self.stated.total_excess(load) if np.isfinite(self.capacity).any() else factor

    @cached_property
    def _goal(self) -> Floats:
        # infinite where there is no load
        return np.where(self.goal > 0.0, self.goal, np.inf) / self.unit


def _in_rack(rows: ClusterRows) -> Floats:
    in_all = np.flatnonzero(rows.rack_counts(rows.replicas) == len(set(rows.rack.tolist())))
    held = rows.follower[in_all].sum(axis=0)
    brokers = np.bincount(rows.rack, weights=~rows.emptied)[rows.rack]
    share: Floats = held / np.maximum(brokers, 1.0)[:, None]
    return share


def _level(capacity: Floats, total: float) -> float:
    """The level at which brokers, each filled up to it or to its capacity, hold the total."""
    rest = total
    ascending = np.sort(capacity)
    for filled, smallest in enumerate(ascending):
        level = rest / (len(ascending) - filled)
        if level <= smallest:
            return float(level)
        rest -= smallest
    return float(ascending[-1])
