"""A watched group as the leader of a live group sees it: the same stages, from readings without notes. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.live.events import Assigned
from loadwise.assignor.live.reading import Position
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.load.lag import lag_of
from loadwise.assignor.model import Assignment, GroupSnapshot
from loadwise.running_group.members import GroupReading

TRAFFIC_S = 6.0
"""A lag of less traffic than this is no backlog: by default, clients commit every 5 seconds."""


def watched(readings: Sequence[GroupReading], *, from_beginning: bool) -> GroupWatch:
    """Return what these readings show of a group, the oldest first; the newest one has its assignment."""
    watch, owners = GroupWatch(LiveSettings(), Weighted(), slack_s=TRAFFIC_S), None
    for reading in readings:
        at_ms = round(1000 * reading.at_s)
        if owners != owned_by(reading):
            owners = owned_by(reading)
            watch.handle(Assigned(at_ms=at_ms, target=assignment(reading), generation=0, duration_ms=0))
        watch.read(positions(reading, from_beginning=from_beginning), at_ms)
    return watch


def assignment(reading: GroupReading) -> Assignment:
    """Return the assignment of a group, as an event of its watch has it."""
    group = GroupSnapshot.of([each.member for each in reading.group.members], reading.partitions)
    return Assignment(group, group.owner)


def positions(
    reading: GroupReading, *, from_beginning: bool, age_s: Sequence[float] | None = None
) -> dict[tuple[str, int], Position]:
    """Return where the group is in each partition; ``age_s`` has the age of each commit, as the offsets in order."""
    ages = [math.inf] * len(reading.offsets) if age_s is None else age_s
    return {
        partition: Position(at.end, lag_of(at, from_beginning=from_beginning), at.committed is not None, age)
        for (partition, at), age in zip(reading.offsets.items(), ages, strict=True)
    }


def since_assigned(readings: Sequence[GroupReading]) -> Sequence[GroupReading]:
    """Return the newest of these readings, as many as have the same assignment."""
    now, start = owned_by(readings[-1]), len(readings) - 1
    while start and owned_by(readings[start - 1]) == now:
        start -= 1
    return readings[start:]


def owned_by(reading: GroupReading) -> dict[str, Mapping[str, Sequence[int]]]:
    """Return the partitions of each member, by its id."""
    return {each.member.id: each.member.owned for each in reading.group.members}
