"""Micro-batches of a known size: some records into each partition, then the micro-batch that reads them, and again."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from benchmarks.spark.batches import PARTITIONS, VALUE, in_turn, publish
from benchmarks.spark.cpu import meter
from benchmarks.spark.readers import COUNTER, READY, Reader
from benchmarks.spark.ready import write_counter
from benchmarks.spark.results import Measured, medians

WARM_UP = 5
"""Micro-batches of each query that do not count."""
TRIES = 4
"""The most micro-batches for one that counts."""
PATIENCE_S = 120.0


def measure_micro_batches(
    spark: Any,
    brokers: str,
    readers: Sequence[Reader],
    *,
    records: int,
    count: int,
    rounds: int,
    warm_up: int = WARM_UP,
) -> dict[str, Measured]:
    """Median figures of each reader: ``count`` micro-batches a round, of ``records`` a partition.

    The first ``warm_up`` of each query do not count, nor does a first query of each reader: who comes first compiles
    for all others.
    """
    rows: dict[str, list[Measured]] = {reader.name: [] for reader in readers}
    for reader in readers if warm_up else ():
        _measure(spark, brokers, reader, records=records, count=1, warm_up=warm_up)
    for turn in range(rounds):
        for reader in in_turn(readers, turn):
            rows[reader.name] += _measure(spark, brokers, reader, records=records, count=count, warm_up=warm_up)
    return {name: medians(mine) for name, mine in rows.items()}


def _measure(spark: Any, brokers: str, reader: Reader, *, records: int, count: int, warm_up: int) -> list[Measured]:
    topic = publish(brokers, "uniform", PARTITIONS)
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic, "startingOffsets": "earliest"}
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5})
    found: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="loadwise-benchmark-", ignore_cleanup_errors=True) as checkpoint:
        told = PARTITIONS
        if reader.format == READY:  # reads no Kafka, and gets the time at which the records exist
            counter = Path(checkpoint, COUNTER)
            write_counter(counter, told)
            options = {COUNTER: str(counter)}
        writer = reader.frame(spark, options, stream=True).writeStream.format("noop")
        query = writer.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start()
        try:
            last = _next_micro_batches(query, -1, PARTITIONS)[-1]["batchId"]
            for turn in range(warm_up + TRIES * count):
                if len(found) == count:
                    return found
                with meter(spark) as cpu:
                    for _ in range(records):
                        for partition in range(PARTITIONS):
                            producer.produce(topic, VALUE, partition=partition)
                    producer.flush(PATIENCE_S)
                    if reader.format == READY:
                        told += PARTITIONS * records
                        write_counter(counter, told)
                    seen = _next_micro_batches(query, last, PARTITIONS * records)
                last = seen[-1]["batchId"]
                # One that began before all records were there is of another size, and so is the next.
                if turn >= warm_up and len(seen) == 1:
                    found.append(Measured(seen[0]["durationMs"]["triggerExecution"] / 1000, cpu.used_s))
        finally:
            query.stop()
    raise RuntimeError(f"{reader.name}: only {len(found)} of {warm_up + TRIES * count} micro-batches were of one piece")


def _next_micro_batches(query: Any, last: int, records: int) -> list[dict[str, Any]]:
    """Wait for those after ``last`` that together read ``records``. Raises RuntimeError if the query fails."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        seen = [each for each in query.recentProgress if each["batchId"] > last and each["numInputRows"]]
        if sum(each["numInputRows"] for each in seen) >= records:
            return seen
        if not query.isActive:
            raise RuntimeError("the query ended") from query.exception()
        if time.monotonic() > deadline:
            raise TimeoutError(f"no micro-batch with {records} records within {PATIENCE_S:.0f} s")
        time.sleep(0.02)  # between two looks
