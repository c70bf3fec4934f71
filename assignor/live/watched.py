"""The assignment under watch: maps the values of partitions to members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from loadwise.assignor.live.events import Assigned
from loadwise.assignor.live.judgement import too_slow
from loadwise.assignor.live.partitions import Partitions, PartitionState
from loadwise.assignor.live.tuning import ActivityTuning
from loadwise.assignor.model import NOBODY, Bools, Floats, GroupSnapshot, Ints


@dataclass(frozen=True, eq=False, slots=True)
class Watched:
    """One assignment of a group."""

    group: GroupSnapshot
    rows: Ints
    """int64[P]: the number of each row of the group in the readings."""
    names: tuple[str, ...]
    """Each member's group instance id, or else its member id: the key of its capacity."""
    stated: Mapping[str, float]
    """The capacities that users set, by those names; 0 if not set."""
    too_slow: tuple[str, ...]
    """The members without a partition because of their speed."""
    generation: int
    since_ms: int
    in_force: bool = True
    """Whether the assignment is in force; False while the group rebalances, or if another member leads."""

    @classmethod
    def of(cls, event: Assigned, partitions: Partitions) -> Self:
        """Return the watched form of an assignment, and number its partitions."""
        group = replace(event.target.group, owner=event.target.owner)
        names = tuple(instance or member for member, instance in zip(group.members, group.instance_ids, strict=True))
        partitions.include(group)
        return cls(
            group=group,
            rows=partitions.index.rows_of(group),
            names=names,
            stated={name: event.stated.get(member, 0.0) for name, member in zip(names, group.members, strict=True)},
            too_slow=tuple(names[member] for member in too_slow(group).tolist()),
            generation=event.generation,
            since_ms=event.at_ms,
        )

    def owner_of(self, partition: tuple[str, int]) -> str | None:
        """Return the name of a partition's owner; None if no member owns it."""
        if partition[0] not in self.group.topics:
            return None
        topic = self.group.topics.index(partition[0])
        row, end = self.group.topic_start[topic : topic + 2].tolist()
        row += partition[1]
        owner = int(self.group.owner[row]) if row < end else NOBODY
        return None if owner == NOBODY else self.names[owner]

    def of_group(self, array: Floats) -> Floats:
        """Return float64[the group's partitions]: their values in an array of all known partitions."""
        return array[self.rows]

    def sums(self, array: Floats) -> Floats:
        """Return float64[M]: the sum of such an array over each member's partitions, without unknown ones."""
        owner, values = self.group.owner, self.of_group(array)
        given = (owner != NOBODY) & ~np.isnan(values)
        return np.bincount(owner[given], values[given], len(self.names)).astype(np.float64)


class MemberReading(NamedTuple):
    """The state of each member after a reading."""

    processed: Floats
    """float64[M]: records of its partitions processed so far, multiplied by their costs."""
    went_on: Bools
    """bool[M]: whether it has committed new offsets since the previous reading."""
    lagging: Bools
    """bool[M]: whether its backlog is more than the arrivals of a moment."""
    left: Bools
    """bool[M]: whether it has records to commit, more than a few."""
    saturated: Bools
    """bool[M]: whether it lags because it is at its capacity."""


def observe(
    watched: Watched, state: PartitionState, cost: Floats | float, slack_s: float, tuning: ActivityTuning
) -> MemberReading:
    """Return the state of the members after a reading; ``cost`` is the cost of a record of each partition."""
    now_ms, progress = state.read_at_ms or 0, state.progress
    # A backlog whose broker is unreachable says nothing about the member.
    unread = np.isnan(state.end)
    rate, waiting = (np.where(unread, np.nan, each) for each in (state.arrivals.rate, state.backlog.waiting))
    least = np.maximum(tuning.backlog_s * watched.sums(rate), tuning.never_a_backlog)
    lagging = watched.sums(waiting) > least
    # A partition that stands still while its member makes progress is paused, or the member retries a record.
    goes_on = now_ms - progress.went_on_ms <= tuning.still_ms(slack_s)
    saturated = watched.sums(np.where(goes_on, waiting, 0.0)) > least
    saturated |= lagging & (watched.sums(goes_on.astype(float)) == 0)
    processed = watched.sums(progress.processed * cost)
    left = watched.sums(np.where(unread, np.nan, state.backlog.lag)) > tuning.never_a_backlog
    return MemberReading(processed, watched.sums(state.went_on) > 0, lagging, left, saturated)
