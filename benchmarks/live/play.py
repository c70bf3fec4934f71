"""Playing a scene: records arrive, members process and commit, somebody reads the offsets, and the group is assigned.

A second is one step. A member works off what waits in its partitions in proportion to what waits. It commits every
five seconds, in a phase of its own. During a rebalance nobody processes anything (eager).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from benchmarks.live.policies import Policy
from benchmarks.live.world import Piece, Scene
from loadwise.assignor.live.watch import Position
from loadwise.assignor.model import NOBODY, Floats, Member

READING_S = 5
_COMMIT_S = 5
_REBALANCE_S = 2
_SESSION_S = 10
_CHUNK = 600
_MEASURED_AFTER_S = 15


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
    rebalances: int = 0
    moved_per_s: float = 0.0
    """Arrival rate of the partitions that were taken from members that are still there, added up."""


def play(scene: Scene, policy: Policy, seed: int = 0) -> Outcome:
    """Play a scene from its beginning."""
    group = _Group(scene, policy, np.random.default_rng(seed))
    for second in range(scene.end_s):
        group.step(second)
    return group.outcome


class _Group:
    """The state of a simulated group."""

    def __init__(self, scene: Scene, policy: Policy, rng: np.random.Generator) -> None:
        self.outcome = Outcome()
        self._scene, self._policy, self._rng = scene, policy, rng
        self._pieces = deque(scene.pieces)
        sizes: dict[str, int] = {}
        for piece in scene.pieces:
            sizes |= {topic: len(rates) for topic, rates in piece.rates.items()}
        self._sizes = sizes
        self._partitions = [(topic, number) for topic, size in sizes.items() for number in range(size)]
        count = len(self._partitions)
        self._end, self._done, self._committed = np.zeros(count), np.zeros(count), np.zeros(count)
        self._owner: list[str | None] = [None] * count
        self._index = np.full(count, NOBODY)
        self._members: dict[str, float] = {}
        self._dead: dict[str, int] = {}
        self._rates = np.zeros(count)
        self._known_topics: frozenset[str] = frozenset()
        self._stopped_until = 0
        self._phase: dict[str, int] = {}
        self._since: dict[str, int] = {}
        self._arrivals: Iterator[Floats] = iter(())
        self._history: deque[tuple[Floats, Floats]] = deque(maxlen=scene.readings.late_s + 1)

    def step(self, now_s: int) -> None:
        """One second."""
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
        self._end += self._next_arrivals()
        if now_s >= self._stopped_until:
            self._process(now_s)
        if now_s % READING_S == 0:
            self._read(now_s)
        self._record()

    def _begin(self, piece: Piece, now_s: int) -> bool:
        self._rates = np.concatenate([piece.rates.get(topic, np.zeros(size)) for topic, size in self._sizes.items()])
        self._arrivals = iter(())
        self._dead |= dict.fromkeys(piece.died, now_s + _SESSION_S)
        gone = self._members.keys() - piece.capacity.keys() - piece.died
        came = piece.capacity.keys() - self._members.keys()
        topics = frozenset(piece.rates)
        changed = bool(gone or came or topics - self._known_topics)
        self._known_topics |= topics
        if came or gone or piece.died:
            self._phase |= {member: int(self._rng.integers(0, _COMMIT_S)) for member in sorted(came)}
            self._since |= dict.fromkeys(came, now_s)
        self._members = dict(piece.capacity)
        self._policy.conditions(self._by_topic(self._rates), self._members)
        if not changed:
            self._policy.changed(now_s)
        self._renumber()
        return changed

    def _begin_with_a_log(self) -> None:
        """A minute of records is there before the group, and has been processed by its predecessors."""
        known = [
            self._partitions[row] for row in range(len(self._end)) if self._partitions[row][0] in self._known_topics
        ]
        self._policy.prior(dict.fromkeys(known, 0))
        self._end = np.asarray(self._rng.poisson(self._rates * 60).astype(float))
        self._done, self._committed = self._end.copy(), self._end.copy()
        ends = dict(zip(self._partitions, self._end.tolist(), strict=True))
        self._policy.read({each: Position(int(ends[each]), 0) for each in known}, 0)

    def _next_arrivals(self) -> Floats:
        try:
            return next(self._arrivals)
        except StopIteration:
            noise = self._scene.noise
            chunk = self._rng.poisson(self._rates / noise, (_CHUNK, len(self._rates))) * noise
            self._arrivals = iter(chunk.astype(float))
            return next(self._arrivals)

    def _process(self, now_s: int) -> None:
        waiting = self._end - self._done
        speeds = np.array([*self._members.values(), 0.0])
        mine = np.bincount(self._index, waiting, len(speeds))
        part = np.minimum(speeds / np.maximum(mine, 1e-9), 1.0)
        part[-1] = 0.0
        self._done += waiting * part[self._index]
        phases = np.array([*(self._phase[member] for member in self._members), -1])
        commits = np.equal(phases, now_s % _COMMIT_S)[self._index]
        self._committed[commits] = self._done[commits]

    def _read(self, now_s: int) -> None:
        self._history.append((self._end.copy(), self._committed.copy()))
        how = self._scene.readings
        if self._rng.random() < how.lost or now_s < self._stopped_until:
            return
        end, committed = self._history[0] if how.late_s >= READING_S else self._history[-1]
        end = np.floor(end)
        seen = self._rng.random(len(end)) >= how.missing
        if how.wrong:
            wrong = self._rng.random(len(end)) < how.wrong
            end = np.where(wrong, np.where(self._rng.random(len(end)) < 0.5, 0, end * 3), end)
        lag = np.maximum(end - np.floor(committed), 0)
        positions = {
            self._partitions[row]: Position(int(end[row]), int(lag[row]))
            for row in np.flatnonzero(seen).tolist()
            if self._partitions[row][0] in self._known_topics
        }
        self._measure(next(iter(self._members)), now_s)
        if self._policy.read(positions, now_s):
            self.outcome.for_load.append(now_s)
            self._rebalance(now_s)

    def _measure(self, member: str, now_s: int) -> None:
        """A member tells what it processes in a busy second, if it has been there for a while."""
        if now_s - self._since[member] >= _MEASURED_AFTER_S:
            self._policy.measured(member, self._members[member] * self._rng.normal(1, 0.03), now_s)

    def _rebalance(self, now_s: int) -> None:
        """Members commit and join; those that died without a word are still taken for members."""
        for member in self._members:
            self._measure(member, now_s)
        self._committed = np.where(self._index < len(self._members), self._done, self._committed)
        self._done = self._committed.copy()
        self.outcome.rebalances += 1
        there = [*self._members, *self._dead]
        owned: dict[str, dict[str, list[int]]] = {member: {} for member in there}
        for (topic, number), owner in zip(self._partitions, self._owner, strict=True):
            if owner in owned and topic in self._known_topics:
                owned[owner].setdefault(topic, []).append(number)
        members = [
            Member(id=member, topics=sorted(self._known_topics), owned=owned[member], generation=1) for member in there
        ]
        counts = {topic: size for topic, size in self._sizes.items() if topic in self._known_topics}
        target = self._policy.assign(members, counts, now_s, _REBALANCE_S)
        before = list(self._owner)
        by_member = target.by_member()
        for member, topics in by_member.items():
            for topic, numbers in topics.items():
                for number in numbers:
                    self._owner[self._row(topic, number)] = member
        for row, (old, new) in enumerate(zip(before, self._owner, strict=True)):
            if old != new and old in self._members:
                self.outcome.moved_per_s += float(self._rates[row])
        self._renumber()
        self._stopped_until = now_s + (0 if self._policy.free else _REBALANCE_S)

    def _record(self) -> None:
        speeds = np.array([*self._members.values()])
        index = self._index
        load = np.bincount(index, self._rates, len(speeds) + 1)
        lag = np.bincount(index, self._end - self._done, len(speeds) + 1)
        used = load[:-1] / speeds
        total = float(self._rates.sum())
        outcome = self.outcome
        # What a dead member still owns is nobody's: it counts as one that does nothing.
        outcome.worst.append(float(used.max()))
        outcome.overloaded.append(int((used > 1).sum()))
        outcome.lag_s.append(float(lag.max()) / max(total, 1.0))
        outcome.member_seconds += len(speeds)

    def _renumber(self) -> None:
        number = {member: index for index, member in enumerate(self._members)}
        self._index = np.array([number.get(owner or "", len(number)) for owner in self._owner])

    def _row(self, topic: str, number: int) -> int:
        start = 0
        for name, size in self._sizes.items():
            if name == topic:
                return start + number
            start += size
        raise KeyError(topic)

    def _by_topic(self, array: Floats) -> dict[str, Floats]:
        edges = np.cumsum(list(self._sizes.values()))[:-1]
        return dict(zip(self._sizes, np.split(array, edges), strict=True))
