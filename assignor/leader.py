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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.knowledge import name_of
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import Tuning
from loadwise.assignor.live.warnings import Warnings
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.live.work import BusyTime
from loadwise.assignor.load.lag import HISTORY_S, LagLoad, PartitionOffsets, lags
from loadwise.assignor.load.source import LoadSnapshot
from loadwise.assignor.model import LARGEST, RECORDS_PER_S, Assignment, Assignor, Floats, Member
from loadwise.protocol.errors import MalformedBytesError
from loadwise.protocol.live_notes import CommitNote, LeaderNotes, MemberNotes, Memory, checksum, is_note

log = logging.getLogger(__name__)

_FRESH_INTERVALS = 2.0
"""A reading may be used for a rebalance until it is this many intervals old."""
_UNINTERRUPTED_MS = 1_000
"""The assumed cost of a group's first rebalance, which interrupts no member."""


class Leader:
    """Watch the group's assignment and provide its demand as a `LoadSource`.

    ``lag`` reads offsets, often while this member leads and never while it follows. With ``settings`` None, loads are
    balanced when members come and go, but no rebalance is requested. ``slack_s`` is the approximate time between two
    commits. ``max_poll_s`` is the poll timeout after which a member leaves the group.
    """

    def __init__(
        self,
        lag: LagLoad,
        algorithm: Assignor,
        settings: LiveSettings | None,
        *,
        cooperative: bool = False,
        slack_s: float = 6.0,
        max_poll_s: float = 300.0,
        jitter: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        tuning: Tuning | None = None,
    ) -> None:
        self.lag = lag
        self.busy = BusyTime()
        """How busy this member is; the client's adapter reports every poll to it."""
        self.name = ""
        """This member's group instance id or else its member id; empty until it is known."""
        self.ask: Callable[[], bool] = lambda: False
        """Request a rebalance from the coordinator; returns False if that is not possible now."""
        self.decided: Callable[[Decision], None] = _ignore
        """Called with every decision on the reading thread. Exceptions are logged and ignored."""
        self.decision: Decision | None = None
        """The newest decision."""
        self.rebalances: Counter[str] = Counter()
        """The number of rebalances that this member led, by cause.

        The causes are ``load``, ``members`` (joined or left), ``second_round`` (cooperative) and ``other``.
        """
        self.moved_share = 0.0
        """The demand that these rebalances moved: the sum of its shares of the total demand."""
        self._settings = settings
        self._interval_s = lag.interval_s
        self._clock = clock
        self._lock = threading.RLock()
        self._watch = GroupWatch(
            settings or LiveSettings(),
            algorithm,
            cooperative=cooperative,
            slack_s=slack_s,
            jitter=jitter,
            max_poll_s=max_poll_s,
            tuning=tuning,
        )
        self._memory = Memory()
        self._learned_per_s = 0.0
        self._joining_ms: int | None = None
        self._remembered_ms = 0
        self._stated: dict[str, float] = {}
        self._led: tuple[Assignment, dict[str, float]] | None = None
        self._second_round = False
        self._is_watcher = False
        self._members: frozenset[str] = frozenset()  # of the newest generation, if this member leads it
        self._asked = False
        self._off = False
        self._too_slow: frozenset[str] = frozenset()  # the members without a partition that were logged last
        self._noted: dict[tuple[str, int], str] = {}  # the commit metadata that was read last
        self._warnings = Warnings()
        self._failing: set[str] = set()
        lag.interval_s = math.inf  # do not read until this member leads
        lag.listener = self._on_reading
        lag.prior_listener = self._on_prior

    @property
    def leads(self) -> bool:
        """Whether this member watches its group."""
        return self._watch.leads

    @property
    def to_resume(self) -> bool:
        """Whether this member made the current assignment but was restarted since.

        Only a static member returns without a rebalance. Below JoinGroup v9 (KIP-814) the answer does not say that it
        leads.
        """
        return self._is_watcher and not self._watch.leads

    @property
    def has_fresh_reading(self) -> bool:
        """Whether the newest reading is recent enough for a rebalance."""
        read_at_ms = self._watch.read_at_ms
        return read_at_ms is not None and self._now_ms() - read_at_ms <= _FRESH_INTERVALS * self._interval_s * 1000

    @property
    def reading_age_s(self) -> float:
        """Seconds since the newest reading of the group's offsets; NaN before the first."""
        read_at_ms = self._watch.read_at_ms
        return math.nan if read_at_ms is None else (self._now_ms() - read_at_ms) / 1000

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:
        """Return the demand of each partition in records/s; None before the first reading."""
        seen = self.lag.snapshot(topics)
        if seen is None:
            return None
        with self._lock:
            return LoadSnapshot(
                load=self._watch.loads(), unit=RECORDS_PER_S, age_s=seen.age_s, max_age_s=seen.max_age_s
            )

    def joining(self, *, capacity_given: bool) -> MemberNotes:
        """Start a rebalance and return the notes that this member sends to its leader."""
        with self._lock:
            now_ms = self._now_ms()
            if self._watch.leads:
                self._memory, self._remembered_ms = self._watch.restraint.memory(now_ms), now_ms
            if self._joining_ms is None:
                self._joining_ms = now_ms
            self._led = None  # its last answer never took effect
            self._watch.unwatch()
            return MemberNotes(
                capacity_given=capacity_given,
                off=self._settings is None,
                measured_per_s=self.busy.per_s,
                took_s=_by_checksum(self.busy.each_s),
                learned_per_s=self._learned_per_s,
                memory=_aged(self._memory, now_ms - self._remembered_ms),
            )

    def note(self, name: str) -> str:
        """Return the commit metadata of this member (by instance id or member id), or ""."""
        if self._settings is None:
            return ""
        measured_per_s, took_s = self.busy.per_s, _by_checksum(self.busy.each_s)
        return CommitNote(member=name, at_ms=self._now_ms(), measured_per_s=measured_per_s, took_s=took_s).encode()

    def equip(self, members: Sequence[tuple[Member, MemberNotes | None]]) -> list[Member]:
        """As the leader, return the members with their capacities, where these are known."""
        with self._lock:
            now_ms = self._now_ms()
            for member, notes in members:
                if notes is not None:
                    # The leader in between knows more than this member did before.
                    learned_per_s, again = _speed(notes.learned_per_s), not self._members
                    self._watch.estimates.recalled(name_of(member), learned_per_s, now_ms, instead=again)
                    topics = _with_checksums(member.topics) if notes.took_s else ()
                    self._watch.took(name_of(member), _by_topic(notes.took_s, topics), now_ms)
            self._learn_costs()
            for member, notes in members:
                if notes is not None:  # in records of the costs that were just learned
                    self._watch.measured(name_of(member), _speed(notes.measured_per_s), now_ms)
            if not self._members:  # the previous leader knows more than it sent to any member
                newest = max((notes.memory for _, notes in members if notes is not None), key=_newer, default=Memory())
                self._watch.restraint.remember(newest, now_ms)
            self._off = any(notes is not None and notes.off for _, notes in members)
            stated = {member.id: _stated(member, notes) for member, notes in members}
            self._stated = stated
            return self._watch.capacities([member for member, _ in members], stated, now_ms)

    def lead(self, target: Assignment, *, second_round: bool = False) -> dict[str, bytes]:
        """Prepare to watch this assignment; return the user data for each member.

        ``second_round``: the rebalance before decided it, and members have revoked partitions for it since.
        """
        with self._lock:
            now_ms = self._now_ms()
            self._led, self._second_round = (target, self._stated), second_round
            memory = self._watch.restraint.memory(now_ms)
            names = [
                instance or member
                for member, instance in zip(target.group.members, target.group.instance_ids, strict=True)
            ]
            learned = self._watch.estimates.known_of(names)
            return {
                member: LeaderNotes(watcher=self.name, learned_per_s=learned[name], memory=memory).encode()
                for member, name in zip(target.group.members, names, strict=True)
            }

    def resume(self, target: Assignment, generation: int) -> None:
        """Watch an assignment that this member made before a restart; members come from `equip`."""
        with self._lock:
            # The memory in its own assignment is newer than the one that members joined with.
            now_ms = self._now_ms()
            self._watch.restraint.remember(_aged(self._memory, now_ms - self._remembered_ms), now_ms)
            self._led, self._second_round = (target, self._stated), False
            self.lag.include(target.group.topics)
        self.joined(None, generation)

    def joined(self, user_data: bytes | None, generation: int) -> None:
        """Finish the rebalance with the leader's user data; if this member leads, start to watch."""
        with self._lock:
            now_ms = self._now_ms()
            began_ms, self._joining_ms = self._joining_ms, None
            self._is_watcher = False
            self._take(user_data, now_ms)
            led, self._led = self._led, None
            if led is None:
                self._members, self._asked = frozenset(), False
                self.lag.set_interval(math.inf)
                return
            target, stated = led
            members = frozenset(target.group.members)
            there = frozenset(target.group.topics)
            self._noted = {partition: note for partition, note in self._noted.items() if partition[0] in there}
            took_ms = _UNINTERRUPTED_MS if began_ms is None or not self._members else now_ms - began_ms
            cause, told = self._cause(members)
            self._members, self._asked = members, False
            self.decision = self._watch.assigned(
                target, stated, generation=generation, now_ms=now_ms, duration_ms=took_ms, cause=told
            )
            log.info("%s", self.decision)
            self._log_too_slow(self.decision.too_slow)
            self.rebalances[cause] += 1
            self.moved_share += self.decision.judgement.moved_share
            self.lag.only(target.group.topics)
            self.lag.set_interval(self._interval_s)
            decision = self.decision
        self._tell(decision)

    def _log_too_slow(self, names: Iterable[str]) -> None:
        """Log once which members have no partition because they are too slow."""
        now = frozenset(names)
        if news := now - self._too_slow:
            log.info(
                "Too slow for any partition and left without one: %s. The lightest partition would make each of them"
                " busier than the busiest member is now",
                ", ".join(sorted(news)),
            )
        self._too_slow = now

    def _cause(self, members: frozenset[str]) -> tuple[str, str]:
        """Return the cause of a rebalance, as `rebalances` counts it and as the log describes it."""
        if self._asked:
            return "load", "rebalanced for the load"
        if not self._members:
            return "other", "this member leads now"
        if self._second_round:
            return "second_round", "second round of the same rebalance"
        came, went = len(members - self._members), len(self._members - members)
        if came or went:
            return "members", f"rebalanced: {came} members came, {went} went"
        return "other", "rebalanced: topics or subscriptions changed, or a member asked for it"

    def _take(self, user_data: bytes | None, now_ms: int) -> None:
        if not user_data:
            return
        try:
            notes = LeaderNotes.decode(user_data)
        except MalformedBytesError as error:
            log.warning("The leader's user data cannot be read (%s): ignored", error)
            return
        self._is_watcher = bool(self.name) and notes.watcher == self.name
        self._learned_per_s = _speed(notes.learned_per_s)
        self._memory, self._remembered_ms = notes.memory, now_ms

    def _on_prior(self, ends: Mapping[tuple[str, int], int]) -> None:
        with self._lock:
            self._watch.prior(ends, self._now_ms() - round(HISTORY_S * 1000))

    def _on_reading(self, offsets: Mapping[tuple[str, int], PartitionOffsets]) -> None:
        """Process a reading; act on it while this member leads."""
        with self._lock:
            now_ms = self._now_ms()
            positions = self._positions(offsets)
            self._watch.read_columns(offsets.keys(), positions, now_ms)
            if not self._watch.leads:
                return
            notes = self._notes(offsets)
            self._watch.noted({name: note.at_ms for name, note in notes.items()}, now_ms)
            told = self._take_notes(notes, now_ms) | {self.name: self.busy.per_s}
            self._watch.took(self.name, self.busy.each_s, now_ms)
            self._learn_costs()
            for name, per_s in told.items():  # in records of the costs that were just learned
                self._watch.measured(name, _speed(per_s), now_ms)
            try:
                decision = self._watch.decide(now_ms)
            except Exception as error:  # noqa: BLE001 (an algorithm may be anybody's, and the reading itself was good)
                self._note_failure("The assignor", error)
                return
            self._failing.discard("The assignor")
            if decision is None:
                return
            self.decision = decision
            soon_s = self._watch.tuning.soon_s
            self.lag.set_interval(min(self._interval_s, soon_s) if decision.soon else self._interval_s)
            self._act(decision)
        self._tell(decision)

    def _positions(self, offsets: Mapping[tuple[str, int], PartitionOffsets]) -> Floats:
        """float64[P, 4]: the fields of a `Position` for each partition."""
        read = [(at.beginning, at.end, math.nan if at.committed is None else at.committed) for at in offsets.values()]
        beginning, end, committed = np.array(read, np.float64).reshape(-1, 3).T
        lag = lags(beginning, end, committed, from_beginning=self.lag.from_beginning)
        return np.column_stack([end, lag, ~np.isnan(committed), np.full(len(end), math.inf)])

    def _notes(self, offsets: Mapping[tuple[str, int], PartitionOffsets]) -> dict[str, CommitNote]:
        """Return the new commit metadata of members for partitions that they own."""
        # Metadata that was read before is skipped. Times are not compared: a restarted member has another clock.
        news = {
            partition: where.metadata
            for partition, where in offsets.items()
            if where.metadata and where.metadata != self._noted.get(partition) and is_note(where.metadata)
        }
        self._noted |= news
        newest: dict[str, CommitNote] = {}
        watched = self._watch.in_force
        for partition, metadata in news.items():
            owner = None if watched is None else watched.owner_of(partition)
            note = None if owner is None else CommitNote.decode(metadata, owner)
            if owner is not None and note is not None and (owner not in newest or note.at_ms > newest[owner].at_ms):
                newest[owner] = note
        return newest

    def _take_notes(self, newest: Mapping[str, CommitNote], now_ms: int) -> dict[str, float]:
        """Process the members' notes; return their records/s."""
        watched = self._watch.in_force
        told = watched is not None and any(note.took_s for note in newest.values())
        topics = _with_checksums(watched.group.topics) if watched is not None and told else ()
        for name, note in newest.items():
            self._watch.activity.heard(name, now_ms)
            self._watch.took(name, _by_topic(note.took_s, topics), now_ms)
        return {name: note.measured_per_s for name, note in newest.items()}

    def _learn_costs(self) -> None:
        if self._watch.learn_costs():
            costs = ", ".join(f"{topic} {cost:.2g}" for topic, cost in sorted(self._watch.costs.items()))
            log.info("Estimated record costs by topic, the busiest 1: %s", costs or "all equal")

    def _tell(self, decision: Decision) -> None:
        try:
            self.decided(decision)
        except Exception as error:  # noqa: BLE001 (it is the user's, and called inside a join or a reading)
            self._note_failure("on_decision", error)
        else:
            self._failing.discard("on_decision")

    def _note_failure(self, culprit: str, error: Exception) -> None:
        """Log the traceback of an exception if it is the culprit's first since it last worked."""
        if culprit not in self._failing:
            self._failing.add(culprit)
            log.error("%s raised while watching the group's load; the group continues", culprit, exc_info=error)

    def _act(self, decision: Decision) -> None:
        settings = self._settings
        for line in self._warnings.news(decision):
            log.warning("%s", line)
        if not decision.ask:
            log.debug("%s", decision)
            return
        if settings is None or self._off:
            log.debug("Rebalancing for the load is off: %s", decision)
            return
        if settings.dry_run:
            log.info("%s", decision)
            self._watch.asked(decision)
        elif not self.ask():
            log.debug("The client cannot request a rebalance because it is joining already: %s", decision)
        else:
            log.info("%s", decision)
            self._watch.asked(decision)
            self._memory, self._remembered_ms = self._watch.restraint.memory(decision.now_ms), decision.now_ms
            self._asked = True

    def _now_ms(self) -> int:
        return round(self._clock() * 1000)


def _ignore(decision: Decision) -> None:
    """Ignore a decision."""
    del decision


def _stated(member: Member, notes: MemberNotes | None) -> float:
    """Return the capacity that the member's user set, or 0.

    A member of an older version sends no notes: there a capacity of 1 is the default, and any other was set.
    """
    given = member.capacity != 1.0 if notes is None else notes.capacity_given
    return member.capacity if given else 0.0


def _speed(per_s: float) -> float:
    return per_s if 0 < per_s <= LARGEST else 0.0


def _by_checksum(each_s: Mapping[str, float]) -> dict[int, float]:
    return {checksum(topic): each for topic, each in each_s.items()}


def _with_checksums(topics: Iterable[str]) -> list[tuple[str, int]]:
    return [(topic, checksum(topic)) for topic in topics]


def _by_topic(took_s: Mapping[int, float], topics: Iterable[tuple[str, int]]) -> dict[str, float]:
    return {topic: took_s[key] for topic, key in topics if key in took_s}


def _newer(memory: Memory) -> tuple[int, int]:
    """Sort key: the newest memory is the one with the latest rebalance."""
    return (-memory.ages_ms[-1] if memory.ages_ms else -(2**31), -memory.left_ms)


def _aged(memory: Memory, by_ms: int) -> Memory:
    return Memory(
        ages_ms=tuple(age + by_ms for age in memory.ages_ms),
        back_off_ms=memory.back_off_ms,
        left_ms=max(memory.left_ms - by_ms, 0),
        gain=memory.gain,
    )
