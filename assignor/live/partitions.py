"""The state of the partitions of one group: applies the stages that work by partition in order."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from loadwise.assignor.live.arrivals import Arrivals, arrived, prior
from loadwise.assignor.live.backlog import Backlog, Progress, progressed, waited
from loadwise.assignor.live.index import PartitionIndex, Table, no_partitions
from loadwise.assignor.live.own_costs import OwnCosts, learned
from loadwise.assignor.live.reading import Reading
from loadwise.assignor.live.tuning import Tuning
from loadwise.assignor.model import Floats, GroupSnapshot

_FORGOTTEN, _FEW = 2, 100
"""Limit of all known partitions: this many times those of the group, and some, since it may read others again."""


@dataclass(frozen=True, eq=False, slots=True)
class PartitionState(Table):
    """The state of all partitions after a reading."""

    arrivals: Arrivals = field(default_factory=Arrivals)
    progress: Progress = field(default_factory=Progress)
    backlog: Backlog = field(default_factory=Backlog)
    end: Floats = field(default_factory=no_partitions)
    """float64[P]: the ends of partitions, NaN if the newest reading lacks them."""
    went_on: Floats = field(default_factory=no_partitions)
    """float64[P]: records processed between the two newest readings."""
    read_at_ms: int | None = None
    """When the newest reading was taken; None before the first."""
    own: OwnCosts = field(default_factory=OwnCosts)


class Partitions:
    """The partitions by number, and their state, which grows and shrinks as a whole."""

    def __init__(self, tuning: Tuning, slack_s: float) -> None:
        self._tuning, self._slack_s = tuning, slack_s
        self.index = PartitionIndex()
        self.state = PartitionState()

    def prior(self, ends: Mapping[tuple[str, int], int], at_ms: int) -> None:
        """Take in the ends of partitions before the first reading, or before the first in a long time."""
        before = self.index.array(ends)
        state = self._spread()
        nothing = np.full(len(before), np.nan)  # it is no second reading of the backlog
        self.state = replace(
            state,
            arrivals=prior(state.arrivals, before, at_ms),
            backlog=replace(state.backlog, newest=nothing),
        )

    def read(
        self, partitions: Collection[tuple[str, int]], positions: Floats, now_ms: int, slack_s: Floats | None = None
    ) -> None:
        """Take in a reading; ``positions`` is float64[n, 4], the columns are the fields of a `Position`.

        ``slack_s``, float64[known partitions], is the time between two commits where it is not as configured.
        """
        rows = self.index.rows(partitions)
        state = self._spread()
        reading = Reading.of(self.index, rows, positions, now_ms)
        arrivals = arrived(state.arrivals, reading.end, now_ms, self._tuning.arrivals)
        progress, went_on = progressed(state.progress, reading)
        each_s = np.full(len(reading.end), self._slack_s)
        if slack_s is not None:
            each_s[: len(slack_s)] = slack_s
        backlog = waited(state.backlog, reading, arrivals.rate, each_s)
        self.state = PartitionState(arrivals, progress, backlog, reading.end, went_on, now_ms, state.own)

    def learn(self, own: Mapping[str, Floats]) -> bool:
        """Take in a user's own loads, by topic the load of each partition; return whether costs have changed."""
        state = self.state
        costs = learned(state.own, self.index.from_topics(own), state.arrivals.rate, self._tuning.own_cost)
        self.state = replace(state, own=costs)
        return costs.cost is not state.own.cost

    def include(self, group: GroupSnapshot) -> None:
        """Number all partitions of a group; drop those that it no longer reads once they are the larger part."""
        self.index.add(
            (topic, number)
            for topic, count in zip(group.topics, np.diff(group.topic_start).tolist(), strict=True)
            for number in range(count)
        )
        self.state = self._spread()
        if len(self.index) > _FORGOTTEN * group.size + _FEW:
            rows = self.index.rows_of(group)
            self.state = self.state.pick(rows)
            self.index.keep(rows)

    def _spread(self) -> PartitionState:
        new = len(self.index) > len(self.state.end)
        return self.state.spread(len(self.index)) if new else self.state
