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
from dataclasses import replace

import numpy as np

from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.events import Asked, Assigned, Event, Joined, PriorEnds, Read, Rebalancing, Said
from loadwise.assignor.live.history import History, Recorder
from loadwise.assignor.live.knowledge import name_of
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import Tuning
from loadwise.assignor.live.warnings import Warnings
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.live.work import BusyTime
from loadwise.assignor.load.lag import HISTORY_S, LagLoad, PartitionOffsets, lags
from loadwise.assignor.load.source import LoadSnapshot
from loadwise.assignor.model import LARGEST, RECORDS_PER_S, Assignment, Assignor, Floats, Member
from loadwise.assignor.troubles import Troubles
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
        self.busy = BusyTime((tuning or Tuning()).work)
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
        self._recorder = Recorder(self._watch)
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
        self._troubles = Troubles()
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
            self._pass(Rebalancing(at_ms=now_ms))
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
            told = [(member, notes) for member, notes in members if notes is not None]
            said = {name_of(member): _said(member.topics, notes) for member, notes in told}
            memory = None
            if not self._members:  # the previous leader knows more than it sent to any member
                memory = max((notes.memory for _, notes in told), key=_newer, default=Memory())
            self._pass(Joined(at_ms=now_ms, said=said, memory=memory))
            self._off = any(notes.off for _, notes in told)
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
            decision = self.decision = self._pass(
                Assigned(
                    at_ms=now_ms, target=target, stated=stated, generation=generation, duration_ms=took_ms, cause=told
                )
            )
            assert decision is not None  # each assignment is judged
            log.info("%s", decision)
            self._log_too_slow(decision.too_slow)
            self.rebalances[cause] += 1
            self.moved_share += decision.judgement.moved_share
            self.lag.only(target.group.topics)
            self.lag.set_interval(self._interval_s)
        self._tell(decision)

    def _log_too_slow(self, names: Iterable[str]) -> None:
        """Log once which members have no partition because they are too slow."""
        now = frozenset(names)
        if news := now - self._too_slow:
            log.info(
                "These members get no partition, because each would be busier with the lightest one than the busiest"
                " member is now: %s",
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

    def history(self) -> History:
        """Return the newest readings and what was decided: 200 readings, or fewer in 8 MB of memory."""
        with self._lock:
            return self._recorder.history()

    def _pass(self, event: Event) -> Decision | None:
        """Tell the watch; log the costs of topics if it has learned other ones."""
        before = self._watch.costs
        try:
            return self._recorder.handle(event)
        finally:
            if self._watch.costs != before:
                costs = ", ".join(f"{topic} {cost:.2g}" for topic, cost in sorted(self._watch.costs.items()))
                log.info("Estimated record costs by topic, the busiest 1: %s", costs or "all equal")

    def _on_prior(self, ends: Mapping[tuple[str, int], int]) -> None:
        with self._lock:
            self._pass(PriorEnds(at_ms=self._now_ms() - round(HISTORY_S * 1000), ends=dict(ends)))

    def _on_reading(self, offsets: Mapping[tuple[str, int], PartitionOffsets]) -> None:
        """Process a reading; act on it while this member leads."""
        with self._lock:
            now_ms = self._now_ms()
            said = self._notes(offsets) if self._watch.leads else {}
            event = Read(at_ms=now_ms, partitions=list(offsets), positions=self._positions(offsets), said=said)
            try:
                decision = self._pass(event)
            except Exception as error:  # noqa: BLE001 (an algorithm may be anybody's, and the reading itself was good)
                self._note_failure("The assignor", error)
                return
            self._troubles.over("The assignor")
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

    def _notes(self, offsets: Mapping[tuple[str, int], PartitionOffsets]) -> dict[str, Said]:
        """Return what members say by new commit metadata of partitions that they own, and what this one measures."""
        # Metadata that was read before is skipped. Times are not compared: a restarted member has another clock.
        news = {
            partition: where.metadata
            for partition, where in offsets.items()
            if where.metadata and where.metadata != self._noted.get(partition) and is_note(where.metadata)
        }
        self._noted |= news
        watched, newest = self._watch.in_force, dict[str, CommitNote]()
        for partition, metadata in news.items():
            owner = None if watched is None else watched.owner_of(partition)
            note = None if owner is None else CommitNote.decode(metadata, owner)
            if owner is not None and note is not None and (owner not in newest or note.at_ms > newest[owner].at_ms):
                newest[owner] = note
        topics = () if watched is None else watched.group.topics
        said = {name: _said(topics, note, written_ms=note.at_ms) for name, note in newest.items()}
        own = Said(per_s=_speed(self.busy.per_s), each_s=self.busy.each_s)
        written_ms = said[self.name].written_ms if self.name in said else None
        return said | {self.name: replace(own, written_ms=written_ms)}

    def _tell(self, decision: Decision) -> None:
        try:
            self.decided(decision)
        except Exception as error:  # noqa: BLE001 (it is the user's, and called inside a join or a reading)
            self._note_failure("on_decision", error)
        else:
            self._troubles.over("on_decision")

    def _note_failure(self, culprit: str, error: Exception) -> None:
        """Log the traceback of an exception if it is the culprit's first since it last worked."""
        if self._troubles.begins(culprit):
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
            self._pass(Asked(at_ms=decision.now_ms))
        elif not self.ask():
            log.debug("The client cannot request a rebalance because it is joining already: %s", decision)
        else:
            log.info("%s", decision)
            self._pass(Asked(at_ms=decision.now_ms))
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


def _said(topics: Sequence[str], notes: MemberNotes | CommitNote, written_ms: int | None = None) -> Said:
    """Return what a member's notes say, where it reads these topics."""
    each_s = {topic: notes.took_s[key] for topic in topics if (key := checksum(topic)) in notes.took_s}
    learned_per_s = _speed(notes.learned_per_s) if isinstance(notes, MemberNotes) else 0.0
    return Said(per_s=_speed(notes.measured_per_s), each_s=each_s, learned_per_s=learned_per_s, written_ms=written_ms)


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
