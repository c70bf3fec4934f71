"""A skewed cluster of three brokers for tests of the balancer, on any Kafka: made, and described as it is."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from topics import WAIT_S, until

PLACED = {"orders": [[1, 2]] * 6, "audit": [[1, 3], [1, 3], [2, 1]]}
"""Broker 1 leads nearly all of it, and broker 3 has little."""
WIDE = {"wide": [[1, 2, 3]] * 3}
"""Nothing of it can move, but its leaders can change."""
RECORD_BYTES = 1000
_VALUE = random.Random(1).randbytes(RECORD_BYTES)

Described: TypeAlias = dict[tuple[str, int], tuple[list[int], int]]


def make_skewed_topics(
    bootstrap_servers: str, prefix: str, placed_topics: Mapping[str, Sequence[Sequence[int]]] = PLACED
) -> None:
    """Make the topics, and fill the partitions of each with more records the higher their number is."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    topics = [NewTopic(prefix + name, len(placed), replica_assignment=placed) for name, placed in placed_topics.items()]
    for made in admin.create_topics(topics).values():
        made.result(WAIT_S)
    until(lambda: _described(admin, prefix).keys() >= _names(prefix, placed_topics), lambda: _described(admin, prefix))
    for name, placed in placed_topics.items():
        produce(bootstrap_servers, prefix + name, [20 + 10 * number for number in range(len(placed))])


def produce(bootstrap_servers: str, topic: str, records: Sequence[int]) -> None:
    """Produce so many records of `RECORD_BYTES` into each partition, a batch each."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0, "linger.ms": 0})
    for partition, count in enumerate(records):
        for _ in range(count):
            producer.produce(topic, _VALUE, partition=partition)
    assert producer.flush(WAIT_S) == 0


@contextlib.contextmanager
def arrivals(bootstrap_servers: str, topic: str, records: Sequence[int]) -> Iterator[None]:
    """Produce so many records into each partition again and again during a with block."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(0.2):  # less than the topics hold
            produce(bootstrap_servers, topic, records)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def described(bootstrap_servers: str, prefix: str) -> Described:
    """Replicas and leader of each partition, as librdkafka is told."""
    return _described(AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0}), prefix)


def _described(admin: AdminClient, prefix: str) -> Described:
    return {
        (topic.topic, number): (list(partition.replicas), partition.leader)
        for topic in admin.list_topics(timeout=WAIT_S).topics.values()
        if topic.topic.startswith(prefix)
        for number, partition in topic.partitions.items()
        if partition.leader >= 0
    }


def _names(prefix: str, placed_topics: Mapping[str, Sequence[Sequence[int]]]) -> set[tuple[str, int]]:
    return {(prefix + name, number) for name, placed in placed_topics.items() for number in range(len(placed))}
