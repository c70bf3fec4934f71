"""Measures every assignor on the same cases in the same run: turn by turn, so that a busy moment hits them all."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from benchmarks.speed.cases import Size
from benchmarks.speed.worker import TooSlowError, Worker, WorkerFailedError

OURS, JAVA, SERVER = "loadwise", "Java", "Java server"

SERVER_NAMES = {"range": "server-range", "sticky": "server-uniform", "cooperative-sticky": "server-uniform"}
"""Which of the KIP-848 assignors does what a client's does: uniform keeps partitions where they are, as sticky does."""

STOCK = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
"""Strategies that Kafka has, too."""

LIMIT_S = 60.0
"""A call that takes longer is given up."""

TOO_SLOW = f"> {LIMIT_S:.0f} s"

MEASURES = ("names", "bare", "wire")
_HAS = {OURS: MEASURES, JAVA: ("names", "wire")}
_WARM_UP = {JAVA: 4.0, SERVER: 4.0}
"""How much longer than the others Java is warmed up, for its compiler's sake."""
_MOST_CALLS = 300


@dataclass(frozen=True, slots=True)
class Cell:
    """What one assignor took for one case."""

    runner: str
    strategy: str
    phase: str
    size: Size
    seconds: Mapping[str, float]
    """Median wall time by measure: ``names``, ``bare``, ``wire``; none where the assignor was given up."""
    above_bytes: int
    """The highest memory of one call above its input; 0 where it could not be told."""
    total_bytes: int
    """The same with input and program."""
    gave_up: str = ""
    """Why there are no times: `TOO_SLOW`, or the assignor's error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure, and how long."""

    sizes: Sequence[Size]
    strategies: Sequence[str]
    phases: Sequence[str]
    measures: Sequence[str]
    """Of `MEASURES`; ``names`` is always among them."""
    seconds: float
    """Time for each measure of each case, about, and for its warming up (Java's: four times that)."""
    rounds: int
    """Turns that the assignors take; each calls at least once a turn."""
    java: Sequence[str]
    """The command that runs Java's; empty to leave them out."""


def measure(plan: Plan, size: Size, progress: Callable[[str], None]) -> Iterator[list[Cell]]:
    """Measure one case of a size after the other; each answers a cell for every assignor, ours first."""
    for strategy in plan.strategies:
        with ExitStack() as stack:
            workers = {
                runner: stack.enter_context(Worker(command, limit_s=LIMIT_S))
                for runner, command in _commands(plan, strategy).items()
            }
            for phase in plan.phases:
                progress(f"{size.name}, {strategy}, {phase}")
                entrants = [_Entrant(runner, strategy, phase, size, worker) for runner, worker in workers.items()]
                _race(entrants, plan)
                yield [entrant.cell() for entrant in entrants]


def _commands(plan: Plan, strategy: str) -> dict[str, list[str]]:
    commands = {OURS: [sys.executable, "-m", "benchmarks.speed.ours"]}
    if strategy in STOCK and plan.java:
        commands[JAVA] = list(plan.java)
        if strategy in SERVER_NAMES:
            commands[SERVER] = list(plan.java)
    return commands


def _race(entrants: Sequence[_Entrant], plan: Plan) -> None:
    for entrant in entrants:
        entrant.attempt(entrant.get_ready, plan)
    for name in plan.measures:
        for _ in range(plan.rounds):
            for entrant in entrants:
                entrant.attempt(entrant.take_turn, name)
    for entrant in entrants:
        entrant.attempt(entrant.weigh)


@dataclass(slots=True)
class _Entrant:
    """One assignor in one race."""

    runner: str
    strategy: str
    phase: str
    size: Size
    worker: Worker
    gave_up: str = ""
    _times: dict[str, list[float]] = field(default_factory=dict)
    _calls: dict[str, int] = field(default_factory=dict)
    _memory: tuple[int, int] = (0, 0)

    def attempt(self, step: Callable[..., None], *arguments: object) -> None:
        """Take a step, unless one was too slow or failed before. Only ours must not fail."""
        if self.gave_up:
            return
        try:
            step(*arguments)
        except TooSlowError:
            self.gave_up = TOO_SLOW
        except WorkerFailedError as error:
            if self.runner == OURS:
                raise
            self.gave_up = str(error).splitlines()[-1]

    def get_ready(self, plan: Plan) -> None:
        """Make the input, warm up, and see how often to call in a turn."""
        self.worker.prepare(
            SERVER_NAMES[self.strategy] if self.runner == SERVER else self.strategy, self.phase, self.size
        )
        for name in plan.measures:
            if name in _HAS.get(self.runner, ("names",)):
                once = self.worker.warm_up(name, plan.seconds * _WARM_UP.get(self.runner, 1.0))
                self._calls[name] = max(1, min(_MOST_CALLS, int(plan.seconds / plan.rounds / once)))
                self._times[name] = []

    def take_turn(self, name: str) -> None:
        """Measure some calls, where the assignor has this measure."""
        if name in self._calls:
            self._times[name] += self.worker.time(name, self._calls[name])

    def weigh(self) -> None:
        """Measure the memory of one call."""
        self._memory = self.worker.memory()

    def cell(self) -> Cell:
        """What came of it."""
        times = {} if self.gave_up else self._times
        seconds = {name: statistics.median(taken) for name, taken in times.items()}
        return Cell(self.runner, self.strategy, self.phase, self.size, seconds, *self._memory, self.gave_up)
