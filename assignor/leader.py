"""A member's part in keeping its group's load even: measure itself, and watch the group while it leads.

Thread-safe: the client's thread joins and assigns while another thread reads offsets. Decisions are made in
`loadwise.assignor.live`. This module has the clock, the log and the data that members exchange.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from loadwise.assignor.live.causes import Causes
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.events import Asked, Assigned, Event, Joined, PriorEnds, Read, Rebalancing, Said, Switched
from loadwise.assignor.live.history import History, Recorder
from loadwise.assignor.live.knowledge import name_of
from loadwise.assignor.live.notes import CommitNotes, newest, said, speed, stated
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import Tuning
from loadwise.assignor.live.warnings import Warnings
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.live.work import BusyTime
from loadwise.assignor.load.lag import HISTORY_S, LagLoad, PartitionOffsets, lags
from loadwise.assignor.load.polled import PolledLoad
from loadwise.assignor.load.source import LoadSnapshot
from loadwise.assignor.model import RECORDS_PER_S, Assignment, Assignor, Floats, Member
from loadwise.protocol.errors import MalformedBytesError
from loadwise.protocol.live_notes import CommitNote, Compared, LeaderNotes, MemberNotes, Memory, checksum

log = logging.getLogger(__name__)

_FRESH_INTERVALS = 2.0
"""A reading may be used for a rebalance until it is this many intervals old."""
_UNINTERRUPTED_MS = 1_000
"""The assumed cost of a group's first rebalance, which interrupts no member."""


@dataclass(frozen=True, slots=True)
class _Received:
    """What this member is to remember until it joins again, and since when."""

    notes: LeaderNotes = field(default_factory=LeaderNotes)
    at_ms: int = 0

    def memory(self, now_ms: int) -> Memory:
        """What the next leader must know."""
        return self.notes.memory.older(now_ms - self.at_ms)


@dataclass(slots=True)
class _Joining:
    """The rebalance that this member takes part in, or the newest one."""

    began_ms: int | None = None
    stated: dict[str, float] = field(default_factory=dict)
    """What users gave as capacity, by member id."""
    led: tuple[Assignment, dict[str, float]] | None = None
    """What this member has assigned as the leader, and the stated capacities, until it is in force."""
    algorithm: Assignor | None = None
    """The algorithm that the group has elected for it; None: the one before."""
    second_round: bool = False


class Leader:
    """Watch the group's assignment and provide its demand as a `LoadSource`.

    ``lag`` reads offsets, often while this member leads and never while it follows. With ``settings`` None, loads are
    balanced when members come and go, but no rebalance is requested. ``slack_s`` is the approximate time between two
    commits, None if the application commits by itself. ``max_poll_s`` is the poll timeout after which a member leaves
    the group. ``own`` has the user's own loads.
    """

    def __init__(
        self,
        lag: LagLoad,
        algorithm: Assignor,
        settings: LiveSettings | None,
        *,
        cooperative: bool = False,
        slack_s: float | None = 6.0,
        max_poll_s: float = 300.0,
        own: PolledLoad | None = None,
        clock: Callable[[], float] = time.monotonic,
        tuning: Tuning | None = None,
    ) -> None:
        self.lag = lag
        self.busy = BusyTime((tuning or Tuning()).work)
        """How busy this member is; the client's adapter reports every poll to it."""
        self.name = ""
        """This member's group instance id or else its member id; empty until it is known."""
        self.ask: Callable[[], bool] = lambda: False
        """Request a rebalance from the coordinator; returns False if that is not possible now."""
        self.decided: Callable[[Decision], None] = _ignore
        """Called with every decision on the reading thread, so it must return at once."""
        self.decision: Decision | None = None
        """The newest decision."""
        self._settings = settings
        self._interval_s = lag.interval_s
        self._own = own
        self._own_loads_read: Mapping[str, Floats] | None = None
        self._clock = clock
        self._lock = threading.RLock()
        self._recorder = Recorder(
            GroupWatch(
                settings or LiveSettings(),
                algorithm,
                cooperative=cooperative,
                slack_s=slack_s,
                max_poll_s=max_poll_s,
                tuning=tuning,
            )
        )
        self._rebalances = Causes()
        self._received = _Received()
        self._joining = _Joining()
        self._notes = CommitNotes()
        self._warnings = Warnings()
        lag.interval_s = math.inf  # do not read until this member leads
        lag.listener = self._on_reading
        lag.prior_listener = self._on_prior
        lag.watch_switch(self._on_switch)

    @property
    def _watch(self) -> GroupWatch:
        return self._recorder.watch

    @property
    def rebalances(self) -> Counter[str]:
        """The number of rebalances that this member led, by cause."""
        return self._rebalances.by_cause

    @property
    def moved_share(self) -> float:
        """The demand that these rebalances moved: the sum of its shares of the total demand."""
        return self._rebalances.moved_share

    @property
    def leads(self) -> bool:
        """Whether this member watches its group."""
        return self._watch.knowledge.leads

    @property
    def to_resume(self) -> bool:
        """Whether this member made the current assignment but was restarted since.

        Only a static member returns without a rebalance. Below JoinGroup v9 (KIP-814) the answer does not say that it
        leads.
        """
        return bool(self.name) and self._received.notes.watcher == self.name and not self._watch.knowledge.leads

    @property
    def has_fresh_reading(self) -> bool:
        """Whether the newest reading is recent enough for a rebalance."""
        read_at_ms = self._watch.knowledge.read_at_ms
        return read_at_ms is not None and self._now_ms() - read_at_ms <= _FRESH_INTERVALS * self._interval_s * 1000

    @property
    def reading_age_s(self) -> float:
        """Seconds since the newest reading of the group's offsets; NaN before the first."""
        read_at_ms = self._watch.knowledge.read_at_ms
        return math.nan if read_at_ms is None else (self._now_ms() - read_at_ms) / 1000

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:
        """Return the demand of each partition in records/s; None before the first reading."""
        seen = self.lag.snapshot(topics)
        if seen is None:
            return None
        with self._lock:
            return LoadSnapshot(
                load=self._watch.loads(),
                unit=RECORDS_PER_S,
                age_s=seen.age_s,
                max_age_s=seen.max_age_s,
                even_up_to=self._watch.even_up_to(self._now_ms()),
            )

    def joining(self, *, capacity_given: bool) -> MemberNotes:
        """Start a rebalance and return the notes that this member sends to its leader."""
        with self._lock:
            now_ms = self._now_ms()
            if self._watch.knowledge.leads:
                self._remember(now_ms)
            if self._joining.began_ms is None:
                self._joining.began_ms = now_ms
            self._joining.led = None  # its last answer never took effect
            self._pass(Rebalancing(at_ms=now_ms))
            return MemberNotes(
                capacity_given=capacity_given,
                off=self._settings is None,
                measured_per_s=self.busy.per_s,
                took_s=_by_checksum(self.busy.each_s),
                learned_per_s=speed(self._received.notes.learned_per_s),
                memory=self._received.memory(now_ms),
            )

    def note(self, name: str) -> str:
        """Return the commit metadata of this member (by instance id or member id), or ""."""
        if self._settings is None:
            return ""
        newest = self.decision if self._watch.knowledge.leads else None
        return CommitNote(
            member=name,
            at_ms=self._now_ms(),
            measured_per_s=self.busy.per_s,
            took_s=_by_checksum(self.busy.each_s),
            compared=None if newest is None or newest.saved_s is None else Compared(newest.lag_s, newest.saved_s),
        ).encode()

    def equip(self, members: Sequence[tuple[Member, MemberNotes | None]]) -> list[Member]:
        """As the leader, return the members with their capacities, where these are known."""
        with self._lock:
            now_ms = self._now_ms()
            told = [(member, notes) for member, notes in members if notes is not None]
            memory = None
            if not self._rebalances.members:  # the previous leader knows more than it sent to any member
                memory = newest([notes.memory for _, notes in told])
            says = {name_of(member): said(member.topics, notes) for member, notes in told}
            self._pass(Joined(at_ms=now_ms, said=says, memory=memory, off=any(notes.off for _, notes in told)))
            self._joining.stated = {member.id: stated(member, notes) for member, notes in members}
            return self._watch.knowledge.capacities([member for member, _ in members], self._joining.stated, now_ms)

    def lead(
        self, target: Assignment, *, algorithm: Assignor | None = None, second_round: bool = False
    ) -> dict[str, bytes]:
        """Prepare to watch this assignment; return the user data for each member.

        ``algorithm`` is the one that the group has elected, None for the one before. ``second_round``: the rebalance
        before decided it, and members have revoked partitions for it since.
        """
        with self._lock:
            now_ms = self._now_ms()
            self._led(target, second_round=second_round)
            self._joining.algorithm = algorithm
            memory = self._watch.restraint.memory(now_ms)
            names = [
                instance or member
                for member, instance in zip(target.group.members, target.group.instance_ids, strict=True)
            ]
            learned = self._watch.knowledge.estimates.known_of(names)
            return {
                member: LeaderNotes(watcher=self.name, learned_per_s=learned[name], memory=memory).encode()
                for member, name in zip(target.group.members, names, strict=True)
            }

    def resume(self, target: Assignment, generation: int) -> None:
        """Watch an assignment that this member made before a restart; members come from `equip`."""
        with self._lock:
            # The memory in its own assignment is newer than the one that members joined with.
            now_ms = self._now_ms()
            self._watch.restraint.remember(self._received.memory(now_ms), now_ms)
            self._led(target, second_round=False)
            self.lag.include(target.group.topics)
        self.joined(None, generation)

    def joined(self, user_data: bytes | None, generation: int) -> None:
        """Finish the rebalance with the leader's user data; if this member leads, start to watch."""
        with self._lock:
            now_ms = self._now_ms()
            self._take(user_data, now_ms)
            joining, self._joining = self._joining, _Joining()
            if joining.led is None:
                self._rebalances.follow()
                self.lag.set_interval(math.inf)
                return
            decision = self._begin(joining, *joining.led, generation, now_ms)
        self.decided(decision)

    def _begin(
        self, joining: _Joining, target: Assignment, capacities: dict[str, float], generation: int, now_ms: int
    ) -> Decision:
        """Watch an assignment that is in force now."""
        self._notes.only(target.group.topics)
        uninterrupted = joining.began_ms is None or not self._rebalances.members
        took_ms = _UNINTERRUPTED_MS if uninterrupted or joining.began_ms is None else now_ms - joining.began_ms
        cause, told = self._rebalances.lead(frozenset(target.group.members), second_round=joining.second_round)
        assigned = Assigned(
            at_ms=now_ms,
            target=target,
            stated=capacities,
            generation=generation,
            duration_ms=took_ms,
            cause=told,
            algorithm=joining.algorithm,
        )
        decision = self.decision = self._pass(assigned)
        assert decision is not None  # each assignment is judged
        log.info("%s", decision)
        if too_slow := self._warnings.too_slow(decision.too_slow):
            log.info("%s", too_slow)
        self._rebalances.count(cause, decision.judgement.moved_share)
        self.lag.only(target.group.topics)
        self.lag.set_interval(self._interval_s)
        return decision

    def _led(self, target: Assignment, *, second_round: bool) -> None:
        self._joining.led, self._joining.second_round = (target, self._joining.stated), second_round

    def _take(self, user_data: bytes | None, now_ms: int) -> None:
        self._received = replace(self._received, notes=replace(self._received.notes, watcher=""))
        if not user_data:
            return
        try:
            self._received = _Received(LeaderNotes.decode(user_data), now_ms)
        except MalformedBytesError as error:
            log.warning("The leader's user data cannot be read (%s) and is ignored", error)

    def _remember(self, now_ms: int) -> None:
        """Keep what the next leader must know."""
        notes = replace(self._received.notes, memory=self._watch.restraint.memory(now_ms))
        self._received = _Received(notes, now_ms)

    def history(self) -> History:
        """Return the newest readings and what was decided: 200 readings, or fewer in 8 MB of memory."""
        with self._lock:
            return self._recorder.history()

    def _pass(self, event: Event) -> Decision | None:
        """Pass an event to the watch; log the costs of topics if it has learned new ones."""
        before = self._watch.knowledge.costs
        try:
            return self._recorder.handle(event)
        finally:
            if self._watch.knowledge.costs != before:
                costs = ", ".join(f"{topic} {cost:.2g}" for topic, cost in sorted(self._watch.knowledge.costs.items()))
                log.info("Estimated record costs by topic, relative to the busiest: %s", costs or "all equal")

    def _on_prior(self, ends: Mapping[tuple[str, int], int]) -> None:
        with self._lock:
            self._pass(PriorEnds(at_ms=self._now_ms() - round(HISTORY_S * 1000), ends=dict(ends)))

    def _on_switch(self, off: bool) -> None:
        with self._lock:
            if off != self._watch.switched_off:
                log.info("`loadwise live` has switched rebalances for the load %s", "off" if off else "on")
                self._pass(Switched(at_ms=self._now_ms(), off=off))

    def _on_reading(self, offsets: Mapping[tuple[str, int], PartitionOffsets]) -> None:
        """Process a reading; act on it while this member leads."""
        with self._lock:
            now_ms = self._now_ms()
            says = self._said(offsets)
            event = Read(
                at_ms=now_ms,
                partitions=list(offsets),
                positions=self._positions(offsets),
                said=says,
                own=self._own_loads(),
            )
            try:
                decision = self._pass(event)
            except Exception as error:  # noqa: BLE001 (an algorithm may be anybody's, and the reading itself was good)
                self._note_failure("The assignor", error)
                return
            self._warnings.troubles.over("The assignor")
            if decision is None:
                return
            self.decision = decision
            soon_s = self._watch.tuning.soon_s
            self.lag.set_interval(min(self._interval_s, soon_s) if decision.soon else self._interval_s)
            self._act(decision)
        self.decided(decision)

    def _positions(self, offsets: Mapping[tuple[str, int], PartitionOffsets]) -> Floats:
        """float64[P, 4]: the fields of a `Position` for each partition."""
        read = [(at.beginning, at.end, math.nan if at.committed is None else at.committed) for at in offsets.values()]
        beginning, end, committed = np.array(read, np.float64).reshape(-1, 3).T
        lag = lags(beginning, end, committed, from_beginning=self.lag.from_beginning)
        return np.column_stack([end, lag, ~np.isnan(committed), np.full(len(end), math.inf)])

    def _own_loads(self) -> Mapping[str, Floats] | None:
        """Return the user's own loads by topic, if there are new ones and arrivals to compare them with."""
        newest = None if self._own is None else self._own.newest()
        if newest is self._own_loads_read or not self._watch.knowledge.partitions.state.arrivals.measured:
            return None
        self._own_loads_read = newest
        return newest

    def _said(self, offsets: Mapping[tuple[str, int], PartitionOffsets]) -> dict[str, Said]:
        """Return what members say by new commit metadata, and what this one measures, while it leads."""
        watched = self._watch.knowledge.in_force
        if watched is None:
            return {}
        says = self._notes.news({partition: where.metadata for partition, where in offsets.items()}, watched)
        written_ms = says[self.name].written_ms if self.name in says else None
        own = Said(per_s=speed(self.busy.per_s), each_s=self.busy.each_s, written_ms=written_ms)
        return says | {self.name: own}

    def _note_failure(self, culprit: str, error: Exception) -> None:
        """Log the traceback of an exception if it is the culprit's first since it last worked."""
        if self._warnings.troubles.begins(culprit):
            log.error("%s failed while watching the group's load; the group continues", culprit, exc_info=error)

    def _act(self, decision: Decision) -> None:
        settings = self._settings
        for line in self._warnings.news(decision):
            log.warning("%s", line)
        if worse := self._warnings.worse_than_sticky(decision):
            log.info("%s", worse)
        if not decision.ask:
            log.debug("%s", decision)
            return
        if settings is None or self._watch.off or self._watch.switched_off:
            log.debug("Rebalancing for the load is off: %s", decision)
            return
        if settings.dry_run:
            log.info("%s", decision)
            self._pass(Asked(at_ms=decision.now_ms))
        elif not self.ask():
            log.debug("The client cannot request a rebalance because it is joining already: %s", decision)
        else:
            log.info("%s", decision)
            self._pass(Asked(at_ms=decision.now_ms))
            self._remember(decision.now_ms)
            self._rebalances.asked = True

    def _now_ms(self) -> int:
        return round(self._clock() * 1000)


def _ignore(decision: Decision) -> None:
    del decision


def _by_checksum(each_s: Mapping[str, float]) -> dict[int, float]:
    return {checksum(topic): each for topic, each in each_s.items()}
