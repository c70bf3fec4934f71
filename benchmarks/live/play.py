"""Playing a scene: records arrive, members process and commit, somebody reads the offsets, and the group is assigned.

A second is one step; the seconds from one event to the next are taken together. A member works off what waits in its
partitions in proportion to what waits. It measures its speed as real members do, with a poll a second that takes up to
a tenth more or less than it should. It commits every five seconds, in a phase of its own, and tells its speed with it.
During an eager rebalance no member processes anything, during a cooperative one the partitions that move stand still.
Arrivals, readings and members have a random generator each, so that all assignors meet the same arrivals.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from benchmarks.live.policies import Policy, Reading
from benchmarks.live.world import Piece, Scene
from loadwise.assignor.live.work import BusyTime
from loadwise.assignor.model import NOBODY, Floats, Member

READING_S = 5
REBALANCE_S = 2
_COMMIT_S = 5
_SESSION_S = 10
_CHUNK = 600
_UNEVEN = 0.1
_NS = 10**9


@dataclass(slots=True)
class Outcome:
    """What became of one scene under one assignor."""

    worst: list[float] = field(default_factory=list)
    """Each second's highest utilisation, by the true rates and speeds."""
    overloaded: list[int] = field(default_factory=list)
    """Each second's members above 1."""
    lag_s: list[float] = field(default_factory=list)
    """Each second's worst lag of a member, in seconds of the whole group's arrivals."""
    member_seconds: int = 0
    for_load: list[int] = field(default_factory=list)
    """Seconds at which a rebalance was asked for because of the load."""
    still_s: float = 0.0
    """For how long partitions stood still for these in the mean."""
    rebalances: int = 0
    moved_per_s: float = 0.0
    """Arrival rate of the partitions that were taken from members that are still there, added up."""


def play(scene: Scene, policy: Policy, seed: int = 0) -> Outcome:
    """Play a scene from its beginning."""
    group = SimulatedGroup(scene, policy, seed)
    group.run()
    return group.outcome


class SimulatedGroup:
    """The state of a simulated group."""

    def __init__(self, scene: Scene, policy: Policy, seed: int) -> None:
        self.outcome = Outcome()
        self._scene, self._policy = scene, policy
        self._of_arrivals, self._of_readings, self._of_members = np.random.default_rng(seed).spawn(3)
        self._pieces = deque(scene.pieces)
        self._sizes = scene.sizes
        self._partitions = [(topic, number) for topic, size in self._sizes.items() for number in range(size)]
        self._row = {partition: row for row, partition in enumerate(self._partitions)}
        count = len(self._partitions)
        self._end, self._done, self._committed = np.zeros(count), np.zeros(count), np.zeros(count)
        self._owner: list[str | None] = [None] * count
        self._topics = list(self._sizes)
        self._topic_of = np.repeat(np.arange(len(self._topics)), list(self._sizes.values()))
        self._index = np.full(count, NOBODY)
        self._owns = np.zeros((count, 1))
        """float64[P, M + 1]: 1 where a member owns a partition; the last column is nobody's."""
        self._phases = np.full(count, -1)
        """int64[P]: the second of each commit interval in which its owner commits; -1 for nobody."""
        self._members: dict[str, float] = {}
        self._dead: dict[str, int] = {}
        self._rates, self._cost = np.zeros(count), np.ones(count)
        self._counts: dict[str, int] = {}
        """Topic to its partitions, of those that there are."""
        self._subscriptions: dict[str, frozenset[str]] = {}
        self._known = np.zeros(count, bool)
        self._stuck, self._away = np.zeros(count, bool), np.zeros(count, bool)
        self._stopped, self._stopped_until = np.zeros(count, bool), 0
        self._phase: dict[str, int] = {}
        self._busy: dict[str, BusyTime] = {}
        self._arrivals, self._arrived = np.zeros((0, count)), 0
        late = scene.readings.late_s // READING_S
        self._reads_s = int(self._of_readings.integers(READING_S))
        """The second of the next reading: events begin at any time between two."""
        self._noted: dict[str, int] = {}
        """When each member has committed last, as the note beside its commit tells."""
        self._history: deque[tuple[Floats, Floats, dict[str, int]]] = deque(maxlen=late + 1)

    def run(self) -> None:
        """All of the scene."""
        now_s = 0
        while now_s < self._scene.end_s:
            self._events(now_s)
            # The reading belongs to the last second of a stretch.
            ends = [self._scene.end_s, self._reads_s + 1]
            ends += [piece.start_s for piece in list(self._pieces)[:1]]
            ends += self._dead.values()
            until = min(end for end in ends if end > now_s)
            self._stretch(now_s, until)
            now_s = until
            if now_s > self._reads_s:
                self._read(self._reads_s)
                self._reads_s += self._policy.soon_s or READING_S

    def _events(self, now_s: int) -> None:
        """What happens at the beginning of a second."""
        due = False
        while self._pieces and self._pieces[0].start_s <= now_s:
            due |= self._begin(self._pieces.popleft(), now_s)
        for member, until in list(self._dead.items()):
            if now_s >= until:
                del self._dead[member]
                due = True
        if due and now_s == 0:
            self._begin_with_a_log()
        if due:
            self._rebalance(now_s)

    def _begin(self, piece: Piece, now_s: int) -> bool:
        rates = [piece.rates.get(topic, np.zeros(0)) for topic in self._sizes]
        sizes = self._sizes.values()
        self._rates = np.concatenate(
            [np.pad(each, (0, size - len(each))) for each, size in zip(rates, sizes, strict=True)]
        )
        self._away = np.array([partition in piece.away for partition in self._partitions])
        self._stuck = self._away | np.array([partition in piece.stuck for partition in self._partitions])
        self._rates = np.where(self._away, 0.0, self._rates)
        self._cost = np.repeat([piece.cost.get(topic, 1.0) for topic in self._sizes], list(sizes))
        self._arrivals, self._arrived = self._arrivals[:0], 0
        self._dead |= dict.fromkeys(piece.died, now_s + _SESSION_S)
        gone = self._members.keys() - piece.capacity.keys() - piece.died
        came = piece.capacity.keys() - self._members.keys()
        counts = {topic: len(each) for topic, each in piece.rates.items()}
        changed = bool(gone or came or counts != self._counts)
        self._counts = counts
        self._subscriptions |= piece.subscriptions
        self._known = np.array([number < counts.get(topic, 0) for topic, number in self._partitions])
        self._done, self._committed = (np.where(self._known, at, self._end) for at in (self._done, self._committed))
        if came or gone or piece.died:
            self._phase |= {member: int(self._of_members.integers(0, _COMMIT_S)) for member in sorted(came)}
            self._busy |= {member: BusyTime() for member in came}
        self._members = dict(piece.capacity)
        self._policy.conditions(piece)
        if not changed:
            self._policy.changed(now_s)
        self._renumber()
        return changed

    def _begin_with_a_log(self) -> None:
        """A minute of records is there before the group, and has been processed by its predecessors."""
        nothing = np.zeros(len(self._partitions))
        self._policy.begin(self._scene, Reading(self._partitions, nothing, nothing, self._known))
        self._end = np.asarray(self._of_arrivals.poisson(self._rates * 60).astype(float))
        self._done, self._committed = self._end.copy(), self._end.copy()
        self._policy.read(Reading(self._partitions, self._end.copy(), nothing, self._known), 0)

    def _next_arrivals(self, seconds: int) -> Floats:
        """float64[seconds, P]: the records that come in each of the next seconds."""
        if self._arrived + seconds > len(self._arrivals):
            noise, left = self._scene.noise, self._arrivals[self._arrived :]
            more = self._of_arrivals.poisson(self._rates / noise, (_CHUNK, len(self._rates))) * noise
            self._arrivals, self._arrived = np.concatenate([left, more]), 0
        self._arrived += seconds
        return self._arrivals[self._arrived - seconds : self._arrived]

    def _stretch(self, now_s: int, until_s: int) -> None:
        """Seconds in which nothing happens but arrivals, work and commits."""
        speeds = np.array([*self._members.values(), 0.0])
        index, owns, cost, outcome = self._index, self._owns, self._cost, self.outcome
        total = max(float(self._rates.sum()), 1.0)
        waiting = self._end - self._done
        topics = len(self._topics)
        of_topic = self._topic_of[:, np.newaxis] == np.arange(topics)
        owns_of_topic = (owns[:, :, np.newaxis] * of_topic[:, np.newaxis]).reshape(len(owns), -1)
        taken = np.zeros((until_s - now_s, len(speeds), topics))
        worked = np.zeros(taken.shape[:2])
        for second, came in enumerate(self._next_arrivals(until_s - now_s), now_s):
            self._end += came
            waiting += came
            stands = self._stuck | self._stopped if second < self._stopped_until else self._stuck
            ready = np.where(stands, 0.0, waiting)
            work = (ready * cost) @ owns
            part = np.minimum(speeds / np.maximum(work, 1e-9), 1.0)
            taken[second - now_s] = (ready @ owns_of_topic).reshape(-1, topics) * part[:, np.newaxis]
            worked[second - now_s] = work * part
            waiting -= ready * part[index]
            commits = (self._phases == second % _COMMIT_S) & ~stands
            self._committed = np.where(commits, self._end - waiting, self._committed)
            outcome.lag_s.append(float((waiting @ owns).max()) / total)
        self._done = self._end - waiting
        self._note(now_s, until_s)
        if self._policy.learns and not self._scene.silent:
            self._time(now_s, taken[:, :-1], worked[:, :-1] / speeds[:-1])
        # What a dead member still owns is nobody's: it counts as one that does nothing.
        used = ((self._rates * cost) @ owns)[:-1] / speeds[:-1]
        seconds = until_s - now_s
        outcome.worst += [float(used.max())] * seconds
        outcome.overloaded += [int((used > 1).sum())] * seconds
        outcome.member_seconds += len(used) * seconds

    def _note(self, now_s: int, until_s: int) -> None:
        for member in self._members if self._scene.notes else ():
            last_s = until_s - 1 - (until_s - 1 - self._phase[member]) % _COMMIT_S
            if last_s >= max(now_s, self._stopped_until):
                self._noted[member] = last_s * 1000

    def _read(self, now_s: int) -> None:
        self._history.append((self._end.copy(), self._committed.copy(), self._noted.copy()))
        how, chance = self._scene.readings, self._of_readings
        lost, seen, wrong, low = (chance.random(size) for size in (1, *[len(self._end)] * 3))
        if lost[0] < how.lost or now_s < self._stopped_until:
            return
        end, committed, noted = self._history[0]
        end = np.floor(end)
        end = np.where(wrong < how.wrong, np.where(low < 0.5, 0, end * 3), end)
        lag = np.maximum(end - np.floor(committed), 0)
        self._measure(now_s)
        reading = Reading(self._partitions, end, lag, (seen >= how.missing) & self._known & ~self._away, noted)
        if self._policy.read(reading, now_s):
            self.outcome.for_load.append(now_s)
            self._rebalance(now_s)

    def _time(self, now_s: int, taken: Floats, seconds: Floats) -> None:
        """What each member's polls have given in each second, and for how long it worked on that."""
        seconds = seconds * self._of_members.uniform(1 - _UNEVEN, 1 + _UNEVEN, seconds.shape)
        of_member = np.rint(taken).astype(int).transpose(1, 0, 2).tolist()
        for member, records, lasted in zip(self._members, of_member, seconds.T.tolist(), strict=True):
            busy = self._busy[member]
            for second, (given, busy_s) in enumerate(zip(records, lasted, strict=True), now_s):
                counts = zip(self._topics, given, strict=True)
                busy.given({topic: count for topic, count in counts if count}, second * _NS)
                busy.polls(second * _NS + min(round(busy_s * _NS), _NS))

    def _measure(self, now_s: int) -> None:
        """What members measure comes to the leader when they join, and with their commits."""
        if self._policy.learns and not self._scene.silent:
            for member in self._members:
                busy = self._busy[member]
                self._policy.measured(member, busy.per_s, busy.each_s, now_s)

    def _rebalance(self, now_s: int) -> None:
        """Members commit and join; those that died without a word are still taken for members."""
        self._measure(now_s)
        self._committed = np.where(self._index < len(self._members), self._done, self._committed)
        self._done = self._committed.copy()
        self.outcome.rebalances += 1
        there = [*self._members, *self._dead]
        owned: dict[str, dict[str, list[int]]] = {member: {} for member in there}
        for (topic, number), owner, known in zip(self._partitions, self._owner, self._known.tolist(), strict=True):
            if owner in owned and known:
                owned[owner].setdefault(topic, []).append(number)
        topics = frozenset(self._counts)
        read = {member: sorted(topics & self._subscriptions.get(member, topics)) for member in there}
        members = [Member(id=member, topics=read[member], owned=owned[member], generation=1) for member in there]
        target = self._policy.assign(members, self._counts, now_s, REBALANCE_S)
        before = [owner if known else None for owner, known in zip(self._owner, self._known.tolist(), strict=True)]
        self._owner = [None] * len(before)
        for member, of_topics in target.by_member().items():
            for topic, numbers in of_topics.items():
                for number in numbers:
                    self._owner[self._row[topic, number]] = member
        for row, (old, new) in enumerate(zip(before, self._owner, strict=True)):
            if old != new and old in self._members:
                self.outcome.moved_per_s += float(self._rates[row])
        moved = np.array([old != new for old, new in zip(before, self._owner, strict=True)])
        self._renumber()
        self._stopped = moved if self._policy.cooperative else np.ones(len(moved), bool)
        self._stopped_until = now_s + (0 if self._policy.free else REBALANCE_S)
        if self.outcome.for_load and self.outcome.for_load[-1] == now_s:
            self.outcome.still_s += REBALANCE_S * float(self._stopped.mean())

    def _renumber(self) -> None:
        number = {member: index for index, member in enumerate(self._members)}
        self._index = np.array([number.get(owner or "", len(number)) for owner in self._owner])
        self._owns = (self._index[:, np.newaxis] == np.arange(len(number) + 1)).astype(float)
        self._phases = np.array([*(self._phase[member] for member in number), -1])[self._index]
