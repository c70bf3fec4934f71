"""Clients of four kinds while a broker dies: those that try again see nothing of it, the others tell their errors."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiokafka
import confluent_kafka
import kafka
from kafka_process import java_program, short_lived_jvm
from polled import POLL_MS, know
from topics import WAIT_S, until

SOON_MS = 8000
"""When a client gives up that does not try again."""


class Traffic:
    """Producers and consumers of three clients, which write to and read from one topic until the end."""

    def __init__(self, addresses: Mapping[int, str], topic: str) -> None:
        self._servers, self._topic = ",".join(addresses.values()), topic
        self._ends = threading.Event()
        self.problems: list[str] = []
        self.written: dict[str, list[bytes]] = {}
        """The values that were acknowledged to each client, in order."""
        self.read: dict[str, list[bytes]] = {}
        """The values that each client was given, in order."""
        work = (self.kafka_python_writes, self.aiokafka_writes, self.librdkafka_writes)
        work += (self.kafka_python_reads, self.aiokafka_reads, self.librdkafka_reads)
        self._threads = [threading.Thread(target=self._noted, args=(each,)) for each in work]

    def __enter__(self) -> Traffic:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for each in self._threads:
            each.join(WAIT_S)

    def flows(self) -> None:
        """Wait until each has written more, and has read what was written by now, or until one met a problem."""
        until(lambda: bool(self.problems) or len(self.written) == 3, lambda: self.written)
        before = {name: len(values) for name, values in self.written.items()}

        def reached() -> bool:
            is_written = all(len(self.written[name]) >= count + 5 for name, count in before.items())
            return is_written and not self.missing(before)

        until(lambda: bool(self.problems) or reached(), lambda: (before, self.missing(before)))

    def missing(self, counts: Mapping[str, int]) -> dict[str, int]:
        """How many of the first values that were written each reader has not got."""
        values = {value for name, count in counts.items() for value in self.written[name][:count]}
        found = {name: len(values - set(read)) for name, read in list(self.read.items())}
        return {name: count for name, count in found.items() if count} if len(found) == 3 else {"readers": len(found)}

    def _noted(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as problem:  # noqa: BLE001  (compared)
            self.problems.append(f"{work.__name__}: {problem!r}")

    def _values(self, client: str) -> Any:
        written = self.written.setdefault(client, [])
        while not self._ends.wait(0.05):
            value = f"{client} {len(written)}".encode()
            yield value
            written.append(value)

    def kafka_python_writes(self) -> None:
        with kafka.KafkaProducer(bootstrap_servers=self._servers, acks="all") as producer:
            for value in self._values("kafka-python"):
                producer.send(self._topic, value).get(WAIT_S)

    def kafka_python_reads(self) -> None:
        read = self.read.setdefault("kafka-python", [])
        settings: dict[str, Any] = {"bootstrap_servers": self._servers, "auto_offset_reset": "earliest"}
        with kafka.KafkaConsumer(self._topic, group_id="read-by-kafka-python", **settings) as consumer:
            know(consumer)
            while not self._ends.is_set():
                read += [each.value for rows in consumer.poll(POLL_MS).values() for each in rows]

    def aiokafka_writes(self) -> None:
        async def write() -> None:
            async with aiokafka.AIOKafkaProducer(bootstrap_servers=self._servers, enable_idempotence=True) as producer:
                for value in self._values("aiokafka"):
                    await producer.send_and_wait(self._topic, value)

        asyncio.run(write())

    def aiokafka_reads(self) -> None:
        read = self.read.setdefault("aiokafka", [])

        async def poll() -> None:
            consumer = aiokafka.AIOKafkaConsumer(
                self._topic, bootstrap_servers=self._servers, group_id="read-by-aiokafka", auto_offset_reset="earliest"
            )
            async with consumer:
                while not self._ends.is_set():
                    found = await consumer.getmany(timeout_ms=200)
                    read.extend(each.value for rows in found.values() for each in rows)

        asyncio.run(poll())

    def librdkafka_writes(self) -> None:
        producer = confluent_kafka.Producer({**self._librdkafka, "enable.idempotence": True})
        for value in self._values("librdkafka"):
            errors: list[Any] = []
            producer.produce(self._topic, value, on_delivery=lambda error, _, errors=errors: errors.append(error))
            assert producer.flush(WAIT_S) == 0
            assert errors == [None]

    def librdkafka_reads(self) -> None:
        read = self.read.setdefault("librdkafka", [])
        settings = {"group.id": "read-by-librdkafka", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer({**self._librdkafka, **settings})
        consumer.subscribe([self._topic])
        while not self._ends.is_set():
            for message in consumer.consume(100, 0.2):
                assert message.error() is None, message.error()
                read.append(message.value())
        consumer.close()

    @property
    def _librdkafka(self) -> dict[str, Any]:
        return {"bootstrap.servers": self._servers, "log_level": 0}


# ---- what they tell who do not try again ----


def kafka_python_writes(servers: str, topic: str) -> str:
    settings: dict[str, Any] = {"retries": 0, "enable_idempotence": False, "acks": "all", "max_block_ms": SOON_MS}
    settings |= {"request_timeout_ms": SOON_MS // 2, "delivery_timeout_ms": SOON_MS}
    with kafka.KafkaProducer(bootstrap_servers=servers, **settings) as producer:
        try:
            producer.send(topic, b"x").get(WAIT_S)
        except kafka.errors.KafkaError as problem:
            return type(problem).__name__
    return "written"


def aiokafka_writes(servers: str, topic: str) -> str:
    """It has no setting to try only once: it tells what a request meets that may take this long."""

    async def write() -> str:
        settings: dict[str, Any] = {"acks": "all", "request_timeout_ms": SOON_MS}
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=servers, **settings) as producer:
            try:
                await producer.send_and_wait(topic, b"x")
            except aiokafka.errors.KafkaError as problem:
                return type(problem).__name__
        return "written"

    return asyncio.run(write())


def librdkafka_writes(servers: str, topic: str) -> str:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "retries": 0, "acks": "all", "message.timeout.ms": SOON_MS, "log_level": 0}
    )
    errors: list[Any] = []
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(WAIT_S) == 0
    return "written" if errors[0] is None else str(errors[0].name())


def java_writes(servers: str, topic: str) -> str:
    """Apache Kafka's VerifiableProducer, which does not try again."""
    settings = f"max.block.ms={SOON_MS}\nrequest.timeout.ms={SOON_MS // 2}\ndelivery.timeout.ms={SOON_MS}\n"
    options = ("-Xmx128m", *short_lived_jvm(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
    command = [*java_program("org.apache.kafka.tools.VerifiableProducer", *options), "--bootstrap-server", servers]
    command += ["--topic", topic, "--max-messages", "1", "--acks", "-1", "--command-config", "/dev/stdin"]
    done = subprocess.run(command, input=settings, capture_output=True, text=True, timeout=WAIT_S, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    problems = [each["exception"].rpartition(".")[2] for each in told if each["name"] == "producer_send_error"]
    return problems[0] if problems else "written"


WRITERS = (kafka_python_writes, aiokafka_writes, librdkafka_writes, java_writes)


def who_does_not_try_again(addresses: Mapping[int, str], *topics: str) -> list[Any]:
    """What each client tells of a record that it writes once, to each topic."""
    servers = ",".join(addresses.values())
    told = []
    for topic in topics:
        with ThreadPoolExecutor() as pool:  # those that give up do so at a time
            writing = [pool.submit(writer, servers, topic) for writer in WRITERS]
        told += [(topic, writer.__name__, each.result()) for writer, each in zip(WRITERS, writing, strict=True)]
    return told
