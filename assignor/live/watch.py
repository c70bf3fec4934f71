"""A group under watch: readings in, loads and decisions out. The leader of a group has one, and so may a coordinator.

Pure: readings are given to it with their time, and what it decides is for its caller to do.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from loadwise.assignor.live.activity import Activity
from loadwise.assignor.live.capacity import Capacities, CapacityEstimates
from loadwise.assignor.live.costs import LearnedCosts, MeanCosts
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.demand import backlog, demand, horizon_s
from loadwise.assignor.live.index import PartitionIndex
from loadwise.assignor.live.judgement import Judgement, compare, judge, overfull, too_slow
from loadwise.assignor.live.rates import ArrivalRates
from loadwise.assignor.live.restraint import Restraint
from loadwise.assignor.live.scaling import MembersWanted, members_that_do
from loadwise.assignor.live.seen import Seen
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import Tuning
from loadwise.assignor.model import NOBODY, Assignment, Assignor, Floats, GroupSnapshot, Ints, Member

_NEVER_A_BACKLOG = 10.0
"""So few records waiting are no backlog, however slowly they come."""
_FORGOTTEN, _FEW = 2, 100
"""Partitions that the group has given up are kept up to so many times those that it has, and some: it may return."""
_ONE_COST = 0.25
"""Octaves between the mean cost of a member's records lately and that of those that it has now."""
_STUCK_MS, _STUCK_COMMITS = 10_000, 2.0
"""A backlog in which nothing was committed for so long, and for so many commits, is not what keeps its member busy."""
_BACKLOG_S = 1.0
"""A member lags where more than so many seconds of its arrivals wait."""


class Position(NamedTuple):
    """Where a partition ends, and how much of it the group still has to read."""

    end: int
    """Offset of the next record to be written; where the group reads committed records only, the last stable offset."""
    lag: int
    """Records from the group's committed offset to there."""
    committed: bool = True
    """Whether the group has committed; otherwise it is only presumed where the group begins."""
    age_s: float = math.inf
    """Seconds since the commit, where that is known: what came since then is no backlog yet."""


@dataclass(frozen=True, eq=False, slots=True)
class _Watched:
    """The assignment that is being watched."""

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


class GroupWatch:
    """What is known of one group's load, and whether to ask for a rebalance. Not thread-safe.

    ``slack_s`` is the time between two commits of a member, more or less: so much lag means nothing, or as much as the
    commit is old where that is known and less. ``max_poll_s``: a rebalance ends when the last member has joined, or has
    not polled for so long, as in groups of the classic protocol; 0 where it waits for nobody.
    """

    def __init__(
        self,
        settings: LiveSettings,
        algorithm: Assignor,
        *,
        cooperative: bool = False,
        slack_s: float = 6.0,
        jitter: float = 0.0,
        max_poll_s: float = 0.0,
        tuning: Tuning | None = None,
    ) -> None:
        self.settings, self.tuning = settings, tuning or Tuning()
        self.seen = Seen(self.tuning.seen)
        self.restraint = Restraint(settings, cooperative, jitter, self.tuning.restraint)
        self.estimates = CapacityEstimates(slack_s)
        self.activity = Activity(slack_s, max_poll_s)
        self._members_wanted = MembersWanted(self.tuning.scaling)
        self._wanted: int | None = None
        self.read_at_ms: int | None = None
        """When the newest reading was taken; None before the first."""
        self._algorithm = algorithm
        self._slack_s = slack_s
        self._index = PartitionIndex()
        self._rates = ArrivalRates(self._index)
        self._lag, self._end = np.empty(0), np.empty(0)
        self._waiting, self._last_waiting = np.empty(0), np.empty(0)
        """The backlog: the smaller one of the two newest readings, and that of the newest."""
        self._position = np.empty(0)
        self._fallen = np.empty(0)
        self._stood = np.empty(0)
        """Where a partition stood before a fall that was confirmed, as long as it has not moved since."""
        self._presumed = np.empty(0)
        self._processed = np.empty(0)
        self._went_on_ms = np.empty(0)
        """When something new was committed last."""
        self._mean_costs = MeanCosts()
        self._learned_costs = LearnedCosts()
        self._watched: _Watched | None = None
        self._last_watched: _Watched | None = None
        """The assignment that is watched, or was before the rebalance that is going on."""

    @property
    def costs(self) -> Mapping[str, float]:
        """Topic to what one of its records costs, as users stated or as it was learned; 1 where it is not named."""
        return self.settings.cost or self._learned_costs.of_topic

    @property
    def leads(self) -> bool:
        """Whether there is an assignment to watch."""
        return self._watched is not None

    @property
    def topics(self) -> Sequence[str]:
        """The topics of the assignment that is watched."""
        return () if self._watched is None else self._watched.group.topics

    def owner_of(self, partition: tuple[str, int]) -> str | None:
        """The instance id, or else the member id, of the partition's owner; None where nobody of the group has it."""
        watched = self._watched
        if watched is None or partition[0] not in watched.group.topics:
            return None
        topic = watched.group.topics.index(partition[0])
        row, end = watched.group.topic_start[topic : topic + 2].tolist()
        row += partition[1]
        owner = int(watched.group.owner[row]) if row < end else NOBODY
        return None if owner == NOBODY else watched.names[owner]

    def prior(self, ends: Mapping[tuple[str, int], int], at_ms: int) -> None:
        """Take in where partitions ended before the first reading, or before the first in a long time.

        The log's timestamps tell it.
        """
        self._index.add(ends)
        self._rates.prior(self._index.array(ends), at_ms)
        self._last_waiting = np.empty(0)  # it is no second reading of what waits now

    def read(self, positions: Mapping[tuple[str, int], Position], now_ms: int) -> None:
        """Take in a reading of all partitions that could be read. O(P)."""
        self.read_columns(positions.keys(), np.array(list(positions.values()), np.float64).reshape(-1, 4), now_ms)

    def read_columns(self, partitions: Collection[tuple[str, int]], positions: Floats, now_ms: int) -> None:
        """The same for many partitions: ``positions`` is float64[n, 4], the columns are the fields of a `Position`."""
        if self.read_at_ms is not None and now_ms <= self.read_at_ms:
            return
        before_ms, self.read_at_ms = self.read_at_ms, now_ms
        rows = self._index.rows(partitions)
        end, lag, committed, age = (self._index.spread(rows, column) for column in positions.T)
        self._end = end
        self._rates.update(end, now_ms)
        old, before = self._index.padded(self._position), self._index.padded(self._fallen)
        position = end - lag
        fell = position < old
        believed = np.where(fell & ~(position >= before), old, position)  # a fall must be confirmed by the next reading
        self._processed = np.nan_to_num(self._index.padded(self._processed), nan=0.0)
        before_all = self._processed.copy()
        # The first commit tells where the group began, which only was presumed, and not how far it has come since.
        # Two readings may be wrong in a row: who then stands beyond where it stood has gone on from there.
        stood = np.where(fell & (position >= before), old, self._index.padded(self._stood))
        since = np.where(position >= stood, stood, old)
        went_on = np.where(self._index.padded(self._presumed) > 0, 0.0, np.maximum(believed - since, 0.0))
        self._stood = np.where(position > old, np.nan, stood)
        self._processed += np.nan_to_num(went_on, nan=0.0)
        self._went_on_ms = np.where(went_on > 0, now_ms, self._index.padded(self._went_on_ms))
        self._presumed = np.where(np.isnan(end), self._index.padded(self._presumed), 1.0 - committed)
        self._position = np.where(np.isnan(end), old, believed)
        self._fallen = np.where(fell, position, np.where(np.isnan(end), before, np.nan))
        self._lag = np.where(np.isnan(lag), self._index.padded(self._lag), lag)
        waiting = backlog(lag, self._rates.rates(), np.fmin(age, self._slack_s))
        # Of two readings the smaller backlog counts: one that is wrong must move nothing.
        last = self._index.padded(self._last_waiting)
        self._waiting = np.where(np.isnan(lag), self._index.padded(self._waiting), np.fmin(waiting, last))
        self._last_waiting = np.where(np.isnan(lag), last, waiting)
        if self._watched is not None:
            since_ms = now_ms if before_ms is None else before_ms
            # A backlog that nobody can read, since its broker is away, tells nothing of its member.
            read = np.where(np.isnan(end), math.nan, 1.0)
            self._observe(self._watched, self._processed - before_all, read, since_ms, now_ms)

    def noted(self, at_ms: Mapping[str, int], now_ms: int) -> None:
        """Take in when members have written the notes that the newest reading has, by their own clocks."""
        watched = self._watched
        if watched is None or not at_ms:
            return
        cost = self._of_group(watched, self._index.of_topics(self.costs, 1.0)) if self.costs else 1.0
        end, done, rate = (
            self._of_group(watched, each) for each in (self._end, self._processed, self._rates.confirmed())
        )
        behind = self.seen.saw(at_ms, end=end, done=done * cost, rate=rate * cost, cost=cost, now_ms=now_ms)
        for member, pace in behind.items():
            self.estimates.seen(member, pace, now_ms)

    def measured(self, member: str, per_s: float, now_ms: int) -> None:
        """Take in how many of its records a member processes in a busy second, as it has measured it; 0 for nothing."""
        speed, _ = self._learned_costs.speed_of(member)
        if not speed and per_s > 0 and self._reads_one_cost(member):
            speed = per_s * self._mean_costs.of(member)
        self.estimates.measured(member, speed, now_ms)

    def _reads_one_cost(self, member: str) -> bool:
        """Whether all its records cost the same, now and lately: a number of mixed ones tells no speed. O(P)."""
        watched, costs = self._last_watched, self._learned_costs.of_topic
        if not costs:
            return True
        if watched is None or member not in watched.names:
            return False  # what it has read is not known
        group = watched.group
        mine = set(group.topic_of[group.owner == watched.names.index(member)].tolist())
        each = {costs.get(group.topics[topic], 1.0) for topic in mine}
        return len(each) == 1 and abs(math.log2(self._mean_costs.of(member) / each.pop())) < _ONE_COST

    def took(self, member: str, each_s: Mapping[str, float], now_ms: int) -> None:
        """Take in for how many seconds a member works on a record of each topic, as it has measured it."""
        if not self.settings.cost:
            self._learned_costs.told(member, each_s, now_ms)

    def learn_costs(self) -> bool:
        """Learn from what members took for their records; whether a cost has changed. O(P) where there is news."""
        if not self._learned_costs.news:
            return False
        rates = {topic: float(np.nansum(each)) for topic, each in self._index.by_topic(self._rates.rates()).items()}
        old = self._cost()
        if not self._learned_costs.settle(rates):
            return False
        if self._last_watched is not None:
            rate = self._of_group(self._last_watched, self._rates.rates() * old)
            changed = self._of_group(self._last_watched, self._rates.rates() * self._cost())
            before, after = self._sums(self._last_watched, rate), self._sums(self._last_watched, changed)
            factors = np.where((before > 0) & (after > 0), after / np.where(before > 0, before, 1.0), 1.0).tolist()
            of_member = dict(zip(self._last_watched.names, factors, strict=True))
            self._mean_costs.rescale(of_member)
            self.estimates.rescale(of_member)
            for member in of_member:
                self.estimates.measured(member, *self._learned_costs.speed_of(member))
        return True

    def loads(self) -> dict[str, Floats]:
        """Topic to the demand of each partition in records/s, NaN where unknown: what to assign by."""
        capacity = None
        if self._watched is not None and self.read_at_ms is not None:
            known = self.estimates.of(self._watched.stated, self.read_at_ms)
            capacity = float(known.per_s.sum()) if known.known else None
        return self._index.by_topic(self._demand(self._rates.confirmed(), capacity))

    def capacities(self, members: Sequence[Member], stated: Mapping[str, float], now_ms: int) -> list[Member]:
        """The members with their capacities, learned where users gave none (``stated`` 0, by instance id or id)."""
        learned = self.estimates.of({name_of(member): stated[member.id] for member in members}, now_ms)
        return [
            replace(member, capacity=float(capacity), capacity_known=reliable or stated[member.id] > 0)
            for member, capacity, reliable in zip(
                members, learned.per_s.tolist(), learned.reliable.tolist(), strict=True
            )
        ]

    def assigned(
        self,
        target: Assignment,
        stated: Mapping[str, float],
        *,
        generation: int,
        now_ms: int,
        duration_ms: int,
        cause: str = "",
    ) -> Decision:
        """Watch an assignment from now on, made by a rebalance that took that long; ``stated`` as in `capacities`.

        Answers what the rebalance has brought, by the loads that it went by.
        """
        group = replace(target.group, owner=target.owner)
        names = tuple(instance or member for member, instance in zip(group.members, group.instance_ids, strict=True))
        self._index.add(
            (topic, number)
            for topic, count in zip(group.topics, np.diff(group.topic_start).tolist(), strict=True)
            for number in range(count)
        )
        self._forget(group)
        watched = self._watched = self._last_watched = _Watched(
            group=group,
            rows=self._index.rows_of(group),
            names=names,
            stated={name: stated.get(member, 0.0) for name, member in zip(names, group.members, strict=True)},
            too_slow=tuple(names[member] for member in too_slow(group).tolist()),
            generation=generation,
        )
        self.estimates.watch(names, now_ms)
        self.activity.watch(names, now_ms, duration_ms)
        self.seen.begin(names, group.owner)
        self._learned_costs.keep(names)
        self.restraint.rebalanced(now_ms, duration_ms)
        capacities = self.estimates.of(watched.stated, now_ms)
        weight = np.zeros(group.size) if group.load is None else np.nan_to_num(group.load, nan=0.0)
        judged = compare(replace(target.group, load=weight), target.owner, capacities)
        return self._decision(watched, judged, capacities, now_ms, ask=False, reason=cause)

    def _forget(self, group: GroupSnapshot) -> None:
        """Forget what the group has given up, once that is the larger part of what is known."""
        if len(self._index) <= _FORGOTTEN * group.size + _FEW:
            return
        rows = self._index.rows_of(group)
        self._rates.keep(rows)

        def kept(array: Floats) -> Floats:
            return PartitionIndex.pick(self._index.padded(array), rows)

        self._lag, self._waiting, self._last_waiting = kept(self._lag), kept(self._waiting), kept(self._last_waiting)
        self._end = kept(self._end)
        self._position, self._fallen = kept(self._position), kept(self._fallen)
        self._presumed, self._processed = kept(self._presumed), kept(self._processed)
        self._stood, self._went_on_ms = kept(self._stood), kept(self._went_on_ms)
        self._index.keep(rows)

    def unwatch(self) -> None:
        """Another member leads now, or the group has begun a rebalance."""
        self._watched = None

    def decide(self, now_ms: int) -> Decision | None:
        """Judge the newest reading; None where there is nothing to judge yet."""
        watched = self._watched
        if watched is None or self.read_at_ms is None or not self._rates.measured:
            return None
        capacities = self.estimates.of(watched.stated, now_ms)
        judged = self._judge(watched, self._rates.rates(), capacities)
        self._wanted = self._want(judged, capacities, now_ms)
        if not judged.known:
            reason = "what members can process is not known, since nobody with a backlog was seen to process it"
            soon = bool(self.seen.suspects)
            self.restraint.unjudged(now_ms)
            return self._decision(watched, judged, capacities, now_ms, ask=False, reason=reason, soon=soon)
        refusal = self.restraint.refusal(now_ms, worst=judged.worst, best=judged.best, moved_share=judged.moved_share)
        if refusal is None:
            # It goes by what a second reading has confirmed, and so must be worth it by that.
            judged = self._judge(watched, self._rates.confirmed(), capacities)
            if judged.gain(self.settings.healthy) < self.settings.least_gain:
                refusal = "only one reading has shown it yet"
        still = self.activity.standing_still(now_ms) if refusal is None else {}
        if still:
            members = ", ".join(f"{member} for {seconds:.0f} s" for member, seconds in still.items())
            refusal = f"a rebalance would wait for who has a backlog and processes none of it: {members}"
        reason = refusal or ("a rebalance would help" if self.settings.dry_run else "asking for a rebalance")
        ask, waiting = refusal is None, bool(still)
        soon = bool(self.seen.suspects) or self.restraint.unsure
        return self._decision(watched, judged, capacities, now_ms, ask=ask, reason=reason, waiting=waiting, soon=soon)

    def _want(self, judged: Judgement, capacities: Capacities, now_ms: int) -> int | None:
        load = judged.group.load
        if load is None or not (capacities.known and capacities.proven.any()):
            return None
        return self._members_wanted.update(load, capacities.per_s, self.settings.healthy, now_ms)

    def asked(self, decision: Decision) -> None:
        """The caller has asked for the rebalance that was decided."""
        judged = decision.judgement
        self.restraint.asked(decision.now_ms, judged.worst, judged.best, self.settings.healthy)

    def _decision(
        self,
        watched: _Watched,
        judged: Judgement,
        capacities: Capacities,
        now_ms: int,
        *,
        ask: bool,
        reason: str,
        waiting: bool = False,
        soon: bool = False,
    ) -> Decision:
        rate = self._of_group(watched, self._rates.rates() * self._cost())
        healthy, per_s, missing = self.settings.healthy, capacities.per_s, 0
        if capacities.known and bool(capacities.proven.all()) and float(np.nansum(rate)) > per_s.sum():
            missing = max(members_that_do(np.nan_to_num(rate, nan=0.0), per_s, healthy) - len(per_s), 0)
        return Decision(
            generation=watched.generation,
            now_ms=now_ms,
            ask=ask,
            reason=reason,
            exhausted=self.restraint.newly_exhausted,
            waiting=waiting,
            soon=soon,
            members=watched.names,
            capacity_per_s=capacities.per_s,
            judgement=judged,
            lag=self._sums(watched, self._of_group(watched, self._lag)),
            missing=missing,
            wanted=self._wanted,
            settings=self.settings,
            overfull=overfull(watched.group, rate, self._worked_on(watched, now_ms), capacities),
            too_slow=watched.too_slow,
        )

    def _worked_on(self, watched: _Watched, now_ms: int) -> Floats:
        """float64[P]: the backlog of each partition; NaN where its member stands still, which tells nothing of it."""
        silent = self.activity.silent_ms(now_ms)
        works = np.array([*(name not in silent for name in watched.names), False])  # and nobody does not
        return np.where(works[watched.group.owner], self._of_group(watched, self._waiting), math.nan)

    def _judge(self, watched: _Watched, rate: Floats, capacities: Capacities) -> Judgement:
        load = self._demand(rate, float(capacities.per_s.sum()) if capacities.known else None)
        return judge(watched.group, self._of_group(watched, load), capacities, self._algorithm, self.settings)

    def _demand(self, rate: Floats, capacity: float | None) -> Floats:
        cost = self._cost()
        waiting = np.nan_to_num(self._index.padded(self._waiting), nan=0.0) * cost
        rate, recent = rate * cost, self._rates.recent() * cost
        # Topics that the group has given up, or that are deleted, stay in the index, and ask nothing of its members.
        asking = slice(None) if self._watched is None else self._watched.rows
        # Moving partitions for a backlog takes two rebalances: when it is gone, they are best moved back.
        tuning = self.tuning.demand
        shortest_s = tuning.drain_s * (tuning.saving if self.restraint.saves(self.read_at_ms or 0) else 1.0)
        horizon = horizon_s(waiting[asking], rate[asking], capacity, shortest_s)
        return demand(rate, recent, waiting, horizon)

    def _cost(self) -> Floats | float:
        """float64[P]: what a record of each partition costs; 1 where all cost the same, as far as that is known."""
        return self._index.of_topics(self.costs, 1.0) if self.costs else 1.0

    def _observe(self, watched: _Watched, went_on: Floats, read: Floats, before_ms: int, now_ms: int) -> None:
        rate = self._of_group(watched, self._rates.rates() * read)
        waiting = self._of_group(watched, self._waiting * read)
        least = np.maximum(_BACKLOG_S * self._sums(watched, rate), _NEVER_A_BACKLOG)
        lagging = self._sums(watched, waiting) > least
        # One that stands while its member goes on with others is paused, or has a record that is tried again and again.
        goes_on = now_ms - self._of_group(watched, self._went_on_ms) <= max(
            _STUCK_MS, _STUCK_COMMITS * self._slack_s * 1000
        )
        saturated = self._sums(watched, np.where(goes_on, waiting, 0.0)) > least
        saturated |= lagging & (self._sums(watched, goes_on.astype(float)) == 0)
        cost = self._cost()
        processed = self._sums(watched, self._of_group(watched, self._processed * cost))
        committed = self._sums(watched, self._of_group(watched, went_on)) > 0
        self.activity.saw(watched.names, committed, lagging, before_ms, now_ms)
        if self.costs or len(watched.group.topics) > 1:
            records, paid = (self._sums(watched, self._of_group(watched, each)) for each in (went_on, went_on * cost))
            self._mean_costs.saw(watched.names, records, paid, now_ms - before_ms)
        self.estimates.update(processed, saturated, now_ms, since_ms=before_ms)  # it is the backlog of both readings

    def _of_group(self, watched: _Watched, array: Floats) -> Floats:
        return PartitionIndex.pick(self._index.padded(array), watched.rows)

    def _sums(self, watched: _Watched, values: Floats) -> Floats:
        """float64[M]: the sum over each member's partitions, unknown ones left out."""
        owner = watched.group.owner
        given = (owner != NOBODY) & ~np.isnan(values)
        return np.bincount(owner[given], values[given], len(watched.names)).astype(np.float64)


def name_of(member: Member) -> str:
    """What a member's capacity is remembered by."""
    return member.instance_id or member.id
