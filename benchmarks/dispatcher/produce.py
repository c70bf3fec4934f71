"""One run of one producer, in a process of its own: it prints what it measured as a line of JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from loadwise import Dispatcher

CLIENTS = ("kafka-python", "aiokafka", "confluent-kafka")
VALUE = bytes(500)
LINGER_MS = 5


class Latencies:
    """When each record was acknowledged, from when it was sent."""

    def __init__(self) -> None:
        self.taken_s: list[float] = []
        self.failures = 0

    def add(self, began_s: float, *_: object) -> None:
        """A record was acknowledged."""
        self.taken_s.append(time.perf_counter() - began_s)

    def fail(self, *_: object) -> None:
        """A record failed."""
        self.failures += 1


class Pace:
    """Lets a producer send so many records a second; 0: as many as it can."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._began_s = time.perf_counter()

    def ahead_s(self, sent: int) -> float:
        """Return how long to wait before the next record."""
        return sent / self._rate - (time.perf_counter() - self._began_s) if self._rate else 0.0


def kafka_python(address: str, topic: str, partitioner: str, records: int, rate: float) -> Latencies:
    """Send by kafka-python."""
    from kafka import KafkaProducer
    from kafka.partitioner import StickyPartitioner

    from loadwise import kafka_python_producer

    config: dict[str, Any] = {"bootstrap_servers": address, "linger_ms": LINGER_MS}
    if partitioner == "loadwise":
        producer = kafka_python_producer(dispatcher=Dispatcher(), **config)
    elif partitioner == "sticky":
        producer = KafkaProducer(partitioner=StickyPartitioner(), **config)
    else:
        producer = KafkaProducer(**config)
    found = Latencies()
    producer.partitions_for(topic)
    pace = Pace(rate)
    for number in range(records):
        if (ahead_s := pace.ahead_s(number)) > 0.001:
            time.sleep(ahead_s)
        future = producer.send(topic, VALUE)
        future.add_callback(found.add, time.perf_counter()).add_errback(found.fail)
    producer.flush()
    producer.close()
    return found


def aiokafka(address: str, topic: str, partitioner: str, records: int, rate: float) -> Latencies:
    """Send by aiokafka."""
    from aiokafka import AIOKafkaProducer

    from loadwise import aiokafka_producer

    found = Latencies()

    def done(began_s: float, future: asyncio.Future[object]) -> None:
        if future.exception() is None:
            found.add(began_s)
        else:
            found.fail()

    async def run() -> None:
        config: dict[str, Any] = {"bootstrap_servers": address, "linger_ms": LINGER_MS}
        made = aiokafka_producer(**config) if partitioner == "loadwise" else AIOKafkaProducer(**config)
        async with made as producer:
            await producer.partitions_for(topic)
            pace = Pace(rate)
            for number in range(records):
                if (ahead_s := pace.ahead_s(number)) > 0.001:
                    await asyncio.sleep(ahead_s)
                elif number % 100 == 0:
                    await asyncio.sleep(0)
                sent = partial(done, time.perf_counter())
                future = await producer.send(topic, VALUE)
                future.add_done_callback(sent)
            await producer.flush()

    asyncio.run(run())
    return found


def confluent_kafka(address: str, topic: str, partitioner: str, records: int, rate: float) -> Latencies:
    """Send by confluent-kafka."""
    from confluent_kafka import Producer

    from loadwise import confluent_producer

    config = {"bootstrap.servers": address, "linger.ms": LINGER_MS, "batch.size": 16384}
    config["queue.buffering.max.messages"] = 10_000_000
    producer = confluent_producer(config) if partitioner == "loadwise" else Producer(config)
    found = Latencies()

    def delivered(error: object, message: Any) -> None:
        if error is None:
            found.taken_s.append(message.latency())
        else:
            found.fail()

    for _ in range(20):  # metadata comes with the first records
        producer.produce(topic, VALUE)
        producer.flush()
    pace = Pace(rate)
    for number in range(records):
        if (ahead_s := pace.ahead_s(number)) > 0.001:
            producer.poll(ahead_s)
        producer.produce(topic, VALUE, on_delivery=delivered)
        producer.poll(0)
    producer.flush()
    return found


RUNS: dict[str, Callable[[str, str, str, int, float], Latencies]] = {
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "confluent-kafka": confluent_kafka,
}


def main() -> None:
    """Run what the command line asks for."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("client", choices=CLIENTS)
    options.add_argument("partitioner", choices=["own", "sticky", "loadwise"])
    options.add_argument("address")
    options.add_argument("topic")
    options.add_argument("records", type=int)
    options.add_argument("rate", type=float)
    given = options.parse_args()
    began_s, cpu_s = time.perf_counter(), time.process_time()
    found = RUNS[given.client](given.address, given.topic, given.partitioner, given.records, given.rate)
    taken_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    ordered = sorted(found.taken_s)
    print(
        json.dumps(
            {
                "records_per_s": len(ordered) / taken_s,
                "mean_ms": 1000 * sum(ordered) / len(ordered),
                "p99_ms": 1000 * ordered[len(ordered) * 99 // 100],
                "cpu_us": 1e6 * cpu_s / given.records,
                "failures": found.failures,
            }
        )
    )


if __name__ == "__main__":
    main()
