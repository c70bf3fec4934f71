"""One producer in a process of its own."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Protocol

CLIENTS = ("kafka-python", "aiokafka", "confluent-kafka")
VALUE = bytes(500)
LINGER_MS = 5


class Latencies:
    """When each record was acknowledged, from when it was sent; and how long to wait before the next one."""

    def __init__(self, rate: float) -> None:
        self.taken_s: list[float] = []
        self.failures = 0
        self._rate, self._began_s = rate, time.perf_counter()

    def ahead_s(self, sent: int) -> float:
        """Return how long to wait before the next record; 0 without a rate."""
        return sent / self._rate - (time.perf_counter() - self._began_s) if self._rate else 0.0

    def add(self, began_s: float, *_: object) -> None:
        """A record was acknowledged."""
        self.taken_s.append(time.perf_counter() - began_s)

    def fail(self, *_: object) -> None:
        """A record failed."""
        self.failures += 1


class Producer(Protocol):
    """A producer of one client."""

    def send(self, records: int, rate: float) -> Latencies:
        """Send so many records at this rate, and wait until all are acknowledged."""
        ...

    def close(self) -> None:
        """End."""


class _KafkaPython:
    def __init__(self, address: str, topic: str, partitioner: str) -> None:
        from kafka import KafkaProducer

        from loadwise import kafka_python_producer

        config: dict[str, Any] = {"bootstrap_servers": address, "linger_ms": LINGER_MS}
        make = kafka_python_producer if partitioner == "loadwise" else KafkaProducer
        self._producer = make(**config)
        self._topic = topic
        self._producer.partitions_for(topic)

    def send(self, records: int, rate: float) -> Latencies:
        found = Latencies(rate)
        for number in range(records):
            if (ahead_s := found.ahead_s(number)) > 0.001:
                time.sleep(ahead_s)
            future = self._producer.send(self._topic, VALUE)
            future.add_callback(found.add, time.perf_counter()).add_errback(found.fail)
        self._producer.flush()
        return found

    def close(self) -> None:
        self._producer.close()


class _Aiokafka:
    def __init__(self, address: str, topic: str, partitioner: str) -> None:
        from aiokafka import AIOKafkaProducer

        from loadwise import aiokafka_producer

        self._runner = asyncio.Runner()
        self._topic = topic

        async def started() -> AIOKafkaProducer:
            config: dict[str, Any] = {"bootstrap_servers": address, "linger_ms": LINGER_MS}
            made = aiokafka_producer(**config) if partitioner == "loadwise" else AIOKafkaProducer(**config)
            await made.start()
            await made.partitions_for(topic)
            return made

        self._producer = self._runner.run(started())

    def send(self, records: int, rate: float) -> Latencies:
        return self._runner.run(self._send(records, rate))

    def close(self) -> None:
        self._runner.run(self._producer.stop())
        self._runner.close()

    async def _send(self, records: int, rate: float) -> Latencies:
        found = Latencies(rate)

        def done(began_s: float, future: asyncio.Future[object]) -> None:
            if future.exception() is None:
                found.add(began_s)
            else:
                found.fail()

        for number in range(records):
            if (ahead_s := found.ahead_s(number)) > 0.001:
                await asyncio.sleep(ahead_s)
            elif number % 100 == 0:
                await asyncio.sleep(0)
            sent = partial(done, time.perf_counter())
            future = await self._producer.send(self._topic, VALUE)
            future.add_done_callback(sent)
        await self._producer.flush()
        return found


class _ConfluentKafka:
    def __init__(self, address: str, topic: str, partitioner: str) -> None:
        from confluent_kafka import Producer as StockProducer

        from loadwise import confluent_producer

        config: dict[str, Any] = {"bootstrap.servers": address, "linger.ms": LINGER_MS, "batch.size": 16384}
        config |= {"queue.buffering.max.messages": 10_000_000, "log_level": 2}
        self._producer = confluent_producer(config) if partitioner == "loadwise" else StockProducer(config)
        self._topic = topic

    def send(self, records: int, rate: float) -> Latencies:
        found = Latencies(rate)

        def delivered(error: object, message: Any) -> None:
            if error is None:
                found.taken_s.append(message.latency())
            else:
                found.fail()

        for number in range(records):
            if (ahead_s := found.ahead_s(number)) > 0.001:
                self._producer.poll(ahead_s)
            self._producer.produce(self._topic, VALUE, on_delivery=delivered)
            self._producer.poll(0)
        self._producer.flush()
        return found

    def close(self) -> None:
        """Nothing is left after a flush."""


_PRODUCERS: dict[str, Any] = dict(zip(CLIENTS, (_KafkaPython, _Aiokafka, _ConfluentKafka), strict=True))


def serve(pipe: Connection, client: str, partitioner: str, address: str, topic: str) -> None:
    """Send what comes as numbers of records and of warming up and a rate, and answer what was measured."""
    producer: Producer = _PRODUCERS[client](address, topic, partitioner)
    with suppress(EOFError):
        while True:
            records, warm_up, rate = pipe.recv()
            if warm_up:
                producer.send(warm_up, rate)
            began_s, cpu_s = time.perf_counter(), time.process_time()
            found = producer.send(records, rate)
            taken_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
            ordered = sorted(found.taken_s)
            measured = {
                "records/s": len(ordered) / taken_s,
                "mean ms": 1000 * sum(ordered) / len(ordered),
                "p99 ms": 1000 * ordered[len(ordered) * 99 // 100],
                "CPU µs": 1e6 * cpu_s / records,
                "failures": found.failures,
            }
            pipe.send(measured)
    producer.close()
