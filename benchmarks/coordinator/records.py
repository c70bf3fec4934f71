"""How fast records go in and out, by librdkafka.

Each client writes to a partition of its own and reads it again. It takes processor time from the broker.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.coordinator.brokers import Served
from benchmarks.coordinator.figures import Figures

_WAIT_S = 120
_BATCH = 1000
RECORD_BYTES = 100


@dataclass(frozen=True)
class Case:
    """So many clients that write with one setting of ``acks``."""

    acks: str
    clients: int

    @property
    def name(self) -> str:
        """As ``acks=all, 1 client``."""
        return f"acks={self.acks}, {self.clients} client{'s' if self.clients > 1 else ''}"


CASES = tuple(Case(acks, clients) for acks in ("1", "all") for clients in (1, 10))


def produce(served: Served, topic: str, case: Case, count: int) -> tuple[float, float]:
    """Seconds until the records of all clients, each to its partition, are acknowledged; the broker's CPU seconds."""
    settings = {
        "bootstrap.servers": served.bootstrap, "acks": case.acks, "linger.ms": 5,
        "queue.buffering.max.messages": 1_000_000,
    }  # fmt: skip
    producers = [Producer(settings) for _ in range(case.clients)]
    value = bytes(RECORD_BYTES)
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
    return time.perf_counter() - start, served.cpu_s() - before


def fetch(served: Served, topic: str, case: Case, count: int) -> tuple[float, float]:
    """The same for reading it all again by so many consumers, one after the other on this thread."""
    settings = {
        "bootstrap.servers": served.bootstrap, "group.id": str(uuid4()), "enable.auto.commit": False,
        # As it comes, librdkafka rests for a second whenever it has 100,000 records in store, on either broker.
        "queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 1,
    }  # fmt: skip
    before, start = served.cpu_s(), time.perf_counter()
    consumers = [Consumer(settings) for _ in range(case.clients)]
    for number, consumer in enumerate(consumers):
        consumer.assign([TopicPartition(topic, number, 0)])
    missing, give_up = count, start + _WAIT_S
    while missing:
        missing -= sum(len(consumer.consume(_BATCH, timeout=0.01)) for consumer in consumers)
        if time.perf_counter() > give_up:
            raise TimeoutError(f"{served.name} has not given {missing} records after {_WAIT_S} s")
    seconds, cpu_s = time.perf_counter() - start, served.cpu_s() - before
    for consumer in consumers:
        consumer.close()
    return seconds, cpu_s


def measure(figures: Figures, served: Served, case: Case, total_bytes: int) -> None:
    """Add how fast records are written and read."""
    topic, count = f"records-{uuid4()}", total_bytes // RECORD_BYTES
    admin = AdminClient({"bootstrap.servers": served.bootstrap})
    admin.create_topics([NewTopic(topic, case.clients, 1)])[topic].result(_WAIT_S)
    for what in (produce, fetch):
        seconds, cpu_s = what(served, topic, case, count)
        note = f"{cpu_s / total_bytes * 1e9:.1f} ms CPU per MB"
        figures.add(served, f"{what.__name__}, {case.name}, MB/s", "{:.0f}", total_bytes / seconds / 1e6, note=note)
