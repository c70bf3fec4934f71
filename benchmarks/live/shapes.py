"""`python -m benchmarks.live.shapes`: how soon a group is even again whose members spend their time in various ways.

Three members of 600 records/s each, and 900/s that arrive. Then two partitions of one member suddenly get 360/s each:
780/s for its 600, while the group is half idle. The members are `loadwise.assignor.participant.Participant` as they
are, on a clock that jumps from event to event; programs, clients and the broker are played.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from operator import itemgetter
from statistics import median

import numpy as np

from benchmarks.live.programs import COMMITS_BY_HAND, PROGRAMS, Given
from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.leader import Leader
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import Tuning
from loadwise.assignor.load.lag import HISTORY_S, LagLoad, PartitionOffsets, commit_slack_s
from loadwise.assignor.participant import Participant
from loadwise.assignor.subscription import JoinedMember
from loadwise.protocol.consumer import Assignment, Subscription

PARTITIONS = 12
SPEED, ARRIVING, HOT = 600.0, 900.0, 360.0
_TICK_S = 0.05
"""Records arrive so often, and a poll that waits looks for them as often."""
_SAMPLE_TICKS = 5
_REBALANCE_S = 0.3
_MOMENT_S = 3.0
_TOPIC = "t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the clients are configured with."""

    commit_s: float = 1.0
    heartbeat_s: float = 1.0
    session_s: float = 6.0
    notes: bool = True
    """Whether commits carry notes."""
    lump: int = 1
    """Records that arrive at once, since producers send them in batches."""
    cost: float = 1.0
    """What a record of every other partition costs, which are of another topic where it is not 1."""


QUICK = Config()
DEFAULTS = Config(commit_s=5.0, heartbeat_s=3.0, session_s=45.0)


@dataclass(slots=True)
class Played:
    """What became of a group."""

    asked_s: list[float] = field(default_factory=list)
    """When rebalances for the load were asked for."""
    rebalanced_s: list[float] = field(default_factory=list)
    """When these were over."""
    lag: list[tuple[float, float]] = field(default_factory=list)
    """Times, and how many records wait for the member that has most of them."""
    decisions: list[Decision] = field(default_factory=list)

    def first_s(self, since_s: float) -> float:
        """How long after this the first rebalance for the load was over; infinite where there was none."""
        return min((at - since_s for at in self.rebalanced_s if at >= since_s), default=float("inf"))

    def calm_s(self, since_s: float) -> float:
        """How long after this the worst lag was below one second of traffic for good; infinite where it is not.

        What a member has waiting since it paused for a moment does not count: no assignment could help.
        """
        late = [(at, lag > ARRIVING) for at, lag in self.lag if at >= since_s]
        stretches = [
            (of_these[0][0], of_these[-1][0])
            for over, each in itertools.groupby(late, itemgetter(1))
            if over and (of_these := list(each))
        ]
        last_s = max((stop for start, stop in stretches if stop - start > _MOMENT_S), default=since_s)
        return float("inf") if late[-1][0] - last_s <= 1.0 else last_s - since_s

    def most(self, since_s: float) -> float:
        """The most records that waited for one member since then."""
        return max(lag for at, lag in self.lag if at >= since_s)


class Group:
    """Members, their broker, and the clock."""

    def __init__(
        self,
        programs: Sequence[str],
        config: Config = QUICK,
        *,
        seed: int = 0,
        speeds: Sequence[float] = (SPEED,) * 3,
        settings: LiveSettings | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        self.now_s, self.config, self.tuning = 0.0, config, tuning
        self.rng = np.random.default_rng(seed)
        self.places = [(_TOPIC, number) for number in range(PARTITIONS)]
        """The topic of each partition, and its number there."""
        if config.cost != 1:
            self.places = [(f"{_TOPIC}{number % 2}", number // 2) for number in range(PARTITIONS)]
        self.cost = [config.cost if number % 2 else 1.0 for number in range(PARTITIONS)]
        self.rates = np.full(PARTITIONS, ARRIVING / PARTITIONS)
        """What arrives, as so many records/s of cost 1."""
        self.end, self.committed = [0] * PARTITIONS, [0] * PARTITIONS
        self._coming: deque[list[int]] = deque()
        self.notes: dict[int, str] = {}
        self.outcome = Played()
        self.generation = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.members = [
            Member(self, f"m{number}", name, speed, settings)
            for number, (name, speed) in enumerate(zip(programs, speeds, strict=True))
        ]
        self.at(0.0, self._tick)
        self._rebalance(None)

    def at(self, at_s: float, what: Callable[[], None]) -> None:
        """Do something later."""
        heapq.heappush(self._events, (at_s, next(self._order), what))

    def run(self, until_s: float) -> None:
        """Go on until then."""
        while self._events and self._events[0][0] <= until_s:
            self.now_s, _, what = heapq.heappop(self._events)
            what()
        self.now_s = until_s

    @property
    def alive(self) -> list[Member]:
        """Members that were not killed."""
        return [member for member in self.members if member.alive]

    def shift(self) -> None:
        """Two partitions of one member get 360/s each, all others share the rest."""
        unlucky = self.alive[int(self.rng.integers(len(self.alive)))]
        hot = sorted(unlucky.position)[:2]
        rest = (ARRIVING - HOT * len(hot)) / (PARTITIONS - len(hot))
        self.rates = np.array([HOT if number in hot else rest for number in range(PARTITIONS)])

    def kill(self, member: Member) -> None:
        """As ``kill -9`` does: the others are told when its session ends."""
        member.alive = False
        self.at(self.now_s + self.config.session_s, lambda: self._begin_rebalance(None))

    def restart(self, member: Member, program: str, speed: float) -> Member:
        """As a deployment does: the member leaves, and a new one joins in its place."""
        member.alive = False
        new = Member(self, f"m{len(self.members)}", program, speed, None)
        self.members.append(new)
        self._begin_rebalance(None)
        return new

    def ask(self, leader: Member) -> bool:
        """The leader asks for a rebalance: the others hear of it with their next heartbeat."""
        self.outcome.asked_s.append(self.now_s)
        self._begin_rebalance(leader)
        return True

    def _begin_rebalance(self, leader: Member | None) -> None:
        self.at(self.now_s + float(self.rng.uniform(0.5, 1.0)) * self.config.heartbeat_s, lambda: self._join(leader))

    def _join(self, leader: Member | None) -> None:
        for member in self.alive:
            member.commit_all()
            member.stopped = True
        self.at(self.now_s + _REBALANCE_S, lambda: self._rebalance(leader))

    def _rebalance(self, leader: Member | None) -> None:
        joined = [
            JoinedMember(id=each.name, subscription=Subscription.decode(each.participant.subscription(self.topics)))
            for each in self.alive
        ]
        answer = self.alive[0].participant.assign(joined, self)
        self.generation += 1
        for member in self.alive:
            given = Assignment.decode(answer[member.name])
            member.assigned(given, self.generation)
        if leader is not None:
            self.outcome.rebalanced_s.append(self.now_s)

    def _tick(self) -> None:
        """Records arrive; what comes in the next seconds is drawn at once."""
        if not self._coming:
            lump, shape = self.config.lump, (_SAMPLE_TICKS, PARTITIONS)
            drawn = lump * self.rng.poisson(self.rates / self.cost * _TICK_S / lump, shape).cumsum(axis=0)
            self._coming.extend((drawn + np.array(self.end, int)).tolist())
            self.outcome.lag.append((self.now_s, max(each.waiting for each in self.alive)))
        self.end = self._coming.popleft()
        self.at(self.now_s + _TICK_S, self._tick)

    def partition_count(self, topic: str) -> int | None:
        """All partitions are shared out evenly among the topics."""
        return PARTITIONS // len(self.topics) if topic in self.topics else None

    @property
    def topics(self) -> list[str]:
        """One, or two with a cost."""
        return sorted({topic for topic, _ in self.places})

    def replica_racks(self, topic: str) -> Sequence[Sequence[str]]:
        """None."""
        del topic
        return ()


class Member:
    """A member: its `Participant`, its client, and its program."""

    def __init__(self, group: Group, name: str, program: str, speed: float, settings: LiveSettings | None) -> None:
        self.group, self.name, self.speed, self.cost = group, name, speed, group.cost
        self.alive, self.stopped, self.generation = True, True, 0
        self.position: dict[int, int] = {}
        """The offset behind what was given, of each partition that it owns."""
        self._commits_itself = program not in COMMITS_BY_HAND
        config = group.config
        itself = {"enable_auto_commit": self._commits_itself, "auto_commit_interval_ms": config.commit_s * 1000}
        self._lag = LagLoad(auto_offset_reset="earliest", clock=lambda: group.now_s)
        self.leader = Leader(
            self._lag,
            Weighted(),
            settings or LiveSettings(),
            slack_s=commit_slack_s(itself),
            clock=self._clock,
            tuning=group.tuning,
        )
        self.leader.name = name
        self.leader.ask = lambda: group.ask(self)
        self.leader.decided = group.outcome.decisions.append
        self.participant = Participant("weighted")
        self.participant.leader = self.participant.load = self.leader
        self._ahead_s = float(group.rng.uniform(0, 1e6))
        self._next_commit_s = float(group.rng.uniform(0, config.commit_s))
        self._first = int(group.rng.integers(PARTITIONS))
        self._read_s = float(group.rng.uniform(-5, 0))
        self._steps = PROGRAMS[program](self)
        group.at(float(group.rng.uniform(0, 0.1)), self._go_on)
        group.at(0.0, self._maybe_read)

    @property
    def now_s(self) -> float:
        """The time."""
        return self.group.now_s

    @property
    def mine(self) -> list[int]:
        """The partitions that it owns."""
        return list(self.position)

    @property
    def waiting(self) -> float:
        """What waits for it, as so many records of cost 1."""
        return sum(self.cost[number] * (self.group.end[number] - at) for number, at in self.position.items())

    def _clock(self) -> float:
        return self.group.now_s + self._ahead_s

    def _go_on(self) -> None:
        if self.alive:
            self.group.at(self.now_s + max(next(self._steps), 0.0), self._go_on)

    def poll(self, most: int, timeout_s: float) -> Generator[float, None, Given]:
        """As the clients do: what was given before is committed now, if it is time for that."""
        busy, until_s = self.leader.busy, self.now_s + timeout_s
        busy.polls(round(self.now_s * 1e9))
        if self._commits_itself and self.now_s >= self._next_commit_s:
            self._next_commit_s = self.now_s + self.group.config.commit_s
            self.commit(self.position)
        given = self._take(most)
        while not given and (self.now_s < until_s or self.stopped):
            yield _TICK_S
            given = self._take(most)
        counts: Counter[str] = Counter()
        for partition, start, stop in given:
            counts[self.group.places[partition][0]] += stop - start
        busy.given(counts, round(self.now_s * 1e9))
        return given

    def _take(self, most: int) -> Given:
        if self.stopped or not self.position or not most:
            return ()
        mine, given = self.mine, []
        for number in range(len(mine)):
            partition = mine[(self._first + number) % len(mine)]
            start = self.position[partition]
            stop = min(self.group.end[partition], start + most)
            if stop > start:
                given.append((partition, start, stop))
                self.position[partition] = stop
                most -= stop - start
            if not most:
                break
        self._first += 1
        return given

    def commit(self, offsets: Mapping[int, int], *, noted: bool = True) -> None:
        """Commit, with a note beside the first offset."""
        offsets = {partition: offset for partition, offset in offsets.items() if partition in self.position}
        if self.stopped or not offsets:
            return
        note = self.leader.note(self.name) if noted and self.group.config.notes else ""
        for partition, offset in offsets.items():
            self.group.committed[partition] = offset
            self.group.notes[partition], note = note, ""

    def commit_all(self) -> None:
        """Before a rebalance: what the program has been given, where its client commits by itself."""
        if self._commits_itself:
            self.commit(self.position)

    def assigned(self, given: Assignment, generation: int) -> None:
        """Begin anew, where the group has committed."""
        mine = {(topic, number) for topic, numbers in given.partitions.items() for number in numbers}
        rows = [row for row, place in enumerate(self.group.places) if place in mine]
        self.position = {row: self.group.committed[row] for row in rows}
        self.participant.assigned(given.partitions, generation, user_data=given.user_data)
        self.generation, self.stopped = generation, False
        self._read_s = self.now_s

    def _maybe_read(self) -> None:
        """Read the offsets when that is due, as long as this member leads."""
        if self.alive and not self.stopped and self.now_s - self._read_s >= self._lag.interval_s - _TICK_S / 2:
            self._read_s = self.now_s
            if self._lag.lacks_history and self._lag.prior_listener is not None and self.now_s > HISTORY_S:
                ends = (np.array(self.group.end) - self.group.rates / self.cost * HISTORY_S).astype(int).tolist()
                self._lag.prior_listener(dict(zip(self.group.places, ends, strict=True)))
            self._lag.update(
                {
                    self.group.places[number]: PartitionOffsets(0, end, committed, self.group.notes.get(number, ""))
                    for number, (end, committed) in enumerate(zip(self.group.end, self.group.committed, strict=True))
                }
            )
        self.group.at(self.now_s + _TICK_S, self._maybe_read)


def shifted(
    program: str, config: Config = QUICK, seed: int = 0, *, wait_s: float = 120.0, tuning: Tuning | None = None
) -> tuple[Played, float]:
    """Play the shift with three members of one program; also when it was."""
    group = Group([program] * 3, config, seed=seed, tuning=tuning)
    at_s = 45.0 + float(group.rng.uniform(0, 5))
    group.run(at_s)
    group.shift()
    group.run(at_s + wait_s)
    return group.outcome, at_s


def calm(program: str, config: Config = QUICK, seed: int = 0, *, seconds: float = 600.0) -> Played:
    """Play a group in which nothing happens."""
    group = Group([program] * 3, config, seed=seed)
    group.run(seconds)
    return group.outcome


def downstream(program: str, config: Config = QUICK, seed: int = 0, *, lasts_s: float = 20.0) -> Played:
    """Play a group whose database is slow for everybody for a while."""
    group = Group([program] * 3, config, seed=seed)
    group.run(60.0)
    for member in group.members:
        member.speed = 0.4 * SPEED
    group.run(60.0 + lasts_s)
    for member in group.members:
        member.speed = SPEED
    group.run(180.0)
    return group.outcome


def burst(program: str, config: Config = QUICK, seed: int = 0) -> Played:
    """Play a group in which one member gets three times its records for a second."""
    group = Group([program] * 3, config, seed=seed)
    group.run(60.0)
    even = group.rates.copy()
    group.rates[sorted(group.members[0].position)] *= 3
    group.run(61.0)
    group.rates = even
    group.run(180.0)
    return group.outcome


_Row = tuple[str, str, list[tuple[float, float, float, int]], int]


def _row(work: tuple[str, str, Config, Sequence[int]]) -> _Row:
    program, name, config, seeds = work
    each = []
    for seed in seeds:
        outcome, at_s = shifted(program, config, seed)
        early = sum(asked < at_s for asked in outcome.asked_s)
        each.append((outcome.first_s(at_s), outcome.calm_s(at_s), outcome.most(at_s), early))
    unasked = sum(len(play(program, config, seeds[0]).asked_s) for play in (calm, downstream, burst))
    return program, name, each, unasked


CONFIGS: Mapping[str, Config] = {
    "quick": QUICK,
    "quick, batches of 100": Config(lump=100),
    "quick, batches of 1,000": Config(lump=1000),
    "quick, batches of 10,000": Config(lump=10_000),
    "quick, costs 1:10": Config(cost=10.0),
    "quick, no notes": Config(notes=False),
    "defaults": DEFAULTS,
    "defaults, no notes": Config(commit_s=5.0, heartbeat_s=3.0, session_s=45.0, notes=False),
}


def lines(rows: Iterator[_Row]) -> Iterator[str]:
    """The table."""
    heads = f"{'first s':>8} {'worst':>6} {'calm s':>8} {'worst':>6} {'most':>7} {'unasked':>8}"
    yield f"{'program':18} {'clients':24} {heads}"
    for program, name, each, unasked in rows:
        first, back, most, early = zip(*each, strict=True)
        yield (
            f"{program:18} {name:24} {median(first):8.1f} {max(first):6.1f} {median(back):8.1f} {max(back):6.1f}"
            f" {max(most):7,.0f} {unasked + sum(early):8}"
        )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.shapes", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--clients", nargs="*", default=["quick", "defaults"], choices=list(CONFIGS))
    parser.add_argument("--processes", type=int)
    args = parser.parse_args()
    work = [(program, name, CONFIGS[name], range(args.seeds)) for name in args.clients for program in args.programs]
    with ProcessPoolExecutor(args.processes) as workers:
        for line in lines(iter(workers.map(_row, work))):
            print(line, flush=True)


if __name__ == "__main__":
    main()
