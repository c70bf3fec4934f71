"""Ten real minutes of real clients on a program with a data directory: nothing is lost, and memory stays flat."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measured_program
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from programs_with_data import Program
from topics import WAIT_S

MINUTES = float(os.environ.get("LOADWISE_SOAK_MINUTES", "10"))
MOST_GROWTH = 1.1
"""Of what is in use at the least, between the second sixth of the time, when all is warm, and the last one.

In 22 minutes with 38.8 million records, these were 37.8 MB and 270,000 blocks, then 37.8 and 272,000. Objects that
the garbage collector knows were 17,977 after 3 minutes and 17,923 after 20.
"""

KEPT = {"t": 50_000, "u": 5000}
"""Records that are kept of each partition: as many as a slow reader may be behind, and come in a minute."""


class Clients:
    """Producers and consumers of two clients and both group protocols, until they are told to end."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.ends = threading.Event()
        self.sent: list[int] = [0, 0, 0]
        self.read: dict[str, int] = {}
        self.failures: list[BaseException] = []

    def run(self, minutes: float, clean_up: Callable[[], None]) -> None:
        work = [
            self.produce, self.transact, self.produce_with_kafka_python, self.consume_with_kafka_python,
            *(lambda protocol=protocol: self.consume(protocol) for protocol in ("classic", "consumer") * 2),
            self.come_and_go,
        ]  # fmt: skip
        threads = [threading.Thread(target=self._noted, args=(each,)) for each in work]
        for thread in threads:
            thread.start()
        begin = time.monotonic()
        while not self.failures and time.monotonic() - begin < minutes * 60:
            self.ends.wait(5)  # between two looks
            clean_up()
        self.ends.set()
        for thread in threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()
        if self.failures:
            raise self.failures[0]

    def _noted(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as problem:  # noqa: BLE001  (raised where the work was started)
            self.failures.append(problem)

    def produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 5, "enable.idempotence": True})
        while not self.ends.is_set():
            for _ in range(100):
                producer.produce("t", b"x" * 100)
            assert producer.flush(WAIT_S) == 0
            self.sent[0] += 100

    def produce_with_kafka_python(self) -> None:
        with KafkaProducer(bootstrap_servers=self.address) as producer:
            while not self.ends.is_set():
                for future in [producer.send("t", b"y" * 100) for _ in range(50)]:
                    future.get(WAIT_S)
                self.sent[1] += 50

    def transact(self) -> None:
        producer = Producer({"bootstrap.servers": self.address, "transactional.id": "x", "linger.ms": 0})
        producer.init_transactions(WAIT_S)
        count = 0
        while not self.ends.is_set():
            producer.begin_transaction()
            for _ in range(10):
                producer.produce("u", b"z" * 100)
            if (count := count + 1) % 5:
                producer.commit_transaction(WAIT_S)
                self.sent[2] += 10
            else:
                producer.abort_transaction(WAIT_S)

    def consume(self, protocol: str) -> None:
        """A member of a group of either protocol, which reads all and commits."""
        consumer = self._consumer(protocol)
        while not self.ends.is_set():
            messages = consumer.consume(500, 0.5)
            self.read[protocol] = self.read.get(protocol, 0) + sum(each.error() is None for each in messages)
            if messages:
                with contextlib.suppress(KafkaException):  # a rebalance took the partitions away
                    consumer.commit(asynchronous=False)
        consumer.close()

    def come_and_go(self) -> None:
        """Members that join for a moment, so that groups rebalance all the time."""
        while not self.ends.is_set():
            for protocol in ("classic", "consumer"):
                consumer = self._consumer(protocol)
                consumer.consume(1, 2)
                consumer.close()
            self.ends.wait(1)

    def consume_with_kafka_python(self) -> None:
        with KafkaConsumer(
            "t", bootstrap_servers=self.address, group_id="kafka-python", auto_offset_reset="earliest"
        ) as consumer:
            while not self.ends.is_set():
                found = sum(map(len, consumer.poll(500).values()))
                self.read["kafka-python"] = self.read.get("kafka-python", 0) + found

    def _consumer(self, protocol: str) -> Consumer:
        config: dict[str, Any] = {
            "bootstrap.servers": self.address, "group.id": protocol, "group.protocol": protocol,
            "auto.offset.reset": "earliest", "enable.auto.commit": False, "log_level": 0,
        }  # fmt: skip
        consumer = Consumer(config)
        consumer.subscribe(["t", "u"])
        return consumer


def least_used(file: Path, sixth: int) -> tuple[int, int]:
    """The least bytes and blocks in use in a sixth of the time: a burst raises both, and so does a slow reader."""
    rows = [line.split() for line in file.read_text().splitlines()]
    (begin, *_), (end, *_) = rows[0], rows[-1]
    part_s = (float(end) - float(begin)) / 6
    chosen = [row for row in rows if sixth * part_s <= float(row[0]) - float(begin) <= (sixth + 1) * part_s]
    return min(int(row[1]) for row in chosen), min(int(row[2]) for row in chosen)


@pytest.mark.long
@pytest.mark.timeout(MINUTES * 60 + 600)
def test_ten_minutes(tmp_path: Path) -> None:
    file = tmp_path / "used"
    program = Program(
        tmp_path / "data", "--topic", "t:4", "--topic", "u:2", program=[measured_program.__file__, str(file)]
    )
    admin = AdminClient({"bootstrap.servers": program.address})
    clients = Clients(program.address)
    kept = [TopicPartition("t", number) for number in range(4)] + [TopicPartition("u", number) for number in range(2)]

    def clean_up() -> None:
        """Delete what is read, so that records do not pile up."""
        reader = Consumer({"bootstrap.servers": program.address, "group.id": "watcher"})
        before = [
            TopicPartition(
                each.topic, each.partition, max(0, reader.get_watermark_offsets(each, WAIT_S)[1] - KEPT[each.topic])
            )
            for each in kept
        ]
        reader.close()
        for future in admin.delete_records(before).values():
            future.result(WAIT_S)

    try:
        clients.run(MINUTES, clean_up)
        assert program.process.poll() is None
    finally:
        program.kill()
    sent = sum(clients.sent)
    early, late = least_used(file, 1), least_used(file, 5)
    print(f"{sent:,} records acknowledged, read by group {clients.read}; in use {early}, then {late}")
    assert min(clients.sent) > 0
    assert min(clients.read.values()) > 0
    assert late[0] <= early[0] * MOST_GROWTH
    assert late[1] <= early[1] * MOST_GROWTH
