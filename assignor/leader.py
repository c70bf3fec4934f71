"""A member's part in keeping its group's load even: it measures itself, and while it leads, it watches the group.

Thread-safe: the client's thread joins and assigns, another one may read the offsets. What is decided is in
`loadwise.assignor.live`; here are the clock, the log, and what travels between members.
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
"""A reading is good for a rebalance up to so many intervals after it was taken."""
_UNINTERRUPTED_MS = 1_000
"""What a group's first rebalance is taken to have cost: nobody was interrupted by it."""


class Leader:
    """The `loadwise.assignor.load.source.LoadSource` of a group's demand, and the watch over its assignment.

    ``lag`` reads the offsets, often while this member leads and never while it follows. ``settings`` None: loads are
    balanced when members come and go, but no rebalance is asked for. ``slack_s`` is about the time between two commits,
    ``max_poll_s`` that after which members that have not polled are put out.
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
        """How busy this member is; its client's adapter tells it of every poll."""
        self.name = ""
        """This member's group instance id, or else its member id; empty before it is known."""
        self.ask: Callable[[], bool] = lambda: False
        """Ask the group's coordinator for a rebalance; answers whether that could be done now."""
        self.decided: Callable[[Decision], None] = _ignore
        """Called with every decision, on the thread that reads. What it raises is logged, and stops nothing."""
        self.decision: Decision | None = None
        """The newest decision."""
        self.rebalances: Counter[str] = Counter()
        """How many rebalances this member has led, by cause.

        ``load``, ``members`` that came or went, ``second_round`` of a cooperative one, ``other``.
        """
        self.moved_share = 0.0
        """What these have moved: the parts of the whole demand at the time, added up."""
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
        self._members: frozenset[str] = frozenset()  # of the newest generation, where this member leads it
        self._asked = False
        self._off = False
        self._too_slow: frozenset[str] = frozenset()  # the members without a partition, as they were logged last
        self._noted: dict[tuple[str, int], str] = {}  # the notes beside the offsets, as they were read last
        self._warnings = Warnings()
        self._failing: set[str] = set()
        lag.interval_s = math.inf  # nobody reads before there is a reason to
        lag.listener = self._on_reading
        lag.prior_listener = self._on_prior

    @property
    def leads(self) -> bool:
        """Whether this member watches its group."""
        return self._watch.leads

    @property
    def to_resume(self) -> bool:
        """Whether this member made the assignment in force and does not know it: it was restarted since.

        Only a static member comes back without a rebalance. Below JoinGroup v9 (KIP-814) it is not told that it leads.
        """
        return self._is_watcher and not self._watch.leads

    @property
    def has_fresh_reading(self) -> bool:
        """Whether the newest reading is good enough to assign by."""
        read_at_ms = self._watch.read_at_ms
        return read_at_ms is not None and self._now_ms() - read_at_ms <= _FRESH_INTERVALS * self._interval_s * 1000

    @property
    def reading_age_s(self) -> float:
        """Seconds since the newest reading of the group's offsets; NaN before the first."""
        read_at_ms = self._watch.read_at_ms
        return math.nan if read_at_ms is None else (self._now_ms() - read_at_ms) / 1000

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:
        """Answer the demand of each partition, in records/s; None before there is a reading."""
        seen = self.lag.snapshot(topics)
        if seen is None:
            return None
        with self._lock:
            return LoadSnapshot(
                load=self._watch.loads(), unit=RECORDS_PER_S, age_s=seen.age_s, max_age_s=seen.max_age_s
            )

    def joining(self, *, capacity_given: bool) -> MemberNotes:
        """A rebalance begins; answer what this member tells its leader."""
        with self._lock:
            now_ms = self._now_ms()
            if self._watch.leads:
                self._memory, self._remembered_ms = self._watch.restraint.memory(now_ms), now_ms
            if self._joining_ms is None:
                self._joining_ms = now_ms
            self._led = None  # what it has answered since the last assignment has never come into force
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
        """What this member, by its instance id or member id, writes beside an offset that it commits, or ""."""
        if self._settings is None:
            return ""
        measured_per_s, took_s = self.busy.per_s, _by_checksum(self.busy.each_s)
        return CommitNote(member=name, at_ms=self._now_ms(), measured_per_s=measured_per_s, took_s=took_s).encode()

    def equip(self, members: Sequence[tuple[Member, MemberNotes | None]]) -> list[Member]:
        """As the leader, answer the members with their capacities, as far as these are known."""
        with self._lock:
            now_ms = self._now_ms()
            for member, notes in members:
                if notes is not None:
                    # Who led in between knows more than what this member had learned before.
                    learned_per_s, again = _speed(notes.learned_per_s), not self._members
                    self._watch.estimates.recalled(name_of(member), learned_per_s, now_ms, instead=again)
                    topics = _with_checksums(member.topics) if notes.took_s else ()
                    self._watch.took(name_of(member), _by_topic(notes.took_s, topics), now_ms)
            self._learn_costs()
            for member, notes in members:
                if notes is not None:  # in records of the costs that were learned just now
                    self._watch.measured(name_of(member), _speed(notes.measured_per_s), now_ms)
            if not self._members:  # who has led until now knows more than anybody was told
                newest = max((notes.memory for _, notes in members if notes is not None), key=_newer, default=Memory())
                self._watch.restraint.remember(newest, now_ms)
            self._off = any(notes is not None and notes.off for _, notes in members)
            stated = {member.id: _stated(member, notes) for member, notes in members}
            self._stated = stated
            return self._watch.capacities([member for member, _ in members], stated, now_ms)

    def lead(self, target: Assignment, *, second_round: bool = False) -> dict[str, bytes]:
        """Watch this assignment once it is in force; answer what to tell each member with it.

        ``second_round``: it was decided in the rebalance before, and partitions were given up for it since.
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
        """Watch an assignment that this member made before it was restarted: members from `equip`, owners as told."""
        with self._lock:
            # What it told the others to remember is in its own assignment; what they had joined with is older.
            now_ms = self._now_ms()
            self._watch.restraint.remember(_aged(self._memory, now_ms - self._remembered_ms), now_ms)
            self._led, self._second_round = (target, self._stated), False
            self.lag.include(target.group.topics)
        self.joined(None, generation)

    def joined(self, user_data: bytes | None, generation: int) -> None:
        """The rebalance has ended with what the leader tells this member; if it is the leader, the watch begins."""
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
        """Log once which members are left without a partition."""
        now = frozenset(names)
        if news := now - self._too_slow:
            log.info(
                "Too slow for any partition, and left without one: %s. Each would be busier with the lightest partition"
                " than the busiest member is now",
                ", ".join(sorted(news)),
            )
        self._too_slow = now

    def _cause(self, members: frozenset[str]) -> tuple[str, str]:
        """Why a rebalance was made, as `rebalances` counts it and as the log tells it."""
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
            log.warning("What the leader tells beside the partitions cannot be read (%s): ignored", error)
            return
        self._is_watcher = bool(self.name) and notes.watcher == self.name
        self._learned_per_s = _speed(notes.learned_per_s)
        self._memory, self._remembered_ms = notes.memory, now_ms

    def _on_prior(self, ends: Mapping[tuple[str, int], int]) -> None:
        with self._lock:
            self._watch.prior(ends, self._now_ms() - round(HISTORY_S * 1000))

    def _on_reading(self, offsets: Mapping[tuple[str, int], PartitionOffsets]) -> None:
        """Take in a reading, and while this member leads, act on it."""
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
            for name, per_s in told.items():  # in records of the costs that were learned just now
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
        """float64[P, 4]: the fields of a `Position` of each partition."""
        read = [(at.beginning, at.end, math.nan if at.committed is None else at.committed) for at in offsets.values()]
        beginning, end, committed = np.array(read, np.float64).reshape(-1, 3).T
        lag = lags(beginning, end, committed, from_beginning=self.lag.from_beginning)
        return np.column_stack([end, lag, ~np.isnan(committed), np.full(len(end), math.inf)])

    def _notes(self, offsets: Mapping[tuple[str, int], PartitionOffsets]) -> dict[str, CommitNote]:
        """What members have newly written beside the offsets of partitions that they own."""
        # What was read before is no news. Nor is it compared with what is: who was restarted has another clock.
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
        """Take in what members say of themselves; answer their records/s."""
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
            log.info("What records cost by what members take for them, the busiest 1: %s", costs or "all the same")

    def _tell(self, decision: Decision) -> None:
        try:
            self.decided(decision)
        except Exception as error:  # noqa: BLE001 (it is the user's, and called inside a join or a reading)
            self._note_failure("on_decision", error)
        else:
            self._failing.discard("on_decision")

    def _note_failure(self, culprit: str, error: Exception) -> None:
        """Log the traceback of an exception, if it is the culprit's first one since it last worked."""
        if culprit not in self._failing:
            self._failing.add(culprit)
            log.error("%s raised while the group's load is watched; the group goes on", culprit, exc_info=error)

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
            log.debug("The client cannot ask now, since it is joining already: %s", decision)
        else:
            log.info("%s", decision)
            self._watch.asked(decision)
            self._memory, self._remembered_ms = self._watch.restraint.memory(decision.now_ms), decision.now_ms
            self._asked = True

    def _now_ms(self) -> int:
        return round(self._clock() * 1000)


def _ignore(decision: Decision) -> None:
    """Nobody listens."""
    del decision


def _stated(member: Member, notes: MemberNotes | None) -> float:
    """What the member's user gave as its capacity, 0 for nothing; older members do not tell, but 1 is the default."""
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
    """Sort key: the newest memory is the one with the youngest rebalance."""
    return (-memory.ages_ms[-1] if memory.ages_ms else -(2**31), -memory.left_ms)


def _aged(memory: Memory, by_ms: int) -> Memory:
    return Memory(
        ages_ms=tuple(age + by_ms for age in memory.ages_ms),
        back_off_ms=memory.back_off_ms,
        left_ms=max(memory.left_ms - by_ms, 0),
        gain=memory.gain,
    )
