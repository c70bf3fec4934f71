"""How a group does: from readings of its offsets to each member's lag, rates and utilisation, and one verdict.

Pure: readings come in with their times. A rate is the change between the oldest and the newest reading of the window,
so a window must be longer than the consumers' commit interval (5 seconds by default).

What a member can process is seen only while it has lag all the time: a member that keeps up processes what arrives,
and could perhaps do more. Therefore the utilisation of a member without lag is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

import numpy as np

from loadwise.assignor.live.scaling import members_that_do
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.load.lag import PartitionOffsets, lag_of
from loadwise.running_group.members import Reading

TRAFFIC_S = 6.0
"""A lag of less traffic than this is no backlog: by default, clients commit every 5 seconds."""
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
    condition: Condition

    @property
    def utilisation(self) -> float | None:
        """Arrivals over capacity. None where the capacity is not known."""
        return self.arrival_per_s / self.capacity_per_s if self.capacity_per_s else None


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


def status(readings: Sequence[Reading], *, from_beginning: bool, retention_ms: Mapping[str, int]) -> GroupStatus:
    """Judge a group by the readings of a window, oldest first; there is at least one.

    Only readings since the last change of the assignment count, because a member's rates are those of its partitions.
    ``from_beginning`` is whether members without a commit read a partition from its beginning (``auto.offset.reset``).
    ``retention_ms`` has the topics that delete records by age.
    """
    now = readings[-1]
    same = [now]
    for reading in reversed(readings[:-1]):
        if _owners(reading) != _owners(now):
            break
        same.append(reading)
    first = same[-1]
    window_s = now.at_s - first.at_s

    def lag(at: PartitionOffsets) -> int:
        return lag_of(at, from_beginning=from_beginning)

    partitions = {
        partition: _Partition(
            lag=lag(at),
            had_backlog=_had_backlog([reading.offsets.get(partition) for reading in same], window_s, lag),
            arrival_per_s=_change(first.offsets.get(partition), at, window_s, lambda each: each.end),
            lag_per_s=_change(first.offsets.get(partition), at, window_s, lag),
        )
        for partition, at in now.offsets.items()
    }
    labels = now.group.labels
    members: list[MemberStatus] = []
    owned_by_anybody = 0
    too_hot: tuple[str, int] | None = None
    for each in now.group.members:
        owned = [(topic, number) for topic, numbers in each.member.owned.items() for number in numbers]
        owned_by_anybody += len(owned)
        mine = [partitions[partition] for partition in owned if partition in partitions]
        member = _member(labels[each.member.id], each.client_host.removeprefix("/"), len(owned), mine, window_s)
        members.append(member)
        if member.condition is Condition.DROWNS and member.capacity_per_s is not None:
            hottest = max(owned, key=lambda at: partitions[at].arrival_per_s if at in partitions else 0.0)
            if partitions[hottest].arrival_per_s > member.capacity_per_s:
                too_hot = hottest
    left_s, where = _retention(partitions, retention_ms)
    return GroupStatus(
        group_id=now.group.group_id,
        protocol=now.group.protocol,
        state=now.group.state,
        window_s=window_s,
        members=sorted(members, key=lambda member: (-member.lag, member.label)),
        unowned=max(sum(now.partitions.values()) - owned_by_anybody, 0),
        members_wanted=_wanted([each.arrival_per_s for each in partitions.values()], members),
        too_hot=too_hot,
        retention_left_s=left_s,
        retention_partition=where,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Partition:
    lag: int
    had_backlog: bool
    """Whether records waited at every reading of the window."""
    arrival_per_s: float
    lag_per_s: float


def _member(label: str, host: str, count: int, mine: Sequence[_Partition], window_s: float) -> MemberStatus:
    lag = sum(each.lag for each in mine)
    arrival = math.fsum(each.arrival_per_s for each in mine)
    rise = math.fsum(each.lag_per_s for each in mine)
    processed = max(arrival - rise, 0.0)
    condition = Condition.KEEPS_UP
    has_backlog = lag > TRAFFIC_S * max(arrival, processed)
    if has_backlog:
        slack = _STEADY * max(arrival, processed)
        condition = Condition.BEHIND
        if rise > slack:
            condition = Condition.DROWNS
        elif rise < -slack:
            condition = Condition.CATCHES_UP
    elif not lag and not arrival:
        condition = Condition.IDLE
    busy = window_s > 0 and has_backlog and any(each.had_backlog for each in mine)
    return MemberStatus(
        label=label,
        host=host,
        partitions=count,
        lag=lag,
        arrival_per_s=arrival,
        processed_per_s=processed,
        capacity_per_s=processed if busy and processed > 0 else None,
        condition=condition,
    )


def _wanted(arrivals_per_s: Sequence[float], members: Sequence[MemberStatus]) -> int | None:
    known = [member.capacity_per_s for member in members if member.capacity_per_s]
    if not known:
        return None
    typical = median(known)
    capacities = [member.capacity_per_s or typical for member in members]
    return members_that_do(np.array(arrivals_per_s), np.array(capacities), LiveSettings().healthy)


def _had_backlog(
    seen: Sequence[PartitionOffsets | None], window_s: float, lag: Callable[[PartitionOffsets], int]
) -> bool:
    return window_s > 0 and all(at is not None and lag(at) > 0 for at in seen)


def _change(
    first: PartitionOffsets | None, last: PartitionOffsets, window_s: float, of: Callable[[PartitionOffsets], int]
) -> float:
    """The change in a second; 0 where the partition is new, or was deleted and made again."""
    if first is None or window_s <= 0 or last.end < first.end:
        return 0.0
    return (of(last) - of(first)) / window_s


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


def _owners(reading: Reading) -> dict[str, Mapping[str, Sequence[int]]]:
    return {each.member.id: each.member.owned for each in reading.group.members}
