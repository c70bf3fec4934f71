"""The knowledge of one group: its readings, and the reports and observed rates of its members."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from loadwise.assignor.live.activity import Activity
from loadwise.assignor.live.commits import CommitTimes
from loadwise.assignor.live.costs import TopicCosts
from loadwise.assignor.live.events import Assigned, Said
from loadwise.assignor.live.evidence import CapacityEstimates
from loadwise.assignor.live.partitions import Partitions
from loadwise.assignor.live.reading import Position
from loadwise.assignor.live.seen import Seen
from loadwise.assignor.live.tuning import Tuning
from loadwise.assignor.live.watched import Watched, observe
from loadwise.assignor.model import Floats, Member


class GroupKnowledge:
    """The stages of a reading up to capacity, and the assignment under watch; arguments as of `GroupWatch`."""

    def __init__(self, costs: Mapping[str, float], slack_s: float | None, max_poll_s: float, tuning: Tuning) -> None:
        self.tuning, self.commits = tuning, CommitTimes(slack_s, tuning.commits)
        self.partitions = Partitions(tuning, self.commits.least_s)
        self.estimates = CapacityEstimates(self.commits.least_s, tuning.capacity)
        self.seen = Seen(tuning.seen)
        self.activity = Activity(self.commits, max_poll_s, tuning.activity)
        self._costs = TopicCosts(costs, tuning.cost)
        self.lagging = np.empty(0, bool)  # bool[M]: members with a backlog in the newest reading
        self.watched: Watched | None = None
        """The assignment under watch, or the last one during a rebalance."""

    @property
    def size(self) -> int:
        """The number of known partitions."""
        return len(self.partitions.index)

    @property
    def read_at_ms(self) -> int | None:
        """When the newest reading was taken; None before the first."""
        return self.partitions.state.read_at_ms

    @property
    def costs(self) -> Mapping[str, float]:
        """Topic to the cost of one of its records, stated by users or learned; 1 for a topic without an entry."""
        return self._costs.of_topic

    @property
    def leads(self) -> bool:
        """Whether there is an assignment to watch."""
        return self.in_force is not None

    @property
    def in_force(self) -> Watched | None:
        """The assignment under watch; None while the group rebalances, or if another member leads."""
        return self.watched if self.watched is not None and self.watched.in_force else None

    def read(self, positions: Mapping[tuple[str, int], Position], now_ms: int) -> None:
        """Take in a reading of all readable partitions. O(P)."""
        self.read_columns(positions.keys(), np.array(list(positions.values()), np.float64).reshape(-1, 4), now_ms)

    def read_columns(
        self,
        partitions: Collection[tuple[str, int]],
        positions: Floats,
        now_ms: int,
        own: Mapping[str, Floats] | None = None,
    ) -> None:
        """Take in a reading as arrays: ``positions`` is float64[n, 4], the columns are the fields of a `Position`.

        ``own`` are the user's own loads, if there are new ones: by topic the load of each partition.
        """
        since_ms = now_ms if self.read_at_ms is None else self.read_at_ms
        if self.read_at_ms is not None and now_ms <= since_ms:
            return
        self.partitions.read(partitions, positions, now_ms, self._slack_s() if self.commits.by_hand else None)
        if own is not None:
            self._learn_own(own)
        watched = self.in_force
        if watched is not None:
            commits = self.commits
            shown = observe(watched, self.partitions.state, self.cost(), commits.least_s, self.tuning.activity)
            commits.saw(watched.names, shown.went_on, shown.left, since_ms, now_ms)
            self.lagging = shown.lagging
            # A backlog begins later than a hang if commits are rare.
            waits = shown.left if commits.by_hand else shown.lagging
            self.activity.saw(watched.names, shown.went_on, waits, since_ms, now_ms)
            # The backlog is that of both readings, so it has existed since the previous one.
            processed, saturated = shown.processed, shown.saturated
            self.estimates.update(processed, saturated, now_ms, since_ms=since_ms, slack_s=commits.longest_s)

    def noted(self, said: Mapping[str, Said], now_ms: int) -> None:
        """Take in the times of the notes in the newest reading, by the members' own clocks."""
        at_ms = {name: each.written_ms for name, each in said.items() if each.written_ms is not None}
        watched, state = self.in_force, self.partitions.state
        if watched is None or not at_ms:
            return
        cost = self.cost()
        each = (state.end * cost, state.progress.processed * cost, state.arrivals.confirmed * cost)
        end, done, rate = (watched.of_group(array) for array in each)
        for member, pace in self.seen.saw(at_ms, end=end, done=done, rate=rate, now_ms=now_ms).items():
            self.estimates.seen(member, pace, now_ms)
        for member, per_s in self.seen.at_least.items():
            self.estimates.outdid(member, per_s)

    def listen(self, said: Mapping[str, Said], now_ms: int, *, again: bool = False) -> None:
        """Take in members' reports; ``again``: another member has led since this one did."""
        for name, each in said.items():
            self.estimates.recalled(name, each.learned_per_s, now_ms, instead=again)
            if each.written_ms is not None:
                self.activity.heard(name, now_ms)
            self.took(name, each.each_s, now_ms)
        self.learn_costs()
        for name, each in said.items():  # in the unit of the costs that were just learned
            self.measured(name, each.per_s, now_ms)

    def measured(self, member: str, per_s: float, now_ms: int) -> None:
        """Take in a member's measurement of the records that it processes in a busy second; 0 for none."""
        speed, _ = self._costs.speed_of(member)
        if self.partitions.state.own:
            speed = self._own_speed(member, per_s)
        elif not speed and per_s > 0:
            speed = per_s * self._costs.of_member(member, self.watched, self.partitions.state.arrivals.rate)
        self.estimates.measured(member, speed, now_ms)

    def took(self, member: str, each_s: Mapping[str, float], now_ms: int) -> None:
        """Take in a member's measurement of the seconds that a record of each topic takes."""
        self._costs.told(member, each_s, now_ms)

    def learn_costs(self) -> bool:
        """Learn costs from the times of records, unless the user's own loads give them; return whether one changed.

        O(P) if there are new times.
        """
        costs, rate = self._costs, self.partitions.state.arrivals.rate
        if not costs.news or self.partitions.state.own:
            return False
        return self._recount(lambda: costs.settle(self.partitions.index.topic_sums(rate)))

    def _learn_own(self, own: Mapping[str, Floats]) -> None:
        """Learn costs from the user's own loads, and forget what members did while all records were alike."""
        is_first = not self.partitions.state.own
        if self._recount(lambda: self.partitions.learn(own)) and is_first:
            self.estimates.forget()

    def _recount(self, learn: Callable[[], bool]) -> bool:
        """Learn costs; if one has changed, count what is known of members in the new unit."""
        rate, watched = self.partitions.state.arrivals.rate, self.watched
        before = rate * self.cost()
        if not learn():
            return False
        self.seen.begin_anew()
        if watched is not None:
            was, now = watched.sums(before), watched.sums(rate * self.cost())
            factors = np.divide(now, was, out=np.ones(len(now)), where=(was > 0) & (now > 0)).tolist()
            self.estimates.rescale(dict(zip(watched.names, factors, strict=True)), watched.since_ms)
            if not self.partitions.state.own:
                for member in watched.names:
                    self.estimates.measured(member, *self._costs.speed_of(member))
        return True

    def capacities(self, members: Sequence[Member], stated: Mapping[str, float], now_ms: int) -> list[Member]:
        """Return the members with their capacities, learned if ``stated``, by member id, is 0."""
        learned = self.estimates.of({name_of(member): stated[member.id] for member in members}, now_ms)
        each = zip(members, learned.per_s.tolist(), learned.reliable.tolist(), strict=True)
        return [
            replace(member, capacity=float(capacity), capacity_known=reliable or stated[member.id] > 0)
            for member, capacity, reliable in each
        ]

    def watch(self, event: Assigned) -> Watched:
        """Watch the assignment of a rebalance."""
        watched = self.watched = Watched.of(event, self.partitions)
        self.lagging = np.zeros(len(watched.names), bool)
        self.estimates.watch(watched.names, event.at_ms)
        self.activity.watch(watched.names, event.at_ms, event.duration_ms)
        self.commits.watch(watched.names, event.at_ms)
        self.seen.begin(watched.names, watched.group.owner)
        self._costs.keep(watched.names)
        return watched

    def rebalancing(self) -> None:
        """Note that a rebalance has begun: the assignment under watch is no longer in force."""
        self.watched = None if self.watched is None else replace(self.watched, in_force=False)

    def _slack_s(self) -> Floats:
        """Return float64[P]: the time between two commits of each partition's owner."""
        slack_s = np.full(self.size, self.commits.least_s)
        if self.watched is not None:
            of_owner = np.array([*map(self.commits.slack_s, self.watched.names), self.commits.least_s])
            slack_s[self.watched.rows] = of_owner[self.watched.group.owner]
        return slack_s

    def _own_speed(self, member: str, per_s: float) -> float:
        """Return a reported speed in the unit of the user's own loads; 0 if the member has too little of it to do.

        A member with few and light records measures what each takes beside its load: a poll, a call.
        """
        if (watched := self.watched) is None or member not in watched.names:
            return 0.0
        rate, place = np.nan_to_num(self.partitions.state.arrivals.rate, nan=0.0), watched.names.index(member)
        records, demand = (float(watched.sums(each)[place]) for each in (rate, rate * self.cost()))
        speed = per_s * demand / records if records else 0.0
        return speed if demand >= self.tuning.own_cost.shown * speed else 0.0

    def cost(self) -> Floats | float:
        """Return float64[P]: the cost of a record of each partition; 1 if all known costs are the same."""
        if own := self.partitions.state.own:
            return np.nan_to_num(own.cost, nan=1.0)
        return self.partitions.index.of_topics(self.costs, 1.0) if self.costs else 1.0


def name_of(member: Member) -> str:
    """Return the key of a member's capacity: its group instance id, or else its member id."""
    return member.instance_id or member.id
