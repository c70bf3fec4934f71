"""How long a kafka-python member stops reading while a join waits for a slow one: ``python -m benchmarks.joins``.

Two members share a topic. One works on its records for some seconds without polling, and at that moment a third one
joins. The group waits for the slow one. The result is the longest time for which the other got no record of the
partitions that it keeps, while records arrive in all partitions; for stock consumers and for ours.
"""

from __future__ import annotations

import argparse
import itertools
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from confluent_kafka import Producer
from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from topics import make_topic, until

from loadwise import kafka_python_consumer
from loadwise.coordinator import Coordinator

PARTITIONS = 6
EVERY_S = 0.02
"""Between two records of a partition."""

CONSUMERS: Mapping[str, Callable[..., KafkaConsumer]] = {
    "stock, eager (range)": partial(KafkaConsumer, partition_assignment_strategy=[RangePartitionAssignor]),
    "stock, cooperative-sticky": partial(KafkaConsumer, partition_assignment_strategy=[CooperativeStickyAssignor]),
    "loadwise, eager (weighted)": partial(kafka_python_consumer, assignor="weighted"),
    "loadwise, cooperative-weighted": partial(kafka_python_consumer, assignor="cooperative-weighted"),
}


class Member(threading.Thread):
    """A consumer that is polled all the time, but for one long piece of work."""

    def __init__(self, make: Callable[..., KafkaConsumer], topic: str, config: Mapping[str, Any]) -> None:
        super().__init__(daemon=True)
        self._make, self._topic, self._config = make, topic, config
        self._ended = threading.Event()
        self.work_s = 0.0
        """How long to work once, from the next poll's answer on."""
        self.works = threading.Event()
        self.owned: frozenset[int] = frozenset()
        self.read: list[tuple[float, int]] = []
        """When a record of which partition came."""
        self.start()

    def run(self) -> None:
        """Poll until `end`."""
        consumer = self._make(self._topic, **self._config)
        while not self._ended.is_set():
            for partition, records in consumer.poll(timeout_ms=1000).items():
                self.read += [(time.monotonic(), partition.partition)] * len(records)
            self.owned = frozenset(each.partition for each in consumer.assignment())
            if self.work_s:
                self.works.set()
                work_s, self.work_s = self.work_s, 0.0
                time.sleep(work_s)
        consumer.close()

    def end(self) -> None:
        """Leave the group."""
        self._ended.set()
        self.join()


def main() -> None:
    """Run what the command line asks for, and print a line for each consumer."""
    options = argparse.ArgumentParser(prog="benchmarks.joins", description=__doc__)
    options.add_argument("--seconds", type=float, default=9.0, help="how long the slow member works")
    given = options.parse_args()
    print(f"one member works {given.seconds:g} s while a third one joins; the other reads nothing for")
    with Coordinator().in_thread() as coordinator:
        for name, make in CONSUMERS.items():
            print(f"{_stop_s(coordinator.bootstrap_servers, make, given.seconds):>8.2f} s  {name}")


def _stop_s(address: str, make: Callable[..., KafkaConsumer], work_s: float) -> float:
    """The longest time without a record of what the fast member keeps, from the beginning of the work on."""
    topic = f"joins-{uuid.uuid4().hex[:8]}"
    make_topic(address, topic, PARTITIONS)
    config = {
        "bootstrap_servers": address,
        "group_id": topic,
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 200,
        "session_timeout_ms": 30_000,
    }
    ended = threading.Event()
    producing = threading.Thread(target=_produce, args=(address, topic, ended))
    producing.start()
    members = [Member(make, topic, config) for _ in range(2)]
    try:
        until(lambda: _shared(members), lambda: [member.owned for member in members])
        fast, slow = members
        slow.work_s = work_s
        slow.works.wait()
        began = time.monotonic()
        members.append(Member(make, topic, config))
        until(lambda: _shared(members), lambda: [member.owned for member in members])
        kept = fast.owned
        until(
            lambda: any(partition in kept and at > time.monotonic() - 0.5 for at, partition in fast.read[-100:]),
            lambda: fast.owned,
        )
        times = [began, *(at for at, partition in list(fast.read) if partition in kept and at > began)]
        return max(b - a for a, b in itertools.pairwise(times))
    finally:
        ended.set()
        producing.join()
        for member in members:
            member.end()


def _shared(members: list[Member]) -> bool:
    owned = [member.owned for member in members]
    return all(owned) and sum(map(len, owned)) == len(frozenset().union(*owned)) == PARTITIONS


def _produce(address: str, topic: str, ended: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "log_level": 0})
    while not ended.wait(EVERY_S):
        for partition in range(PARTITIONS):
            producer.produce(topic, b"x", partition=partition)
        producer.poll(0)
    producer.flush(30)


if __name__ == "__main__":
    main()
