"""Batch queries: all readers read the same topic in turns, so that a busy moment of the machine hits all alike."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.processes import CpuMeter

OURS, THEIRS, READY = "loadwise", "kafka", "ready"
TUNED = {
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.poll.records": "20000",
    "kafka.receive.buffer.bytes": str(1 << 20),
}
"""The best settings of the connector: without the first it waits half a second at the end of a range."""


@dataclass(frozen=True, slots=True)
class Reader:
    """One way to read a topic."""

    name: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    def frame(self, spark: Any, options: Mapping[str, str]) -> Any:
        """A DataFrame of the topic that the options name."""
        return spark.read.format(self.format).options(**options, **self.options).load()


def readers(slots: int, records: int, *, connector: bool) -> list[Reader]:
    """Ours, one that reads nothing (`benchmarks.spark.ready`), and Spark's own with defaults and tuned."""
    # More slots than CPUs share these.
    tasks = min(slots, os.cpu_count() or slots)
    python = [Reader(OURS, OURS), Reader(READY, READY, {"records": str(records), "tasks": str(tasks)})]
    theirs = [Reader(THEIRS, THEIRS), Reader(f"{THEIRS}, tuned", THEIRS, TUNED)]
    return python + (theirs if connector else [])


def measure_batches(
    spark: Any, options: Mapping[str, str], each: Sequence[Reader], *, rounds: int, warm_up: int
) -> list[tuple[float, float]]:
    """Median wall and CPU seconds of each reader; the first ``warm_up`` turns do not count."""
    found: dict[str, list[tuple[float, float]]] = {reader.name: [] for reader in each}
    for turn in range(rounds + warm_up):
        for reader in in_turn(each, turn):
            measured = measure_batch(spark, options, reader)
            if turn >= warm_up:
                found[reader.name].append(measured)
    return [(median(wall_s), median(cpu_s)) for wall_s, cpu_s in (zip(*of, strict=True) for of in found.values())]


def in_turn(each: Sequence[Reader], turn: int) -> list[Reader]:
    """All of them; another one begins each turn, and each comes after another one than in the turn before.

    Who comes after a slow one finds the machine colder. It is one row of a Williams design: of an even number of
    readers, each comes after each other one once in as many turns.
    """
    steps = [0, *(step for far in range(1, len(each)) for step in (far, -far))]
    return [each[(turn + step) % len(each)] for step in steps[: len(each)]]


def measure_batch(spark: Any, options: Mapping[str, str], reader: Reader) -> tuple[float, float]:
    """Wall and CPU seconds of one query of all columns, from before it is planned."""
    # The session's JVM and everything below it: PySpark's daemon, workers and planners.
    with CpuMeter(spark.sparkContext._gateway.proc.pid) as cpu:
        began = time.monotonic()
        reader.frame(spark, options).write.format("noop").mode("overwrite").save()
        wall_s = time.monotonic() - began
    return wall_s, cpu.used_s
