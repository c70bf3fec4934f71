"""Batch queries: all readers read the same topic in turns, so that a busy moment of the machine hits all alike."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from confluent_kafka import Producer

from benchmarks.spark.cpu import meter
from benchmarks.spark.environment import make_topic
from benchmarks.spark.memory import forget_peaks, peak_mb
from benchmarks.spark.readers import OURS, Reader
from benchmarks.spark.results import Measured, medians
from benchmarks.spark.session import task_times_s

PARTITIONS = 12
VALUE = b"v" * 100
WORKS: Mapping[str, Callable[[Any], Any]] = {
    "count": lambda frame: frame.count(),
    "all columns": lambda frame: frame.write.format("noop").mode("overwrite").save(),
    # About 5 µs for a record of 100 bytes.
    "work for each record": lambda frame: frame.selectExpr("max(sha2(repeat(value, 8), 512))").collect(),
}
"""The work on the records."""


def publish(brokers: str, kind: str, records: int) -> str:
    """Make a topic of ``records``, in equal parts ("uniform") or with half of them in partition 0 ("skewed")."""
    topic = f"{kind}-{uuid.uuid4()}"
    make_topic(brokers, topic, PARTITIONS)
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 50, "queue.buffering.max.messages": 500_000})
    for number in range(records):
        while True:
            try:
                producer.produce(topic, VALUE, partition=partition_of(number, kind))
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(600)
    if left:
        raise TimeoutError(f"{left} of {records} records could not be published to {brokers} within 10 minutes")
    return topic


def partition_of(number: int, kind: str) -> int:
    """The partition of a record of a topic of this kind."""
    if kind == "uniform":
        return number % PARTITIONS
    return 0 if number % 2 else 1 + number // 2 % (PARTITIONS - 1)


def measure_batches(
    spark: Any,
    options: Mapping[str, str],
    readers: Sequence[Reader],
    *,
    work: str,
    rounds: int,
    idle_mb: float,
    warm_up: int = 1,
) -> dict[str, Measured]:
    """Median figures of each reader, with one of `WORKS`. ``idle_mb``: `benchmarks.spark.memory.idle_mb`.

    The first ``warm_up`` turns do not count.
    """
    rows: dict[str, list[Measured]] = {reader.name: [] for reader in readers}
    for turn in range(rounds + warm_up):
        for reader in in_turn(readers, turn):
            row = measure_batch(spark, options, reader, work=work, idle_mb=idle_mb)
            if turn >= warm_up:
                rows[reader.name].append(row)
    return {name: medians(mine) for name, mine in rows.items()}


def in_turn(readers: Sequence[Reader], turn: int) -> list[Reader]:
    """All of them; another one begins each turn, and each comes after another one than in the turn before.

    Who comes after a slow one finds the machine colder. It is one row of a Williams design: of an even number of
    readers, each comes after each other one once in as many turns.
    """
    steps = [0, *(step for far in range(1, len(readers)) for step in (far, -far))]
    return [readers[(turn + step) % len(readers)] for step in steps[: len(readers)]]


def measure_batch(
    spark: Any, options: Mapping[str, str], reader: Reader, *, work: str, idle_mb: float = 0.0
) -> Measured:
    """One query, from before it is planned."""
    group = str(uuid.uuid4())
    spark.sparkContext.setJobGroup(group, reader.name)
    forget_peaks(spark)
    with meter(spark) as cpu:
        began = time.monotonic()
        WORKS[work](reader.frame(spark, options))
        wall_s = time.monotonic() - began
    tasks = task_times_s(spark, group)
    memory_mb = peak_mb(spark) - idle_mb if reader.format == OURS else None
    return Measured(wall_s, cpu.used_s, max(tasks) / fmean(tasks), memory_mb)
