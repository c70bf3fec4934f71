"""How a group does: from readings of its offsets to each member's lag, rates and utilisation, and one verdict.

Pure: readings come in with their times. Arrivals, backlogs, capacities and demands are those of a live group's leader
(`loadwise.assignor.live`). The processed rate is the change over the window, so a window must be longer than the
consumers' commit interval (5 seconds by default).

What a member can process is seen only while it has a backlog all the time: a member that keeps up processes what
arrives, and could perhaps do more. Therefore the utilisation of a member without a backlog is not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from loadwise.assignor.live.notes import compared
from loadwise.assignor.live.scaling import members_that_do
from loadwise.assignor.model import Floats
from loadwise.protocol.live_notes import Compared
from loadwise.protocol.live_switch import LiveSwitch
from loadwise.running_group.members import GroupReading
from loadwise.watch.group import TRAFFIC_S, since_assigned, watched

_SOON = 0.5
"""Deletion is shown once the oldest waiting record has reached this part of its retention time, or a day is left."""
_DAY_S = 86_400.0
_STEADY = 0.05
"""A lag that changes by less than this share of the arrivals neither rises nor falls."""


class Condition(StrEnum):
    """How a member does."""

    IDLE = "idle"
    """Nothing arrives in its partitions, and nothing waits there."""
    KEEPS_UP = "keeps up"
    """It has no backlog."""
    CATCHES_UP = "catches up"
    """It has a backlog that falls."""
    BEHIND = "behind"
    """It has a backlog that neither falls nor rises."""
    DROWNS = "drowns"
    """It has a backlog that rises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStatus:
    """One member over the window."""

    label: str
    host: str
    partitions: int
    lag: int
    """Records that wait in its partitions."""
    arrival_per_s: float
    """Records that arrive there in a second."""
    processed_per_s: float
    """Records that it commits in a second."""
    capacity_per_s: float | None
    """Records that it can process in a second; None if unknown, because it was not always behind."""
    utilisation: float | None
    """Its demand over its capacity, as in the leader's log; None where the capacity is not known."""
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """The group over the window."""

    group_id: str
    protocol: str
    state: str
    window_s: float
    """Time between the two readings that the rates are made of; 0 while there is only one."""
    members: Sequence[MemberStatus]
    """The member with the largest lag first."""
    unowned: int
    """Partitions that no member owns."""
    members_wanted: int | None
    """How many members like these keep all below the healthy utilisation; None where no member's capacity is known."""
    too_hot: tuple[str, int] | None
    """A partition that gets more than its owner can process. It cannot be shared, whatever the assignor."""
    retention_left_s: float | None
    """When the oldest waiting record will be deleted before it is read; None while no lag rises."""
    retention_partition: tuple[str, int] | None
    """Where that will be."""
    switch: LiveSwitch | None = None
    """The newest use of ``loadwise live``."""
    compared: Compared | None = None
    """The lag and what `weighted` saves of it, as the group's leader estimates; None where it does not."""

    @property
    def lag(self) -> int:
        """Records that wait in the partitions of all members."""
        return sum(member.lag for member in self.members)

    @property
    def arrival_per_s(self) -> float:
        """Records that arrive in a second."""
        return math.fsum(member.arrival_per_s for member in self.members)

    @property
    def processed_per_s(self) -> float:
        """Records that the group commits in a second."""
        return math.fsum(member.processed_per_s for member in self.members)


def status(readings: Sequence[GroupReading], *, from_beginning: bool, retention_ms: Mapping[str, int]) -> GroupStatus:
    """Judge a group by the readings of a window, oldest first; there is at least one.

    Only readings since the last change of the assignment count, because a member's rates are those of its partitions.
    ``from_beginning`` is whether members without a commit read a partition from its beginning (``auto.offset.reset``).
    ``retention_ms`` has the topics that delete records by age.
    """
    same = since_assigned(readings)
    now, window_s = same[-1], same[-1].at_s - same[0].at_s
    began, watch = (watched(some, from_beginning=from_beginning) for some in (same[:1], same))
    in_force, state = watch.knowledge.in_force, watch.knowledge.partitions.state
    assert in_force is not None
    decision = watch.decide(round(1000 * now.at_s))
    capacities = watch.knowledge.estimates.of(in_force.stated, round(1000 * now.at_s))
    rate = np.nan_to_num(state.arrivals.rate)
    rise = _per_s(state.backlog.lag - _spread(began.knowledge.partitions.state.backlog.lag, len(state.end)), window_s)
    lag, arriving, rising = (in_force.sums(each).tolist() for each in (state.backlog.lag, rate, rise))
    processed = _per_s(in_force.sums(state.progress.processed), window_s).tolist()
    seen_per_s = watch.knowledge.estimates.known_of(in_force.names)
    number = {member: place for place, member in enumerate(in_force.group.members)}
    members: list[MemberStatus] = []
    for each in now.group.members:
        place = number[each.member.id]
        capacity_per_s = seen_per_s[in_force.names[place]] if watch.knowledge.lagging[place] else 0.0
        demand_per_s = 0.0 if decision is None else float(decision.judgement.demand[place])
        members.append(
            MemberStatus(
                label=now.group.labels[each.member.id],
                host=each.client_host.removeprefix("/"),
                partitions=sum(map(len, each.member.owned.values())),
                lag=round(lag[place]),
                arrival_per_s=arriving[place],
                processed_per_s=processed[place],
                capacity_per_s=capacity_per_s or None,
                utilisation=demand_per_s / capacity_per_s if capacity_per_s else None,
                condition=_condition(
                    lag[place], arriving[place], rising[place], has_backlog=bool(watch.knowledge.lagging[place])
                ),
            )
        )
    rows = watch.knowledge.partitions.index.rows(list(now.offsets)).tolist()
    partitions = {
        partition: _Partition(float(state.backlog.lag[row]), float(rate[row]), float(rise[row]))
        for partition, row in zip(now.offsets, rows, strict=True)
    }
    left_s, where = _retention(partitions, retention_ms)
    owned = sum(member.partitions for member in members)
    load = None if decision is None or not decision.judgement.known else decision.judgement.group.load
    return GroupStatus(
        group_id=now.group.group_id,
        protocol=now.group.protocol,
        state=now.group.state,
        window_s=window_s,
        members=sorted(members, key=lambda member: (-member.lag, member.label)),
        unowned=max(sum(now.partitions.values()) - owned, 0),
        members_wanted=None
        if load is None or not capacities.proven.any()
        else members_that_do(load, capacities.per_s, watch.settings.healthy),
        too_hot=None if decision is None or decision.overfull is None else decision.overfull[0],
        retention_left_s=left_s,
        retention_partition=where,
        switch=now.switch,
        compared=compared([each.metadata for each in now.offsets.values()], in_force.names),
    )


class _Partition(NamedTuple):
    lag: float
    arrival_per_s: float
    lag_per_s: float


def _condition(lag: float, arriving: float, rising: float, *, has_backlog: bool) -> Condition:
    if not has_backlog:
        return Condition.KEEPS_UP if lag or arriving else Condition.IDLE
    slack = _STEADY * max(arriving, arriving - rising)
    if rising > slack:
        return Condition.DROWNS
    return Condition.CATCHES_UP if rising < -slack else Condition.BEHIND


def _per_s(records: Floats, window_s: float) -> Floats:
    """Return the change in a second; 0 where it is not known."""
    return np.nan_to_num(records / window_s) if window_s > 0 else np.zeros(len(records))


def _spread(values: Floats, size: int) -> Floats:
    """Return the same for more partitions."""
    return np.pad(values, (0, size - len(values)), constant_values=math.nan)


def _retention(
    partitions: Mapping[tuple[str, int], _Partition], retention_ms: Mapping[str, int]
) -> tuple[float | None, tuple[str, int] | None]:
    """When and where a waiting record will first be deleted by age.

    The oldest waiting record arrived as long ago as the lag takes to arrive, and its age grows as the lag does.
    """
    soonest: tuple[float, tuple[str, int]] | None = None
    for partition, each in partitions.items():
        kept_ms = retention_ms.get(partition[0], -1)
        if kept_ms < 0 or each.lag_per_s <= 0 or each.arrival_per_s <= 0:
            continue
        age_s = each.lag / each.arrival_per_s
        growth = min(each.lag_per_s / each.arrival_per_s, 1.0)
        left = max(kept_ms / 1000 - age_s, 0.0) / growth
        if age_s < _SOON * kept_ms / 1000 and left > _DAY_S:
            continue  # a lag that is young, or grows by little, may as well fall tomorrow
        if each.lag <= each.arrival_per_s * TRAFFIC_S:
            continue  # these are on their way
        if soonest is None or left < soonest[0]:
            soonest = left, partition
    return soonest or (None, None)
