"""The lag that ``sticky`` would have had: a group's arrivals, in queues behind `Sticky`'s owners and behind its own.

Each partition is a queue, each member works off its queues in proportion to what waits. Both groups have the same
arrivals and capacities, so an error in these is in both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from loadwise.assignor.algorithms.sticky import Sticky
from loadwise.assignor.live.tuning import ShadowTuning
from loadwise.assignor.live.watched import Watched
from loadwise.assignor.model import NOBODY, Floats, GroupSnapshot, Owners

_Values = TypeVar("_Values", Floats, Owners)


class Queues(NamedTuple):
    """Partitions in a reading, float64[P] each."""

    end: Floats
    backlog: Floats
    cost: Floats
    """The cost of a record."""


class Shadow:
    """The queues of one group, and of the same group under ``sticky``."""

    def __init__(self, tuning: ShadowTuning) -> None:
        self._tuning = tuning
        self._watched: Watched | None = None
        self._sticky = np.empty(0, np.int32)  # int32[P]: the owners under ``sticky``
        self._end = self._waiting = self._waiting_sticky = np.empty(0)  # float64[P]
        self._read_ms: int | None = None
        self._stopped_s = self._stopped_sticky_s = 0.0  # standstill since the last reading
        self._weight = 0.0
        self.lag_s = 0.0
        """The highest lag of a member in seconds of the group's arrivals, a mean of the last minutes."""
        self.sticky_lag_s = 0.0
        """The same under ``sticky``."""

    @property
    def saved_s(self) -> float | None:
        """How much lower the lag is than under ``sticky``; None until both were compared for a while."""
        return self.sticky_lag_s - self.lag_s if self._weight >= self._tuning.at_least else None

    @property
    def loses(self) -> bool:
        """Whether ``sticky`` would have been clearly better."""
        return -(self.saved_s or 0.0) > self._tuning.tolerated_s + self._tuning.tolerated * self.sticky_lag_s

    def assigned(self, duration_ms: int, *, requested: bool) -> None:
        """Note a rebalance; ``requested`` for the load: ``sticky`` would not have had it."""
        self._stopped_s += duration_ms / 1000
        self._stopped_sticky_s += 0.0 if requested else duration_ms / 1000

    def read(self, watched: Watched, queues: Queues, per_s: Floats, now_ms: int) -> None:
        """Take in a reading of the group's partitions and the capacities of its members, float64[M]. O(P)."""
        end, cost = queues.end, queues.cost
        if self._watched is not watched:
            self._follow(watched, end, queues.backlog * cost)
        seconds = 0.0 if self._read_ms is None else (now_ms - self._read_ms) / 1000
        came = np.nan_to_num(np.maximum(end - self._end, 0.0) * cost, nan=0.0)
        self._end, self._read_ms = np.where(np.isnan(end), self._end, end), now_ms
        total = float(came.sum()) / seconds if seconds else 0.0
        if not total:
            return
        work_s = max(seconds - self._stopped_s, 0.0), max(seconds - self._stopped_sticky_s, 0.0)
        self._stopped_s = self._stopped_sticky_s = 0.0
        self._waiting, most = worked_off(self._waiting + came, watched.group.owner, per_s * work_s[0])
        self._waiting_sticky, most_sticky = worked_off(self._waiting_sticky + came, self._sticky, per_s * work_s[1])
        part = 1 - 0.5 ** (seconds / self._tuning.half_life_s)
        self._weight += part * (1 - self._weight)
        part /= self._weight  # a plain mean at first
        self.lag_s += part * (most / total - self.lag_s)
        self.sticky_lag_s += part * (most_sticky / total - self.sticky_lag_s)

    def forget(self) -> None:
        """Begin anew: capacities are not known."""
        self._watched, self._read_ms, self._weight, self.lag_s, self.sticky_lag_s = None, None, 0.0, 0.0, 0.0

    def _follow(self, watched: Watched, end: Floats, backlog: Floats) -> None:
        """Go on with another assignment: records wait where their partitions are."""
        before, self._watched, group = self._watched, watched, watched.group
        if before is None:
            self._end = end
            self._waiting = self._waiting_sticky = np.nan_to_num(backlog, nan=0.0)
            self._sticky = Sticky().assign(replace(group, owner=np.full_like(group.owner, NOBODY))).owner
        elif before.names != watched.names or not before.group.same_partitions(group):
            number = {name: member for member, name in enumerate(watched.names)}
            renamed = np.array([*(number.get(name, NOBODY) for name in before.names), NOBODY], np.int32)
            owner = _carried(renamed[self._sticky], before.group, np.full_like(group.owner, NOBODY), group)
            self._sticky = Sticky().assign(replace(group, owner=owner)).owner
            nothing = np.zeros(group.size)
            self._waiting = _carried(self._waiting, before.group, nothing, group)
            self._waiting_sticky = _carried(self._waiting_sticky, before.group, nothing, group)
            self._end = _carried(self._end, before.group, end, group)


def _carried(old: _Values, before: GroupSnapshot, new: _Values, after: GroupSnapshot) -> _Values:
    """Return ``new`` with the values that partitions had before, in the rows of the group ``after``."""
    values = new.copy()
    for topic, start, stop in zip(
        after.topics, after.topic_start[:-1].tolist(), after.topic_start[1:].tolist(), strict=True
    ):
        if topic in before.topics:
            index = before.topics.index(topic)
            was = old[before.topic_start[index] : before.topic_start[index + 1]][: stop - start]
            values[start : start + len(was)] = was
    return values


def worked_off(waiting: Floats, owner: Owners, capacity: Floats) -> tuple[Floats, float]:
    """Return what waits in each partition after its member has processed ``capacity`` records, and the most of one."""
    owned = owner != NOBODY
    load = np.bincount(owner[owned], waiting[owned], len(capacity))
    left = np.maximum(load - capacity, 0.0)
    part = np.append(np.divide(left, load, out=np.zeros_like(left), where=load > 0), 1.0)
    return waiting * part[owner], float(left.max(initial=0.0))
