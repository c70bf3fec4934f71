"""The assignment that is being watched: what partitions are to their members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from loadwise.assignor.live.judgement import too_slow
from loadwise.assignor.live.partitions import Partitions, PartitionState
from loadwise.assignor.live.tuning import ActivityTuning
from loadwise.assignor.model import NOBODY, Assignment, Bools, Floats, GroupSnapshot, Ints


@dataclass(frozen=True, eq=False, slots=True)
class Watched:
    """One assignment of a group."""

    group: GroupSnapshot
    rows: Ints
    """int64[P]: the number that each row of the group has in the readings."""
    names: tuple[str, ...]
    """Each member's group instance id, or else its member id: what its capacity is remembered by."""
    stated: Mapping[str, float]
    """What users gave as capacity, by those names; 0 where nothing."""
    too_slow: tuple[str, ...]
    """The members that were left without a partition because of their speed."""
    generation: int
    since_ms: int
    in_force: bool = True
    """Whether the group has it now; it has not while it rebalances, or where another member leads."""

    @classmethod
    def of(
        cls, target: Assignment, stated: Mapping[str, float], generation: int, now_ms: int, partitions: Partitions
    ) -> Self:
        """Watch a target, whose partitions are numbered from now on; ``stated`` is by member id."""
        group = replace(target.group, owner=target.owner)
        names = tuple(instance or member for member, instance in zip(group.members, group.instance_ids, strict=True))
        partitions.include(group)
        return cls(
            group=group,
            rows=partitions.index.rows_of(group),
            names=names,
            stated={name: stated.get(member, 0.0) for name, member in zip(names, group.members, strict=True)},
            too_slow=tuple(names[member] for member in too_slow(group).tolist()),
            generation=generation,
            since_ms=now_ms,
        )

    def owner_of(self, partition: tuple[str, int]) -> str | None:
        """The name of a partition's owner; None where nobody of the group has it."""
        if partition[0] not in self.group.topics:
            return None
        topic = self.group.topics.index(partition[0])
        row, end = self.group.topic_start[topic : topic + 2].tolist()
        row += partition[1]
        owner = int(self.group.owner[row]) if row < end else NOBODY
        return None if owner == NOBODY else self.names[owner]

    def of_group(self, array: Floats) -> Floats:
        """float64[the group's partitions]: what the array of all partitions that were ever read has of them."""
        return array[self.rows]

    def sums(self, array: Floats) -> Floats:
        """float64[M]: the sum of such an array over each member's partitions, unknown ones left out."""
        owner, values = self.group.owner, self.of_group(array)
        given = (owner != NOBODY) & ~np.isnan(values)
        return np.bincount(owner[given], values[given], len(self.names)).astype(np.float64)


class MemberReading(NamedTuple):
    """What a reading shows of each member."""

    processed: Floats
    """float64[M]: records that its partitions have given so far, by what they cost."""
    went_on: Bools
    """bool[M]: whether it has committed anything new since the reading before."""
    lagging: Bools
    """bool[M]: whether more waits than a moment's arrivals."""
    saturated: Bools
    """bool[M]: whether that is since it processes all that it can."""


def observe(
    watched: Watched, state: PartitionState, cost: Floats | float, slack_s: float, tuning: ActivityTuning
) -> MemberReading:
    """Look at the members of an assignment after a reading; ``cost`` is what a record of each partition costs."""
    now_ms, progress = state.read_at_ms or 0, state.progress
    # A backlog that nobody can read, since its broker is away, tells nothing of its member.
    unread = np.isnan(state.end)
    rate, waiting = (np.where(unread, np.nan, each) for each in (state.arrivals.rate, state.backlog.waiting))
    least = np.maximum(tuning.backlog_s * watched.sums(rate), tuning.never_a_backlog)
    lagging = watched.sums(waiting) > least
    # One that stands while its member goes on with others is paused, or has a record that is tried again and again.
    goes_on = now_ms - progress.went_on_ms <= 1000 * max(tuning.still_s, tuning.still_commits * slack_s)
    saturated = watched.sums(np.where(goes_on, waiting, 0.0)) > least
    saturated |= lagging & (watched.sums(goes_on.astype(float)) == 0)
    processed = watched.sums(progress.processed * cost)
    return MemberReading(processed, watched.sums(state.went_on) > 0, lagging, saturated)
