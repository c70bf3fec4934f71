"""How much each broker should carry after the plan. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from loadwise.balance.bounds import BEYOND, Bounds
from loadwise.balance.cluster import Cluster
from loadwise.balance.errors import NoPlanError
from loadwise.balance.rows import DISK, NONE, ClusterRows, Floats, Mask
from loadwise.counted import counted

TOLERANCE = 0.1
"""A broker is balanced within its share plus and minus this part of it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Limits:
    """What brokers should carry: each its share of the total. Excluded brokers and what they carry do not count."""

    mean: Floats
    """Of each resource. Where capacities are below the mean, the other brokers share the rest."""
    by_capacity: Mask
    """Of each resource: whether all brokers state a capacity, and shares are in proportion to it, or else equal."""
    upper: Floats
    """Brokers by resources: the share. Without a capacity it is that of the other resources, if that is more."""
    lower: Floats
    """The same, if that is less, of what the heaviest replicas leave; 0 for brokers that are emptied or excluded."""
    heaviest: Floats
    """Of each resource: the most that one replica loads its broker with."""
    in_rack: Floats
    """Brokers by resources: the share of what their rack must hold, because partitions have a replica in each."""
    capacity: Floats
    """Brokers by resources; 0 of those that are emptied. Infinite of those that are excluded."""
    headroom: Floats
    """Brokers by resources: what a plan may load a broker with that carries less now."""

    @classmethod
    def of(cls, cluster: Cluster, rows: ClusterRows, headroom: float = 1.0) -> Limits:
        """Raises `NoPlanError` if the stated capacities hold less than there is.

        ``headroom`` is the part of a disk that a plan may fill.
        """
        usable = int((~rows.emptied).sum())
        for partition in cluster.partitions:
            if len(partition.replicas) > usable:
                raise NoPlanError(
                    f"partition {partition.name} has {len(partition.replicas)} replicas, but only"
                    f" {counted(usable, 'broker')} can hold one; add brokers, or state more capacity"
                )
        load = rows.load(rows.replicas)
        stated = np.where(rows.emptied[:, None], 0.0, rows.capacity)
        capacity = np.where(rows.excluded[:, None], np.inf, stated)
        total = load[~rows.excluded].sum(axis=0)
        for resource, name in enumerate(rows.resources):
            if capacity[:, resource].sum() < total[resource]:
                raise NoPlanError(
                    f"the brokers' total capacity of {name} is {capacity[:, resource].sum():,.0f}, but the replicas"
                    f" need {total[resource]:,.0f}; add brokers, or state more capacity"
                )
        sharing = ~rows.excluded
        count = max(int((~rows.emptied & ~rows.excluded).sum()), 1)
        by_capacity: Mask = np.asarray(np.isfinite(stated[sharing]).all(axis=0))
        share = np.zeros_like(stated)
        for resource in range(len(rows.resources)):
            share[sharing, resource] = _share(stated[sharing, resource], total[resource])
        share = np.where(rows.emptied[:, None], 0.0, share)
        least, most = _relative(share[:, by_capacity], rows.emptied | rows.excluded)
        upper = np.where(by_capacity, share, share * np.maximum(most, 1.0)[:, None])
        least_share = np.where(by_capacity, share, share * np.minimum(least, 1.0)[:, None])
        filled = capacity.copy()
        filled[:, DISK] = np.where(rows.excluded, np.inf, np.maximum(headroom * stated[:, DISK], load[:, DISK]))
        level = np.array([_level(stated[sharing, each], total[each]) for each in range(len(rows.resources))])
        return cls(
            mean=np.where(by_capacity, total / count, level),
            by_capacity=by_capacity,
            upper=np.where(rows.excluded[:, None], np.inf, upper),
            lower=least_share * _beside_heavy(rows, total, count),
            heaviest=rows.leader.max(axis=0, initial=0.0),
            in_rack=_in_rack(rows, upper),
            capacity=capacity,
            headroom=np.minimum(filled, capacity),
        )

    @property
    def unit(self) -> Floats:
        """The mean of each resource, for dividing by it: 1 where there is no load."""
        return np.where(self.mean > 0.0, self.mean, 1.0)

    @cached_property
    def whole(self) -> Floats:
        """Brokers by resources: what loads are shown as parts or multiples of, a capacity or the mean."""
        return np.where(self.by_capacity & (self.capacity > 0.0) & np.isfinite(self.capacity), self.capacity, self.unit)

    def relative(self, load: Floats) -> Floats:
        """Loads, brokers by resources, as parts of the capacity or multiples of the mean."""
        shown: Floats = load / self.whole
        return shown

    @property
    def target(self) -> Floats:
        """Brokers by resources: the share plus a tenth."""
        return (1.0 + TOLERANCE) * self.upper

    @property
    def goal(self) -> Floats:
        """Brokers by resources: the target, or what is more and cannot be avoided."""
        return np.maximum(self._in_any_case, self.heaviest)

    @cached_property
    def _in_any_case(self) -> Floats:
        return np.where(self.in_rack > self.target, (1.0 + TOLERANCE) * self.in_rack, self.target)

    @cached_property
    def stated(self) -> Bounds:
        """The capacities and the headroom alone."""
        return Bounds(self.headroom / self.unit)

    @cached_property
    def at_goal(self) -> Bounds:
        """The goal, within capacities."""
        capacity = self.headroom / self.unit if np.isfinite(self.headroom).any() else None
        return Bounds(np.minimum(self.goal, self.headroom) / self.unit, capacity)

    def at_mean(self, stretch: float) -> Bounds:
        """The share plus and minus a tenth; the stretched goal is a capacity."""
        reached = np.minimum(self.goal * stretch, self.headroom)
        limit = np.minimum(self._in_any_case, reached)
        lower = np.minimum((1.0 - TOLERANCE) * self.lower, limit)
        return Bounds(limit / self.unit, reached / self.unit, lower=lower / self.unit)

    def stretch(self, load: Floats) -> float:
        """How many times the goal the loads of brokers are, in units; at least 1."""
        return float((load / self._goal).max(initial=1.0))

    def stretches(self, load: Floats) -> Floats:
        """The same of many placements at once, and much more for loads above stated capacities."""
        factor: Floats = np.maximum((load / self._goal).max(axis=(-1, -2)), 1.0)
        return factor + BEYOND * self.stated.total_excess(load) if np.isfinite(self.headroom).any() else factor

    @cached_property
    def _goal(self) -> Floats:
        # infinite where there is no load
        return np.where(self.goal > 0.0, self.goal, np.inf) / self.unit


def _share(capacity: Floats, total: float) -> Floats:
    """What each of these brokers should carry of the total; the capacity of those that are emptied is 0."""
    if np.isfinite(capacity).all():
        proportional: Floats = capacity * (total / max(capacity.sum(), 1.0))
        return proportional
    return np.full(len(capacity), _level(capacity, total))


def _relative(share: Floats, without: Mask) -> tuple[Floats, Floats]:
    """The least and the most of each broker's shares, in means of the brokers that share."""
    if not share.shape[1] or without.all():
        return np.ones(len(share)), np.ones(len(share))
    mean = share[~without].mean(axis=0)
    relative = share / np.where(mean > 0.0, mean, 1.0)
    return relative.min(axis=1), relative.max(axis=1)


def _beside_heavy(rows: ClusterRows, total: Floats, brokers: int) -> Floats:
    """Of each resource: what brokers have on average beside replicas that each fill a broker, in means."""
    followers = (rows.replicas != NONE).sum(axis=1) - 1
    result = np.ones(len(total))
    for resource in range(len(total)):
        rest, left = float(total[resource]), brokers
        heavy = np.concatenate([rows.leader[:, resource], np.repeat(rows.follower[:, resource], followers)])
        for weight in np.sort(heavy)[::-1][: brokers - 1].tolist():
            if weight <= (1.0 + TOLERANCE) * rest / left:
                break
            rest, left = rest - weight, left - 1
        if total[resource] > 0.0:
            result[resource] = max(rest, 0.0) / left / (total[resource] / brokers)
    return result


def _in_rack(rows: ClusterRows, share: Floats) -> Floats:
    in_all = np.flatnonzero(rows.rack_counts(rows.replicas) == len(set(rows.rack.tolist())))
    held = rows.follower[in_all].sum(axis=0)
    of_rack = np.zeros_like(share)
    np.add.at(of_rack, rows.rack, share)
    result: Floats = held * share / np.where(of_rack > 0.0, of_rack, 1.0)[rows.rack]
    return result


def _level(capacity: Floats, total: float) -> float:
    """The level at which brokers, each filled up to it or to its capacity, hold the total."""
    rest = total
    ascending = np.sort(capacity)
    for filled, smallest in enumerate(ascending):
        level = rest / (len(ascending) - filled)
        if level <= smallest:
            return float(level)
        rest -= smallest
    return float(ascending[-1]) if len(ascending) else 0.0
