"""``python -m benchmarks.coordinator.records``: how fast records go in and out, by librdkafka, beside Apache Kafka.

Each client writes to a partition of its own and reads it again, on our coordinator and on an Apache Kafka, which is
started where there is a JDK and Maven. The client is the same on both, and takes processor time from both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.coordinator.brokers import Served, apache_kafka, ours

_WAIT_S = 120
_BATCH = 1000


@dataclass(frozen=True)
class Case:
    """Records of one size, written with one setting of ``acks``."""

    bytes: int
    acks: str
    clients: int

    @property
    def name(self) -> str:
        """As ``1000 B, acks=all, 1 client``."""
        return f"{self.bytes:,} B, acks={self.acks}, {self.clients} client{'s' if self.clients > 1 else ''}"


CASES = tuple(Case(size, acks, clients) for size in (100, 1000) for acks in ("1", "all") for clients in (1, 10))


@dataclass(frozen=True)
class Rate:
    """How fast so many records went."""

    records: int
    bytes: int
    seconds: float
    cpu_s: float

    @property
    def mb_per_s(self) -> float:
        """Megabytes (10**6) of values a second."""
        return self.bytes / self.seconds / 1e6

    def __str__(self) -> str:
        cpu = f", {self.cpu_s / self.bytes * 1e9:5.1f} ms CPU per MB" if self.cpu_s else ""
        return f"{self.mb_per_s:7.1f} MB/s {self.records / self.seconds:10,.0f} records/s{cpu}"


def produce(served: Served, topic: str, case: Case, total_bytes: int) -> Rate:
    """Write so many bytes of values by all clients together, each to the next partition, until all are acknowledged."""
    settings = {
        "bootstrap.servers": served.bootstrap, "acks": case.acks, "linger.ms": 5,
        "queue.buffering.max.messages": 1_000_000,
    }  # fmt: skip
    producers = [Producer(settings) for _ in range(case.clients)]
    value = bytes(case.bytes)
    count = total_bytes // case.bytes
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            refused.append(error)

    before, start = served.cpu_s(), time.perf_counter()
    for number in range(count):
        producer = producers[number % case.clients]
        while True:
            try:
                producer.produce(topic, value, partition=number % case.clients, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
        if number % _BATCH == 0:
            producer.poll(0)
    for producer in producers:
        if producer.flush(_WAIT_S):
            raise TimeoutError(f"{served.name} has not acknowledged all records after {_WAIT_S} s")
    if refused:
        raise KafkaException(refused[0])
    return Rate(count, count * case.bytes, time.perf_counter() - start, served.cpu_s() - before)


def fetch(served: Served, topic: str, case: Case, records: int) -> Rate:
    """Read everything again by so many consumers, each a partition, one after the other on this thread."""
    settings = {
        "bootstrap.servers": served.bootstrap, "group.id": str(uuid4()), "enable.auto.commit": False,
        # As it comes, librdkafka rests for a second whenever it has 100,000 records in store, on either broker.
        "queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 1,
    }  # fmt: skip
    before, start = served.cpu_s(), time.perf_counter()
    consumers = [Consumer(settings) for _ in range(case.clients)]
    for number, consumer in enumerate(consumers):
        consumer.assign([TopicPartition(topic, number, 0)])
    missing, give_up = records, start + _WAIT_S
    while missing:
        missing -= sum(len(consumer.consume(_BATCH, timeout=0.01)) for consumer in consumers)
        if time.perf_counter() > give_up:
            raise TimeoutError(f"{served.name} has not given {missing} records after {_WAIT_S} s")
    seconds, cpu_s = time.perf_counter() - start, served.cpu_s() - before
    for consumer in consumers:
        consumer.close()
    return Rate(records, records * case.bytes, seconds, cpu_s)


def measure(served: Served, case: Case, total_bytes: int) -> tuple[Rate, Rate]:
    """How fast records are written and read."""
    topic = f"records-{uuid4()}"
    admin = AdminClient({"bootstrap.servers": served.bootstrap})
    admin.create_topics([NewTopic(topic, case.clients, 1)])[topic].result(_WAIT_S)
    written = produce(served, topic, case, total_bytes)
    return written, fetch(served, topic, case, written.records)


def _table(all_served: Sequence[Served], cases: Sequence[Case], megabytes: int) -> Iterator[str]:
    for case in cases:
        yield case.name
        ratios: list[tuple[Rate, Rate]] = []
        for served in all_served:
            written, read = measure(served, case, megabytes * 1_000_000)
            yield f"  {served.name:<14} produce {written}"
            yield f"  {'':<14} fetch   {read}"
            ratios.append((written, read))
        if len(ratios) > 1:
            (our_write, our_read), (its_write, its_read) = ratios
            to_write, to_read = our_write.mb_per_s / its_write.mb_per_s, our_read.mb_per_s / its_read.mb_per_s
            yield f"  ours / Kafka   produce {to_write:.2f}, fetch {to_read:.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a block for each case."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--megabytes", type=int, default=50, help="values that are written and read in each case")
    options.add_argument("--no-kafka", action="store_true", help="leave Apache Kafka out")
    options.add_argument("--cases", type=int, default=len(CASES), help="only so many cases")
    chosen = options.parse_args(arguments)
    with ExitStack() as running:
        all_served = [running.enter_context(ours(uvloop=True))]
        kafka = None if chosen.no_kafka else running.enter_context(apache_kafka())
        if kafka is not None:
            all_served.append(kafka)
        for line in _table(all_served, CASES[: chosen.cases], chosen.megabytes):
            print(line, flush=True)


if __name__ == "__main__":
    main()
