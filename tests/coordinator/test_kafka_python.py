"""kafka-python against the coordinator: produce, consume in a group, commit, resume, administrate."""

from __future__ import annotations

import time

import pytest
from kafka import KafkaConsumer, KafkaProducer

from loadwise.coordinator import ThreadedCoordinator


def consumer(coordinator: ThreadedCoordinator, group_id: str, *topics: str, **options: object) -> KafkaConsumer:
    return KafkaConsumer(
        *topics,
        bootstrap_servers=coordinator.bootstrap_servers,
        group_id=group_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **options,
    )


def take(client: KafkaConsumer, count: int, within_s: float = 20) -> list[bytes]:
    """Poll until ``count`` records have come."""
    deadline = time.monotonic() + within_s
    values: list[bytes] = []
    while len(values) < count:
        assert time.monotonic() < deadline, f"{len(values)} of {count} records came in {within_s} s"
        for records in client.poll(1000, max_records=count - len(values)).values():
            values += [record.value for record in records]
    return values


@pytest.fixture
def filled(coordinator: ThreadedCoordinator, topic_name: str) -> str:
    """A topic of 4 partitions with the records 0 to 99."""
    coordinator.create_topic(topic_name, 4)
    with KafkaProducer(bootstrap_servers=coordinator.bootstrap_servers) as producer:
        for number in range(100):
            producer.send(topic_name, key=b"%d" % number, value=b"%d" % number)
    return topic_name


def test_a_group_resumes_where_it_committed(coordinator: ThreadedCoordinator, filled: str, group_id: str) -> None:
    with consumer(coordinator, group_id, filled) as first:
        read = take(first, 60)
        first.commit()
    with consumer(coordinator, group_id, filled) as second:
        rest = take(second, 40)
    assert sorted(map(int, read + rest)) == list(range(100))
