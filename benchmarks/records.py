"""Topics of 100-byte records for consumers to read."""

from __future__ import annotations

import uuid

from confluent_kafka import Producer
from topics import make_topic

PARTITIONS = 12
VALUE = b"v" * 100


def publish(brokers: str, kind: str, records: int) -> str:
    """Make a topic of ``records``, in equal parts ("uniform") or with half of them in partition 0 ("skewed")."""
    topic = f"{kind}-{uuid.uuid4()}"
    make_topic(brokers, topic, PARTITIONS)
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 50, "queue.buffering.max.messages": 500_000})
    for number in range(records):
        while True:
            try:
                producer.produce(topic, VALUE, partition=partition_of(number, kind))
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(600)
    if left:
        raise TimeoutError(f"{left} of {records} records could not be published to {brokers} within 10 minutes")
    return topic


def partition_of(number: int, kind: str) -> int:
    """The partition of a record of a topic of this kind."""
    if kind == "uniform":
        return number % PARTITIONS
    return 0 if number % 2 else 1 + number // 2 % (PARTITIONS - 1)
