"""The demand of a watched group, as a situation that assignors can be put to. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from loadwise.assignor.load.drain import drain_weight
from loadwise.assignor.load.lag import lag_of
from loadwise.assignor.model import RECORDS_PER_S
from loadwise.compare.situation import Situation
from loadwise.running_group.members import Reading

HORIZON_S = 60.0
"""The time in which the lag is to be processed."""


def situation(readings: Sequence[Reading], *, window_s: float, from_beginning: bool) -> Situation | None:
    """The group under its demand; None while rates are unknown or nothing can be assigned."""
    now = readings[-1]
    members = [each.member for each in now.group.members if each.member.topics]
    if window_s <= 0 or not members or not now.partitions:
        return None
    first = next(reading for reading in readings if now.at_s - reading.at_s <= window_s)
    lag: dict[str, list[float | None]] = {topic: [None] * count for topic, count in now.partitions.items()}
    rate: dict[str, list[float | None]] = {topic: [None] * count for topic, count in now.partitions.items()}
    for (topic, number), at in now.offsets.items():
        lag[topic][number] = lag_of(at, from_beginning=from_beginning)
        before = first.offsets.get((topic, number))
        if before is not None:
            rate[topic][number] = max(at.end - before.end, 0) / window_s
    return Situation(
        about=f"The group {now.group.group_id}.",
        members=members,
        labels=now.group.labels,
        partitions=now.partitions,
        load=drain_weight(lag, rate, 0.0, horizon_s=HORIZON_S),
        load_unit=RECORDS_PER_S,
        racks=now.racks,
    )
