"""Who assigns the simulated group: loadwise, others, and one that knows what nobody can know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.quality.rivals import Greedy, LagBased
from loadwise.assignor.algorithms.roundrobin import RoundRobin
from loadwise.assignor.algorithms.sticky import Sticky
from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.watch import GroupWatch, Position
from loadwise.assignor.model import Assignment, Assignor, Floats, GroupSnapshot, Member


class Policy:
    """Assigns when members come and go, as its assignor does, by the newest lag; never asks for a rebalance."""

    free = False
    """Whether its rebalances cost nothing."""

    def __init__(self, name: str, assignor: Assignor) -> None:
        self.name = name
        self._assignor = assignor
        self._lag: dict[str, Floats] = {}

    def conditions(self, rates: Mapping[str, Floats], capacity: Mapping[str, float]) -> None:
        """What is true from now on; nobody but the all-knowing one may look."""

    def prior(self, ends: Mapping[tuple[str, int], int]) -> None:
        """Where partitions ended a minute before the group began, as the log's timestamps tell it."""

    def changed(self, now_s: int) -> None:
        """The conditions have changed and the group was not told."""

    def measured(self, member: str, per_s: float, now_s: int) -> None:
        """A member tells what it processes in a busy second."""

    def read(self, positions: Mapping[tuple[str, int], Position], now_s: int) -> bool:
        """Take a reading; whether to rebalance."""
        for (topic, number), where in positions.items():
            row = self._lag.setdefault(topic, np.empty(0))
            if len(row) <= number:
                row = self._lag[topic] = np.concatenate([row, np.full(number + 1 - len(row), np.nan)])
            row[number] = where.lag
        return False

    def assign(self, members: Sequence[Member], counts: Mapping[str, int], now_s: int, took_s: int) -> Assignment:
        """Assign the group; the rebalance takes ``took_s`` seconds."""
        return self._assignor.assign(GroupSnapshot.of(members, counts, load=self._lag or None))


class Live(Policy):
    """loadwise as it is: the demand is balanced, and the leader asks for a rebalance where that pays."""

    def __init__(self, name: str = "loadwise", settings: LiveSettings | None = None) -> None:
        super().__init__(name, Weighted())
        self.settings = settings or LiveSettings()
        self.watch = GroupWatch(self.settings, self._assignor)
        self.decisions: list[Decision] = []

    def prior(self, ends: Mapping[tuple[str, int], int]) -> None:
        """Take it for an early reading."""
        self.watch.prior(ends, -60_000)

    def measured(self, member: str, per_s: float, now_s: int) -> None:
        """Take it for the member's capacity."""
        self.watch.estimates.measured(member, per_s, now_s * 1000)

    def read(self, positions: Mapping[tuple[str, int], Position], now_s: int) -> bool:
        """Take a reading, and decide."""
        self.watch.read(positions, now_s * 1000)
        decision = self.watch.decide(now_s * 1000)
        if decision is None or not decision.ask:
            return False
        self.decisions.append(decision)
        self.watch.asked(decision)
        return True

    def assign(self, members: Sequence[Member], counts: Mapping[str, int], now_s: int, took_s: int) -> Assignment:
        """Assign by demand and learned capacities."""
        stated = {member.id: 0.0 for member in members}
        learned = self.watch.capacities(members, stated, now_s * 1000)
        target = self._assignor.assign(GroupSnapshot.of(learned, counts, load=self.watch.loads()))
        end_ms = (now_s + took_s) * 1000
        self.watch.assigned(target, stated, generation=1, now_ms=end_ms, duration_ms=took_s * 1000)
        return target


class GreedyAlways(Live):
    """Largest first from scratch, by the newest rates, at every reading that would change anything."""

    def __init__(self) -> None:
        super().__init__("greedy at every reading")
        self._assignor = Greedy()
        self._members: Sequence[Member] = ()
        self._counts: Mapping[str, int] = {}
        self._last: Assignment | None = None

    def read(self, positions: Mapping[tuple[str, int], Position], now_s: int) -> bool:
        """Take a reading; rebalance where the answer differs."""
        self.watch.read(positions, now_s * 1000)
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
    """Knows the true rates and speeds at once, and rebalances at no cost whenever they change."""

    free = True

    def __init__(self) -> None:
        super().__init__("all-knowing", Weighted(epsilon=0.0, trigger=0.0))
        self._rates: Mapping[str, Floats] = {}
        self._capacity: Mapping[str, float] = {}
        self._changed = False

    def conditions(self, rates: Mapping[str, Floats], capacity: Mapping[str, float]) -> None:
        """Look."""
        self._rates, self._capacity = rates, capacity

    def changed(self, now_s: int) -> None:
        """Rebalance at the next reading."""
        self._changed = True

    def read(self, positions: Mapping[tuple[str, int], Position], now_s: int) -> bool:
        """Rebalance where anything changed."""
        changed, self._changed = self._changed, False
        return changed

    def assign(self, members: Sequence[Member], counts: Mapping[str, int], now_s: int, took_s: int) -> Assignment:
        """Assign by the truth."""
        alive = [replace(member, capacity=self._capacity.get(member.id, 1e-3)) for member in members]
        return self._assignor.assign(GroupSnapshot.of(alive, counts, load=self._rates))


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
