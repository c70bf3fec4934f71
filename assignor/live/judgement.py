"""The effect of a rebalance: the utilisation of every member now, and after the assignor's new assignment."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from loadwise.assignor.impute import guess
from loadwise.assignor.live.capacity import Capacities
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.model import (
    NOBODY,
    RECORDS_PER_S,
    Assignor,
    Bools,
    Floats,
    GroupSnapshot,
    Ints,
    Owners,
    TopicPartition,
)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Judgement:
    """The judgement of one reading of a group, with the members of ``group``."""

    group: GroupSnapshot
    """The group with the demand of its partitions as their load, in records/s."""
    known: bool
    """Whether utilisation is a share of known capacities; otherwise it only compares members with each other."""
    demand: Floats
    """float64[M]: the demand of each member, in records/s."""
    before: Floats
    """float64[M]: the present utilisation: demand over capacity."""
    after: Floats
    """float64[M]: utilisation after a rebalance; equal to ``before`` if the assignor was not called."""
    moved: Ints
    """int64[n]: the rows that a rebalance would move."""
    moved_share: float
    """The demand of these rows, as a share of the total."""
    needed: float
    """Total demand over total capacity: above 1 the group is too small."""

    @property
    def worst(self) -> float:
        """The highest present utilisation."""
        return float(self.before.max(initial=0.0))

    @property
    def best(self) -> float:
        """The highest utilisation after a rebalance."""
        return float(self.after.max(initial=0.0))


def judge(
    group: GroupSnapshot,
    load: Floats,
    capacities: Capacities,
    algorithm: Assignor,
    settings: LiveSettings,
    *,
    even_up_to: float = 0.0,
) -> Judgement:
    """Judge a group by its demand, float64[P], NaN if unknown; ``even_up_to`` as of `GroupSnapshot`.

    The assignor costs the leader CPU time, so it is called only if it may gain enough.
    """
    weight = guess(load, group.topic_of) if not np.isnan(load).all() else np.zeros(group.size)
    known = group.capacity_known | capacities.reliable
    loaded = replace(
        group,
        load=weight,
        capacity=capacities.per_s,
        capacity_known=known,
        load_unit=RECORDS_PER_S,
        even_up_to=even_up_to,
    )
    possible = max(
        float(weight.sum()) / float(capacities.per_s.sum()),
        float(weight.max(initial=0.0)) / float(capacities.per_s.max()),
        settings.healthy,
    )
    worst = float((_sums(loaded, group.owner, weight) / capacities.per_s).max(initial=0.0))
    target = group.owner
    if capacities.known and worst - possible >= settings.least_gain:
        target = algorithm.assign(loaded).owner
    return compare(loaded, target, capacities)


def compare(group: GroupSnapshot, target: Owners, capacities: Capacities) -> Judgement:
    """Judge the change from the group's owners to those of ``target``, by the group's load (without NaN)."""
    weight = np.zeros(group.size) if group.load is None else group.load
    demand = _sums(group, group.owner, weight)
    moved = np.flatnonzero((target != group.owner) & (group.owner != NOBODY))
    total = float(weight.sum())
    return Judgement(
        group=group,
        known=capacities.known,
        demand=demand,
        before=demand / capacities.per_s,
        after=_sums(group, target, weight) / capacities.per_s,
        moved=moved,
        moved_share=float(weight[moved].sum()) / total if total else 0.0,
        needed=total / float(capacities.per_s.sum()) if capacities.known else math.nan,
    )


def utilisation(group: GroupSnapshot, owner: Owners) -> Floats:
    """float64[M]: the group's load (without NaN) over its capacities, if the partitions had these owners."""
    weight = np.zeros(group.size) if group.load is None else group.load
    return _sums(group, owner, weight) / group.capacity


def _sums(group: GroupSnapshot, owner: Owners, weight: Floats) -> Floats:
    given: Bools = owner != NOBODY
    return np.bincount(owner[given], weight[given], len(group.members)).astype(np.float64)


def too_slow(group: GroupSnapshot) -> Ints:
    """Return int64[n]: the slower members without a partition, although another has two and they may read one."""
    owned = group.owner != NOBODY
    count = np.bincount(group.owner[owned], minlength=len(group.members))
    spare = np.unique(group.class_of[owned][count[group.owner[owned]] > 1])
    could_read = group.subscribers_of_class[spare].any(axis=0)
    slower = group.capacity_known & (group.capacity < group.capacity.max(initial=0.0))
    return np.flatnonzero((count == 0) & could_read & slower)


def overfull(
    group: GroupSnapshot, rate: Floats, waiting: Floats, capacities: Capacities
) -> tuple[TopicPartition, float] | None:
    """Return the partition with a backlog and more arrivals than any member can process, and the ratio of the two.

    Without a backlog it may be that the capacities are estimated too low.
    """
    fastest = float(capacities.per_s.max(initial=0.0)) if capacities.known else 0.0
    behind = np.where(waiting > 0, np.nan_to_num(rate, nan=0.0), 0.0)
    if not fastest or float(behind.max(initial=0.0)) <= fastest:
        return None
    row = int(behind.argmax())
    return group.name_of(row), float(behind[row]) / fastest
