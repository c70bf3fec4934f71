"""Who assigns the simulated group: loadwise, others, and one that knows what nobody can know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.live.world import Piece, Scene
from benchmarks.quality.rivals import Greedy, LagBased
from loadwise.assignor.algorithms.roundrobin import RoundRobin
from loadwise.assignor.algorithms.sticky import Sticky
from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.events import Asked, Assigned, PriorEnds, Said
from loadwise.assignor.live.reading import Position
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import Tuning
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.model import RECORDS_PER_S, Assignment, Assignor, Bools, Floats, GroupSnapshot, Member


@dataclass(frozen=True, eq=False, slots=True)
class Reading:
    """What one look at the group's offsets tells; arrays in the order of ``partitions``."""

    partitions: Sequence[tuple[str, int]]
    end: Floats
    lag: Floats
    seen: Bools
    """bool[P]: which partitions the reading has."""
    noted: Mapping[str, int] = field(default_factory=dict)
    """When members have written the newest note beside a commit, in ms."""

    def positions(self) -> tuple[Sequence[tuple[str, int]], Floats]:
        """As `GroupWatch.read_columns` gets them: the partitions, and the fields of a `Position` of each."""
        rows = np.flatnonzero(self.seen)
        usual = Position(0, 0)
        others = [np.full(len(rows), value, np.float64) for value in (usual.committed, usual.age_s)]
        columns = np.stack([np.floor(self.end[rows]), np.floor(self.lag[rows]), *others], axis=1)
        return [self.partitions[row] for row in rows.tolist()], columns


class Policy:
    """Assigns when members come and go, as its assignor does, by the newest lag; never asks for a rebalance."""

    free = False
    """Whether its rebalances cost nothing."""
    cooperative = False
    """Whether partitions that stay are processed during a rebalance."""
    learns = False
    """Whether it listens to what members measure of themselves."""

    def __init__(self, name: str, assignor: Assignor) -> None:
        self.name = name
        self._assignor = assignor
        self._partitions: Sequence[tuple[str, int]] = ()
        self._lag = np.empty(0)
        self.soon_s: int | None = None
        """The next reading comes after this many seconds; None: as usual."""

    def begin(self, scene: Scene, minute_ago: Reading) -> None:
        """The group begins; ``minute_ago`` is where partitions ended then, as the log's timestamps tell it."""
        self._partitions, self._lag = minute_ago.partitions, np.full(len(minute_ago.partitions), np.nan)

    def conditions(self, piece: Piece) -> None:
        """What is true from now on; nobody but the all-knowing ones may look."""

    def changed(self, now_s: int) -> None:
        """The conditions have changed and the group was not told."""

    def measured(self, member: str, per_s: float, each_s: Mapping[str, float], now_s: int) -> None:
        """A member tells what it processes in a busy second, 0 where it does not know, and how long records take."""

    def read(self, reading: Reading, now_s: int) -> bool:
        """Take a reading; whether to rebalance."""
        self._lag = np.where(reading.seen, reading.lag, self._lag)
        return False

    def assign(self, members: Sequence[Member], counts: Mapping[str, int], now_s: int, took_s: int) -> Assignment:
        """Assign the group; the rebalance takes ``took_s`` seconds."""
        lag: dict[str, list[float]] = {}
        for (topic, _), value in zip(self._partitions, self._lag.tolist(), strict=True):
            lag.setdefault(topic, []).append(value)
        load = {topic: np.array(lag[topic][:count]) for topic, count in counts.items()}
        return self._assignor.assign(GroupSnapshot.of(members, counts, load=load))


class Live(Policy):
    """loadwise as it is: the demand is balanced, and the leader asks for a rebalance where that pays."""

    def __init__(
        self,
        name: str = "loadwise",
        settings: LiveSettings | None = None,
        tuning: Tuning | None = None,
        *,
        learns: bool = True,
        cooperative: bool = False,
    ) -> None:
        super().__init__(name, Weighted())
        self.learns, self.cooperative = learns, cooperative
        self.settings, self.tuning = settings or LiveSettings(), tuning or Tuning()
        self.watch = GroupWatch(self.settings, self._assignor, cooperative=cooperative, tuning=self.tuning)
        self.decisions: list[Decision] = []
        self.saved: list[tuple[int, float, float]] = []
        self.wanted: int | None = None
        """Members that the leader would have a scaler give the group."""
        self._stated: Mapping[str, float] = {}

    def anew(self) -> Live:
        """The same before its first reading."""
        return Live(self.name, self.settings, self.tuning, learns=self.learns, cooperative=self.cooperative)

    def begin(self, scene: Scene, minute_ago: Reading) -> None:
        """Take what the log tells for an early reading."""
        self._stated = scene.stated
        partitions, positions = minute_ago.positions()
        ends = dict(zip(partitions, positions[:, 0].astype(int).tolist(), strict=True))
        self.watch.handle(PriorEnds(at_ms=-60_000, ends=ends))

    def measured(self, member: str, per_s: float, each_s: Mapping[str, float], now_s: int) -> None:
        """Take it for the member's capacity, and for what records cost."""
        self.watch.knowledge.took(member, each_s, now_s * 1000)
        self.watch.measured(member, per_s, now_s * 1000)

    def read(self, reading: Reading, now_s: int) -> bool:
        """Take a reading, and decide."""
        self.watch.knowledge.read_columns(*reading.positions(), now_s * 1000)
        said = {name: Said(written_ms=at_ms) for name, at_ms in reading.noted.items()}
        self.watch.knowledge.noted(said, now_s * 1000)
        self.watch.knowledge.learn_costs()
        decision = self.watch.decide(now_s * 1000)
        self.wanted = None if decision is None else decision.wanted
        self.soon_s = round(self.tuning.soon_s) if decision is not None and decision.soon else None
        if decision is not None and decision.saved_s is not None:
            self.saved.append((now_s, decision.lag_s, decision.saved_s))
        if decision is None or not decision.ask:
            return False
        self.decisions.append(decision)
        self.watch.handle(Asked(at_ms=decision.now_ms))
        return True

    def assign(self, members: Sequence[Member], counts: Mapping[str, int], now_s: int, took_s: int) -> Assignment:
        """Assign by demand and learned capacities."""
        stated = {member.id: self._stated.get(member.id, 0.0) for member in members}
        learned = self.watch.knowledge.capacities(members, stated, now_s * 1000)
        group = GroupSnapshot.of(learned, counts, load=self.watch.loads(), load_unit=RECORDS_PER_S)
        group = replace(group, even_up_to=self.watch.even_up_to(now_s * 1000))
        target = self._assignor.assign(group)
        end_ms, took_ms = (now_s + took_s) * 1000, took_s * 1000
        self.watch.handle(Assigned(at_ms=end_ms, target=target, stated=stated, generation=1, duration_ms=took_ms))
        return target


class GreedyAlways(Live):
    """Largest first from scratch, by the newest rates, at every reading that would change anything."""

    learns = False

    def __init__(self) -> None:
        super().__init__("greedy at every reading")
        self._assignor = Greedy()
        self._members: Sequence[Member] = ()
        self._counts: Mapping[str, int] = {}
        self._last: Assignment | None = None

    def read(self, reading: Reading, now_s: int) -> bool:
        """Take a reading; rebalance where the answer differs."""
        self.watch.knowledge.read_columns(*reading.positions(), now_s * 1000)
        if self._last is None:
            return False
        answer = self._assignor.assign(GroupSnapshot.of(self._members, self._counts, load=self.watch.loads()))
        return not np.array_equal(answer.owner, self._last.owner)

    def assign(self, members: Sequence[Member], counts: Mapping[str, int], now_s: int, took_s: int) -> Assignment:
        """Assign from scratch."""
        self._members, self._counts = members, counts
        self._last = self._assignor.assign(GroupSnapshot.of(members, counts, load=self.watch.loads()))
        return self._last


class AllKnowing(Policy):
    """Knows the true rates, costs and speeds at once, and rebalances at no cost whenever they change."""

    free = True

    def __init__(self) -> None:
        super().__init__("all-knowing", Weighted(epsilon=0.0, trigger=0.0))
        self._piece: Piece | None = None
        self._changed = False

    def conditions(self, piece: Piece) -> None:
        """Look."""
        self._piece = piece

    def changed(self, now_s: int) -> None:
        """Rebalance at the next reading."""
        self._changed = True

    def read(self, reading: Reading, now_s: int) -> bool:
        """Rebalance where anything changed."""
        changed, self._changed = self._changed, False
        return changed

    def assign(self, members: Sequence[Member], counts: Mapping[str, int], now_s: int, took_s: int) -> Assignment:
        """Assign by the truth."""
        piece = self._piece
        if piece is None:
            raise RuntimeError("a group is assigned before it has begun")
        alive = [replace(member, capacity=piece.capacity.get(member.id, 1e-3)) for member in members]
        work = {topic: rates * piece.cost.get(topic, 1.0) for topic, rates in piece.rates.items()}
        return self._assignor.assign(GroupSnapshot.of(alive, counts, load=work))


def policies() -> list[Policy]:
    """One of each, fresh."""
    return [
        AllKnowing(),
        Live(),
        Policy("lag, at joins only", Weighted()),
        GreedyAlways(),
        Policy("round robin", RoundRobin()),
        Policy("sticky", Sticky()),
        Policy("lag-based", LagBased()),
    ]
