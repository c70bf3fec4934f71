"""Measures every assignor on the same cases in the same run: turn by turn, so that a busy moment hits them all."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from benchmarks.speed.cases import Size
from benchmarks.speed.worker import Worker

OURS, JAVA, SERVER = "loadwise", "Java", "Java server"

SERVER_NAMES = {"range": "server-range", "sticky": "server-uniform", "cooperative-sticky": "server-uniform"}
"""Which of the KIP-848 assignors does what a client's does: uniform keeps partitions where they are, as sticky does."""

STOCK = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
"""Strategies that Kafka has, too."""

MEASURES = ("names", "wire")
_JAVAS_WARM_UP = 4.0
"""How much longer than ours Java is warmed up, for its compiler's sake."""
_MOST_CALLS = 300

MEMORY = "memory"
Found = Mapping[tuple[str, str], float]
"""Median wall time in seconds by assignor and measure; with `MEMORY` the most MiB that its process has held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure, and how long."""

    sizes: Sequence[Size]
    strategies: Sequence[str]
    phases: Sequence[str]
    measures: Sequence[str]
    seconds: float
    """Time for each measure of each case, about, and for its warming up (Java's: four times that)."""
    rounds: int
    """Turns that the assignors take; each calls at least once a turn."""
    java: Sequence[str]
    """The command that runs Java's; empty to leave them out."""


def measure(plan: Plan, size: Size) -> Iterator[tuple[str, Found]]:
    """Measure one case of a size after the other; each has a name."""
    for strategy in plan.strategies:
        commands = {OURS: [sys.executable, "-m", "benchmarks.speed.ours"]}
        if strategy in STOCK and plan.java:
            commands[JAVA] = list(plan.java)
            if strategy in SERVER_NAMES and "names" in plan.measures:
                commands[SERVER] = list(plan.java)
        with ExitStack() as stack:
            workers = {runner: stack.enter_context(Worker(command)) for runner, command in commands.items()}
            for phase in plan.phases:
                print(f"{size.name}, {strategy}, {phase}", file=sys.stderr, flush=True)
                for runner, worker in workers.items():
                    worker.prepare(SERVER_NAMES[strategy] if runner == SERVER else strategy, phase, size)
                times = {
                    (runner, name): seconds
                    for name in plan.measures
                    for runner, seconds in _race(plan, name, workers).items()
                }
                yield f"{strategy}, {phase}", times | {(OURS, MEMORY): workers[OURS].peak_mib}


def _race(plan: Plan, name: str, workers: Mapping[str, Worker]) -> dict[str, float]:
    """The median of each assignor in one measure. The broker's have no bytes of members."""
    calls: dict[str, int] = {}
    times: dict[str, list[float]] = {}
    for runner, worker in workers.items():
        if runner != SERVER or name == "names":
            once = worker.warm_up(name, plan.seconds * (1.0 if runner == OURS else _JAVAS_WARM_UP))
            calls[runner] = max(1, min(_MOST_CALLS, int(plan.seconds / plan.rounds / once)))
    for _ in range(plan.rounds):
        for runner, count in calls.items():
            times.setdefault(runner, []).extend(workers[runner].time(name, count))
    return {runner: median(taken) for runner, taken in times.items()}
