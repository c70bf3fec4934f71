"""Near-empty micro-batches: one record into each partition, then the micro-batch that reads them, and again."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from benchmarks.records import PARTITIONS, VALUE, publish
from benchmarks.spark.batches import READY, Reader, cpu_meter, medians

WARM_UP = 5
"""Micro-batches of each query that do not count."""
TRIES = 4
"""The most micro-batches for one that counts."""
PATIENCE_S = 120.0


def measure_micro_batches(
    spark: Any, brokers: str, each: Sequence[Reader], *, count: int, rounds: int, warm_up: int = 1
) -> list[tuple[float, float]]:
    """Median wall and CPU seconds of each reader, of ``count`` micro-batches a round.

    The first ``warm_up`` turns do not count: who comes first compiles for all others.
    """
    return medians(each, lambda reader: _measure(spark, brokers, reader, count), rounds=rounds, warm_up=warm_up)


def _measure(spark: Any, brokers: str, reader: Reader, count: int) -> list[tuple[float, float]]:
    """Wall and CPU seconds of ``count`` micro-batches of one query."""
    found: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(prefix="loadwise-benchmark-", ignore_cleanup_errors=True) as folder:
        options, add = _file_of_ready(Path(folder, "records")) if reader.format == READY else _topic(brokers)
        writer = reader.frame(spark, options, stream=True).writeStream.format("noop")
        checkpoint = str(Path(folder, "checkpoint"))
        query = writer.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start()
        try:
            last = _next_micro_batches(query, -1)[-1]["batchId"]
            for turn in range(WARM_UP + TRIES * count):
                with cpu_meter(spark) as cpu:
                    add()
                    seen = _next_micro_batches(query, last)
                last = seen[-1]["batchId"]
                # One that began before all records were there is of another size, and so is the next.
                if turn >= WARM_UP and len(seen) == 1:
                    found.append((seen[0]["durationMs"]["triggerExecution"] / 1000, cpu.used_s))
                if len(found) == count:
                    return found
        finally:
            query.stop()
    raise RuntimeError(f"{reader.name}: only {len(found)} of {WARM_UP + TRIES * count} micro-batches were of one piece")


def _topic(brokers: str) -> tuple[Mapping[str, str], Callable[[], None]]:
    """Options that read a topic with a record in each partition, and what adds one more to each."""
    topic = publish(brokers, "uniform", PARTITIONS)
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5})

    def add() -> None:
        for partition in range(PARTITIONS):
            producer.produce(topic, VALUE, partition=partition)
        producer.flush(PATIENCE_S)

    return {"kafka.bootstrap.servers": brokers, "subscribe": topic, "startingOffsets": "earliest"}, add


def _file_of_ready(file: Path) -> tuple[Mapping[str, str], Callable[[], None]]:
    """The same for `benchmarks.spark.ready`."""

    def add() -> None:
        with file.open("ab") as records:
            records.write(bytes(PARTITIONS))

    add()
    return {"file": str(file)}, add


def _next_micro_batches(query: Any, last: int) -> list[dict[str, Any]]:
    """Wait for those after ``last`` that together read a record a partition. Raises RuntimeError if the query fails."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        seen = [each for each in query.recentProgress if each["batchId"] > last and each["numInputRows"]]
        if sum(each["numInputRows"] for each in seen) >= PARTITIONS:
            return seen
        if not query.isActive:
            raise RuntimeError("the query ended") from query.exception()
        if time.monotonic() > deadline:
            raise TimeoutError(f"no micro-batch with {PARTITIONS} records within {PATIENCE_S:.0f} s")
        time.sleep(0.02)  # between two looks
