"""The demand of a watched group, as a situation that assignors can be put to. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from loadwise.assignor.model import RECORDS_PER_S
from loadwise.compare.situation import Situation
from loadwise.running_group.members import GroupReading
from loadwise.watch.group import since_assigned, watched


def situation(readings: Sequence[GroupReading], *, window_s: float, from_beginning: bool) -> Situation | None:
    """The group under its demand; None while rates are unknown or nothing can be assigned."""
    now = readings[-1]
    members = [each.member for each in now.group.members if each.member.topics]
    if window_s <= 0 or not members or not now.partitions:
        return None
    return Situation(
        about=f"The group {now.group.group_id}.",
        members=members,
        labels=now.group.labels,
        partitions=now.partitions,
        load=watched(since_assigned(readings), from_beginning=from_beginning).loads(),
        load_unit=RECORDS_PER_S,
        racks=now.racks,
    )
