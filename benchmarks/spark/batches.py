"""Batch queries: all readers read the same topic in turns, so that a busy moment of the machine hits all alike."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
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
WORKS: Mapping[str, Callable[[Any], Any]] = {
    "count": lambda frame: frame.count(),
    "all columns": lambda frame: frame.write.format("noop").mode("overwrite").save(),
}
"""The work on the records."""


@dataclass(frozen=True, slots=True)
class Reader:
    """One way to read a topic."""

    name: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    def frame(self, spark: Any, options: Mapping[str, str], *, stream: bool = False) -> Any:
        """A DataFrame of the topic that the options name."""
        reader = spark.readStream if stream else spark.read
        return reader.format(self.format).options(**options, **self.options).load()


def readers(slots: int, records: int, *, connector: bool, min_partitions: int | None = None) -> list[Reader]:
    """Ours, one that reads nothing (`benchmarks.spark.ready`), and Spark's own with defaults and tuned.

    The tuned one makes at least ``min_partitions`` tasks.
    """
    # More slots than CPUs share these.
    tasks = min(slots, os.cpu_count() or slots)
    python = [Reader(OURS, OURS), Reader(READY, READY, {"records": str(records), "tasks": str(tasks)})]
    split = {} if min_partitions is None else {"minPartitions": str(min_partitions)}
    tuned = ", ".join([THEIRS, "tuned", *(f"{name}={value}" for name, value in split.items())])
    theirs = [Reader(THEIRS, THEIRS), Reader(tuned, THEIRS, TUNED | split)]
    return python + (theirs if connector else [])


def measure_batches(
    spark: Any, options: Mapping[str, str], each: Sequence[Reader], *, work: str, rounds: int, warm_up: int
) -> list[tuple[float, float]]:
    """Median wall and CPU seconds of each reader, with one of `WORKS`; the first ``warm_up`` turns do not count."""
    return medians(
        each, lambda reader: [measure_batch(spark, options, reader, work=work)], rounds=rounds, warm_up=warm_up
    )


def medians(
    each: Sequence[Reader], measure: Callable[[Reader], list[tuple[float, float]]], *, rounds: int, warm_up: int
) -> list[tuple[float, float]]:
    """The median wall and CPU seconds of what ``measure`` finds for each reader, which come in turns."""
    found: dict[str, list[tuple[float, float]]] = {reader.name: [] for reader in each}
    for turn in range(rounds + warm_up):
        for reader in in_turn(each, turn):
            measured = measure(reader)
            if turn >= warm_up:
                found[reader.name] += measured
    return [(median(wall_s), median(cpu_s)) for wall_s, cpu_s in (zip(*of, strict=True) for of in found.values())]


def in_turn(each: Sequence[Reader], turn: int) -> list[Reader]:
    """All of them; another one begins each turn, and each comes after another one than in the turn before.

    Who comes after a slow one finds the machine colder. It is one row of a Williams design: of an even number of
    readers, each comes after each other one once in as many turns.
    """
    steps = [0, *(step for far in range(1, len(each)) for step in (far, -far))]
    return [each[(turn + step) % len(each)] for step in steps[: len(each)]]


def measure_batch(spark: Any, options: Mapping[str, str], reader: Reader, *, work: str) -> tuple[float, float]:
    """Wall and CPU seconds of one query, from before it is planned."""
    with cpu_meter(spark) as cpu:
        began = time.monotonic()
        WORKS[work](reader.frame(spark, options))
        wall_s = time.monotonic() - began
    return wall_s, cpu.used_s


def cpu_meter(spark: Any) -> CpuMeter:
    """Counts for the session's JVM and everything below it: PySpark's daemon, workers and planners."""
    return CpuMeter(spark.sparkContext._gateway.proc.pid)
