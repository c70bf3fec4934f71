"""A group under watch, for its leader or a coordinator: readings in, loads and decisions out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from loadwise.assignor.live.arrivals import lasting
from loadwise.assignor.live.capacity import Capacities
from loadwise.assignor.live.common import Common
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.demand import demand
from loadwise.assignor.live.events import Asked, Assigned, Event, Joined, PriorEnds, Read, Rebalancing, Switched
from loadwise.assignor.live.judgement import Judgement, compare, judge, overfull
from loadwise.assignor.live.knowledge import GroupKnowledge
from loadwise.assignor.live.payback import Payback
from loadwise.assignor.live.reading import Position
from loadwise.assignor.live.restraint import Refusal, Restraint, gained
from loadwise.assignor.live.scaling import MembersMissing, MembersWanted, members_missing
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.shadow import Queues, Shadow
from loadwise.assignor.live.tuning import Tuning
from loadwise.assignor.live.watched import Watched
from loadwise.assignor.model import Assignor, Floats

_UNKNOWN = "the capacity of members is not known, since no member was seen to process a backlog"


class GroupWatch:
    """Decides by the load of one group whether to request a rebalance. Not thread-safe.

    ``slack_s`` is about the time between two commits of a member: the arrivals of that time are no backlog, or those
    since the commit if that is known to be shorter. None: applications commit by themselves, so it is learned for each
    member. ``max_poll_s``: a rebalance of a classic group waits this long for a member that does not poll
    (max.poll.interval.ms); 0 if a rebalance does not wait for members.
    """

    def __init__(
        self,
        settings: LiveSettings,
        algorithm: Assignor,
        *,
        cooperative: bool = False,
        slack_s: float | None = 6.0,
        max_poll_s: float = 0.0,
        tuning: Tuning | None = None,
    ) -> None:
        self.tuning = tuning or Tuning()
        self.knowledge = GroupKnowledge(settings.cost, slack_s, max_poll_s, self.tuning)
        self.settings, self._algorithm = settings, algorithm
        self.restraint = Restraint(settings, cooperative, self.tuning.restraint)
        self._common = Common(self.tuning.common)
        self.off = False  # whether a member has turned rebalances for the load off
        self.switched_off = False  # whether `loadwise live off` has
        self._payback, self._shadow = Payback(), Shadow(self.tuning.shadow)
        self._known = False  # whether capacities are known
        self._held = False  # whether most members fall behind
        self._members_wanted = MembersWanted(self.tuning.scaling)
        self._members_missing = MembersMissing(self.tuning.scaling)

    def read(self, positions: Mapping[tuple[str, int], Position], now_ms: int) -> None:
        """Take in a reading of all readable partitions; `decide` judges it. O(P)."""
        self.knowledge.read(positions, now_ms)

    def measured(self, member: str, per_s: float, now_ms: int) -> None:
        """Take in a member's measurement of the records that it processes in a busy second; 0 for none."""
        self.knowledge.measured(member, per_s, now_ms)

    def handle(self, event: Event) -> Decision | None:
        """Take in an event; return the decision after a reading or an assignment."""
        known = self.knowledge
        match event:
            case PriorEnds():
                known.partitions.prior(event.ends, event.at_ms)
            case Joined():
                self.off = event.off
                known.listen(event.said, event.at_ms, again=event.memory is not None)
                if event.memory is not None:
                    self.restraint.remember(event.memory, event.at_ms)
            case Assigned():
                return self._assigned(event)
            case Read():
                known.read_columns(event.partitions, event.positions, event.at_ms, event.own)
                if known.leads:
                    known.noted(event.said, event.at_ms)
                    known.listen(event.said, event.at_ms)
                    return self.decide(event.at_ms)
            case Asked():
                self.restraint.asked(event.at_ms)
                self._payback.requested = not self.settings.dry_run
            case Switched():
                self.switched_off = event.off
            case Rebalancing():
                known.rebalancing()
        return None

    def even_up_to(self, now_ms: int, *, asking: bool = False) -> float:
        """Return `GroupSnapshot.even_up_to` of the next assignment; ``asking``: after a request at this time."""
        patient = self.restraint.patient or self.restraint.exhausted(now_ms, asking=asking)
        if not self._known:
            return 0.0 if self._is_behind and not self._idle else math.inf
        return math.inf if self._idle or self._held or patient or self._shadow.loses else self.settings.healthy

    @property
    def _idle(self) -> bool:
        return self.off or self.switched_off or self.settings.dry_run

    @property
    def _is_behind(self) -> bool:
        """Whether more waits than arrives: that is certain, and shows what members can process."""
        state = self.knowledge.partitions.state
        waiting, rate = float(np.nansum(state.backlog.waiting)), float(np.nansum(state.arrivals.rate))
        return waiting / self.tuning.demand.drain_s > rate

    def loads(self) -> dict[str, Floats]:
        """Return topic to the demand of each partition in records/s, NaN if unknown: the weights of an assignment."""
        known, capacity = self.knowledge, None
        if known.in_force is not None and known.read_at_ms is not None:
            capacity = known.estimates.of(known.in_force.stated, known.read_at_ms).total_per_s
        return known.partitions.index.by_topic(self._demand(known.partitions.state.arrivals.confirmed, capacity))

    def _assigned(self, event: Assigned) -> Decision:
        """Watch the assignment of a rebalance; return its effect, by the loads that the assignment used."""
        before, self._algorithm = self.knowledge.watched, event.algorithm or self._algorithm
        watched, group = self.knowledge.watch(event), event.target.group
        self._shadow.assigned(event.duration_ms, requested=self._payback.requested)
        self._payback.assigned(before, watched)
        self.restraint.rebalanced(event.duration_ms)
        capacities = self.knowledge.estimates.of(watched.stated, event.at_ms)
        weight = np.zeros(group.size) if group.load is None else np.nan_to_num(group.load, nan=0.0)
        judged = compare(replace(group, load=weight), event.target.owner, capacities)
        return self._decision(watched, judged, capacities, event.at_ms, event.cause)

    def decide(self, now_ms: int) -> Decision | None:
        """Judge the newest reading; None if there is nothing to judge yet."""
        known = self.knowledge
        watched, arrivals = known.in_force, known.partitions.state.arrivals
        if watched is None or known.read_at_ms is None or not arrivals.measured:
            return None
        capacities = known.estimates.of(watched.stated, now_ms)
        judged = self._judge(watched, arrivals.rate, capacities)
        self._want(judged, capacities, now_ms)
        soon = bool(known.seen.suspects)
        self._known = judged.known
        if not judged.known:
            self._shadow.forget()
            self.restraint.unjudged(now_ms)
            return replace(self._decision(watched, judged, capacities, now_ms, _UNKNOWN), soon=soon)
        self._compare(watched, known.estimates.recovered(watched.stated, now_ms), now_ms)
        gain_s = self._payback.gain_s(judged, self.settings.healthy, self.tuning.restraint.longest_step_s, now_ms)
        self.restraint.paid(gain_s)
        grows = known.seen.grew(watched.names, now_ms)
        common = self._common.refusal(now_ms, judged, grows=grows, lagging=known.lagging)
        self._held = common is not None
        refused = self.restraint.refusal(
            now_ms,
            worst=judged.worst,
            best=judged.best,
            moved_share=judged.moved_share,
            redone_s=self._redone_s(watched, judged, now_ms),
            saves_lag=(self._shadow.saved_s or 0.0) >= 0,
        )
        if refused is None:
            # The assignment uses rates confirmed by a second reading, so the rebalance must be worth its cost by these,
            # as far as the newest reading still shows them.
            judged = self._judge(watched, lasting(arrivals, self.tuning.arrivals), capacities)
            refused = self._unconfirmed(judged) or known.activity.refusal(now_ms) or common
        reason = "a rebalance would help" if self.settings.dry_run else "asking for a rebalance"
        if refused is not None and (untried := self._untried(watched, capacities, now_ms)):
            refused, reason = None, f"{reason}, so that members without a partition show their speed: {untried}"
        elif refused is not None and self._restores(judged, now_ms):
            refused, reason = None, f"{reason}, so that numbers of partitions are equal again: the burst is over"
        if refused is None:
            return replace(self._decision(watched, judged, capacities, now_ms, reason), ask=True, soon=soon)
        return replace(
            self._decision(watched, judged, capacities, now_ms, refused.reason),
            exhausted=refused.exhausted,
            waiting=refused.waiting,
            soon=soon or refused.soon,
        )

    def _compare(self, watched: Watched, capacities: Capacities, now_ms: int) -> None:
        """Estimate what the same arrivals would have cost under ``sticky``."""
        state = self.knowledge.partitions.state
        if state.own:  # loads of minutes say too roughly what members can process
            self._shadow.forget()
            return
        cost = np.broadcast_to(self.knowledge.cost(), state.end.shape)
        queues = Queues(*map(watched.of_group, (state.end, state.backlog.waiting, cost)))
        self._shadow.read(watched, queues, capacities.per_s, now_ms)

    def _redone_s(self, watched: Watched, judged: Judgement, now_ms: int) -> float:
        """Return the most seconds of a member's work that is done again if members do not commit when they join."""
        commits = self.knowledge.commits
        if not commits.by_hand:
            return 0.0
        rarely_s = np.maximum(self.knowledge.activity.uncommitted_s(watched.names, now_ms) - commits.least_s, 0.0)
        return float((rarely_s * np.minimum(judged.before, 1.0)).max(initial=0.0))

    def _untried(self, watched: Watched, capacities: Capacities, now_ms: int) -> str:
        """Return the members that an old measurement leaves without a partition, if they may be tried now."""
        if now_ms - watched.since_ms < self.tuning.capacity.half_life_ms or self.restraint.exhausted(now_ms):
            return ""
        reliable = dict(zip(watched.names, capacities.reliable, strict=True))
        untried = [name for name in watched.too_slow if not reliable[name] and not watched.stated[name]]
        return "" if self.knowledge.activity.refusal(now_ms) else ", ".join(untried)

    def _restores(self, judged: Judgement, now_ms: int) -> bool:
        restores = self._payback.restores(judged.group, now_ms)
        return restores and not self.restraint.exhausted(now_ms) and not self.knowledge.activity.refusal(now_ms)

    def _unconfirmed(self, judged: Judgement) -> Refusal | None:
        gain = gained(judged.worst, judged.best, self.settings.healthy)
        return Refusal("only one reading has shown it yet", soon=True) if gain < self.settings.least_gain else None

    def _want(self, judged: Judgement, capacities: Capacities, now_ms: int) -> None:
        self._members_wanted.newest = None
        if judged.group.load is not None and capacities.known and capacities.proven.any():
            self._members_wanted.update(judged.group.load, capacities.per_s, self.settings.healthy, now_ms)

    def _decision(
        self, watched: Watched, judged: Judgement, capacities: Capacities, now_ms: int, reason: str
    ) -> Decision:
        state, silent = self.knowledge.partitions.state, self.knowledge.activity.silent_ms(now_ms)
        each = (state.arrivals.rate, state.arrivals.confirmed)
        rate, confirmed = (np.nan_to_num(watched.of_group(per_s * self.knowledge.cost()), nan=0.0) for per_s in each)
        missing = members_missing(confirmed, capacities, self.settings.healthy)
        # The backlog of a member that stands still says nothing about its partitions.
        works = np.array([*(name not in silent for name in watched.names), False])  # unowned partitions
        worked_on = np.where(works[watched.group.owner], watched.of_group(state.backlog.waiting), np.nan)
        return Decision(
            now_ms=now_ms,
            reason=reason,
            generation=watched.generation,
            members=watched.names,
            capacity_per_s=capacities.per_s,
            judgement=judged,
            lag=watched.sums(state.backlog.lag),
            missing=self._members_missing.update(missing, now_ms),
            wanted=self._members_wanted.newest,
            settings=self.settings,
            lag_s=self._shadow.lag_s,
            saved_s=self._shadow.saved_s,
            loses=self._shadow.loses,
            overfull=overfull(watched.group, rate, worked_on, capacities),
            too_slow=watched.too_slow,
        )

    def _judge(self, watched: Watched, rate: Floats, capacities: Capacities) -> Judgement:
        load = self._demand(rate, capacities.total_per_s)
        return judge(
            watched.group,
            watched.of_group(load),
            capacities,
            self._algorithm,
            self.settings,
            even_up_to=self.even_up_to(self.knowledge.read_at_ms or 0, asking=True),
        )

    def _demand(self, rate: Floats, capacity_per_s: float | None) -> Floats:
        # Deleted topics, and those that the group no longer reads, stay in the index but add no demand.
        known = self.knowledge
        asking = slice(None) if known.in_force is None else known.in_force.rows
        cost, state = known.cost(), known.partitions.state
        return demand(
            rate * cost,
            state.backlog.waiting * cost,
            asking,
            capacity_per_s=capacity_per_s,
            tuning=self.tuning.demand,
        )
