"""One member of a group, as a process of its own: a real consumer with a bounded processing rate.

It obeys the orders of its standard input and reports on its standard output (see `loadwise.demo.messages`). Between
two polls it processes what the first one gave, so the client's own auto-commit never commits what is not processed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from loadwise.assignor.model import NO_GENERATION
from loadwise.demo.lifeline import watch
from loadwise.demo.messages import Assigned, Generation, Message, Order, Processed, Ready, encode
from loadwise.demo.pace import TokenBucket

REPORT_S = 0.1
"""How often a member reports what it has processed."""
BATCH_S = 0.025
"""A poll asks for what may be processed in this time: small enough to keep a steady pace, large enough to be cheap."""
BURST_S = 0.1
"""What a member may catch up after it was held up. A rebalance takes longer: the time it costs is not given back."""

CONFIG: Mapping[str, Any] = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": True,
    "auto_commit_interval_ms": 200,
    # A rebalance is noticed by the next heartbeat: the clients' default of 3 s would be most of a run.
    "heartbeat_interval_ms": 200,
    "session_timeout_ms": 10_000,
    # A fetch for drained partitions is parked by the broker for this long, and holds up the one for the others.
    "fetch_max_wait_ms": 50,
    # The fourth member is placed by lag of this age: a run lasts seconds where real groups live for days.
    "lag_interval_s": 0.5,
}
"""What every consumer is made with that drains a topic, whichever its client."""

LIVE_CONFIG: Mapping[str, Any] = {
    "auto_offset_reset": "earliest",
    "auto_commit_interval_ms": 1_000,
    "heartbeat_interval_ms": 1_000,
    "session_timeout_ms": 6_000,
    "fetch_max_wait_ms": 50,
}
"""What every consumer is made with that reads a stream. All that concerns the load is as it comes."""


class Orders:
    """The orders received so far; set by the thread that reads standard input."""

    def __init__(self) -> None:
        self.join = threading.Event()
        self.go = threading.Event()
        self.stop = threading.Event()
        watch(self._obey, self._end)

    def _obey(self, line: str) -> None:
        {Order.JOIN: self.join, Order.GO: self.go, Order.STOP: self.stop}[Order(line)].set()
        if self.stop.is_set():
            self.join.set()

    def _end(self) -> None:
        self.stop.set()
        self.join.set()


class Reporter:
    """Collects what there is to report and writes it at a bounded rate."""

    def __init__(self) -> None:
        self._ranges: list[list[int]] = []
        self._next_s = 0.0
        self._partitions: list[int] = []
        self._generation = NO_GENERATION

    def send(self, message: Message) -> None:
        """Write a line at once."""
        sys.stdout.write(encode(message) + "\n")
        sys.stdout.flush()

    def state(self, consumer: Any) -> None:
        """Report what the member owns, and at which generation, where that has changed."""
        # The other way round, an old assignment could pass for one of the new generation.
        generation = consumer.rebalances.generation
        partitions = sorted(partition.partition for partition in consumer.assignment())
        if partitions != self._partitions:
            self.flush()  # what was processed under the old assignment comes before the new one
            self._partitions = partitions
            self.send(Assigned(partitions))
        if generation != self._generation:
            self._generation = generation
            self.send(Generation(generation))

    def process(self, partition: int, records: Sequence[Any]) -> int:
        """Note the offsets of records of one partition as processed; the pace stands for the work on them."""
        for record in records:
            offset = record.offset
            last = self._ranges[-1] if self._ranges else None
            if last is not None and last[0] == partition and last[2] == offset:
                last[2] = offset + 1
            else:
                self._ranges.append([partition, offset, offset + 1])
        return len(records)

    def tick(self, now_s: float) -> None:
        """Report the processed offsets if it is time."""
        if now_s >= self._next_s:
            self._next_s = now_s + REPORT_S
            self.flush()

    def flush(self) -> None:
        """Report what was processed and not yet reported."""
        if self._ranges:
            self.send(Processed(self._ranges))
            self._ranges = []


def run_kafka_python(args: argparse.Namespace, orders: Orders, report: Reporter) -> None:
    """Be a member with kafka-python until the order to stop."""
    from loadwise.assignor.clients.kafka_python import kafka_python_consumer

    report.send(Ready())
    orders.join.wait()
    consumer = kafka_python_consumer(args.topic, **_config(args))
    bucket: TokenBucket | None = None
    while not orders.stop.is_set():
        report.state(consumer)
        if not orders.go.is_set():
            for partition, records in consumer.poll(timeout_ms=50).items():
                consumer.seek(partition, records[0].offset)
            consumer.pause(*consumer.assignment())
            continue
        if bucket is None:
            bucket = _bucket(args.rate)
            consumer.resume(*consumer.paused())
        wanted = max(1, int(args.rate * BATCH_S))
        available = bucket.available(time.monotonic())
        if available < wanted:
            time.sleep(bucket.wait_s(wanted))
            available = bucket.available(time.monotonic())
        for partition, records in consumer.poll(timeout_ms=50, max_records=max(1, available)).items():
            bucket.take(report.process(partition.partition, records))
        report.tick(time.monotonic())
    report.flush()
    consumer.close()


async def run_aiokafka(args: argparse.Namespace, orders: Orders, report: Reporter) -> None:
    """Be a member with aiokafka until the order to stop."""
    from loadwise.assignor.clients.aiokafka import aiokafka_consumer

    report.send(Ready())
    await asyncio.to_thread(orders.join.wait)
    consumer = aiokafka_consumer(args.topic, **_config(args))
    await consumer.start()
    try:
        bucket: TokenBucket | None = None
        while not orders.stop.is_set():
            report.state(consumer)
            if not orders.go.is_set():
                await asyncio.sleep(0.02)
                continue
            if bucket is None:
                bucket = _bucket(args.rate)
            wanted = max(1, int(args.rate * BATCH_S))
            available = bucket.available(time.monotonic())
            if available < wanted:
                await asyncio.sleep(bucket.wait_s(wanted))
                available = bucket.available(time.monotonic())
            for partition, records in (await consumer.getmany(timeout_ms=50, max_records=max(1, available))).items():
                bucket.take(report.process(partition.partition, records))
            report.tick(time.monotonic())
        report.flush()
    finally:
        await consumer.stop()


def _bucket(rate_per_s: float) -> TokenBucket:
    return TokenBucket(rate_per_s, burst=max(1.0, rate_per_s * BURST_S), now_s=time.monotonic())


def _config(args: argparse.Namespace) -> dict[str, Any]:
    return {
        **(LIVE_CONFIG if args.live else CONFIG),
        "assignor": args.assignor,
        "bootstrap_servers": args.bootstrap_servers,
        "group_id": args.group,
        # Member ids begin with the client id, and Kafka orders members by id: member 1 comes first.
        "client_id": args.client_id,
    }


def main() -> None:
    """Run one member."""
    parser = argparse.ArgumentParser(prog="python -m loadwise.demo.member", description=__doc__.partition("\n")[0])
    parser.add_argument("--client", choices=("kafka-python", "aiokafka"), required=True)
    parser.add_argument("--client-id", required=True)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--assignor", required=True)
    parser.add_argument("--rate", type=float, required=True, help="records a second that it processes at most")
    parser.add_argument("--live", action="store_true", help="read a stream that goes on, instead of draining a topic")
    args = parser.parse_args()
    orders, report = Orders(), Reporter()
    if args.client == "kafka-python":
        run_kafka_python(args, orders, report)
    else:
        asyncio.run(run_aiokafka(args, orders, report))


if __name__ == "__main__":
    main()
