"""Measure an assignment: the load of every member, its spread, and what moved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadwise.assignor.bounds import fractional_spread, lower_bound
from loadwise.assignor.model import NOBODY, Assignment, Floats, GroupSnapshot, Ints, Owners


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Measurement:
    """The figures of an assignment with M members. Loads are in the unit of the load that was used."""

    load: Floats
    """float64[M]: load of each member."""
    count: Ints
    """int64[M]: partitions of each member."""
    highest: float
    """The highest load relative to capacity, that of the member that finishes last."""
    mean: float
    """The total load over the total capacity: every member's level if all partitions were divisible."""
    bound: float
    """A lower bound of ``highest`` over all assignments of this group."""
    moved: int
    """Partitions taken from an owner that is still in the group and still subscribes."""
    moved_load: float
    """The load of the moved partitions."""

    @property
    def max_over_mean(self) -> float:
        """``highest / mean``: 1 is perfect; also 1 without any load."""
        return self.highest / self.mean if self.mean > 0 else 1.0

    @property
    def max_over_bound(self) -> float:
        """``highest / bound``: 1 if no assignment can be better; also 1 without any load."""
        return self.highest / self.bound if self.bound > 0 else 1.0

    @property
    def spread(self) -> int:
        """Largest minus smallest number of partitions."""
        return int(np.ptp(self.count)) if len(self.count) else 0


def max_over_mean(loads: Sequence[float]) -> float:
    """Return the largest load over the mean one: 1 is perfect; also 1 without any load."""
    total = math.fsum(loads)
    return max(loads) * len(loads) / total if total else 1.0


def measure(assignment: Assignment, *, load: Floats | None = None, previous: Assignment | None = None) -> Measurement:
    """Measure an assignment, with ``load`` (float64[P], no NaN) instead of the snapshot's if given.

    Unknown loads of the snapshot count as 0. Without any load, every partition counts as 1. Moves are counted against
    ``previous``, an earlier assignment whose members and topics may differ, or else against the owners in the
    snapshot. O(P log P).
    """
    group = assignment.group
    weight = _weights(group) if load is None else load
    given = assignment.owner != NOBODY
    loads = np.bincount(assignment.owner[given], weight[given], len(group.members)).astype(np.float64)
    before = group.owner if previous is None else _carried_over(previous, group)
    moved = (before != NOBODY) & (before != assignment.owner)
    return Measurement(
        load=loads,
        count=assignment.counts(),
        highest=float((loads / group.capacity).max(initial=0.0)),
        mean=float(loads.sum() / group.capacity.sum()) if len(group.members) else 0.0,
        bound=_bound(group, weight),
        moved=int(moved.sum()),
        moved_load=float(weight[moved].sum()),
    )


def _weights(group: GroupSnapshot) -> Floats:
    return np.ones(group.size) if group.load is None else np.nan_to_num(group.load, nan=0.0)


def _bound(group: GroupSnapshot, weight: Floats) -> float:
    if not group.size:
        return 0.0
    eligible = group.subscribers_of_class
    of_class = np.bincount(group.class_of, weight, len(eligible)).astype(np.float64)
    fastest = np.where(eligible, group.capacity, 0.0).max(axis=1)[group.class_of]
    fractional = fractional_spread(of_class, eligible, group.capacity).bound
    return lower_bound(weight, fastest, group.capacity, fractional)


def _carried_over(previous: Assignment, group: GroupSnapshot) -> Owners:
    """Return the owner of each partition in an earlier assignment if it still subscribes, else `NOBODY`."""
    before = previous.group
    member_now = {member: index for index, member in enumerate(group.members)}
    now = np.array([member_now.get(member, NOBODY) for member in before.members] + [NOBODY], np.int32)
    owner = np.full(group.size, NOBODY, np.int32)
    topic_before = {topic: index for index, topic in enumerate(before.topics)}
    for topic, name in enumerate(group.topics):
        if name not in topic_before:
            continue
        start, stop = group.topic_start[topic : topic + 2].tolist()
        old_start, old_stop = before.topic_start[topic_before[name] : topic_before[name] + 2].tolist()
        both = min(stop - start, old_stop - old_start)
        owners = now[previous.owner[old_start : old_start + both]]
        still = group.subscribers_of_class[group.class_of_topic[topic]][owners] & (owners != NOBODY)
        owner[start : start + both] = np.where(still, owners, NOBODY)
    return owner
