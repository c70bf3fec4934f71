"""kafka-python against the coordinator: produce, consume in a group, commit, resume, crash, restart, administrate."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pytest
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewPartitions, NewTopic
from polled import Polled, know, polled, settle
from topics import WAIT_S

from loadwise.coordinator import ThreadedCoordinator

# Not shorter: this client never finishes a join whose answer comes between two polls.
POLL_MS = 1000


def consumer(coordinator: ThreadedCoordinator, group_id: str, *topics: str, **options: Any) -> KafkaConsumer:
    client = KafkaConsumer(
        *topics,
        bootstrap_servers=coordinator.bootstrap_servers,
        group_id=group_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=200,
        **options,
    )
    if topics:
        know(client)
    return client


def take(client: KafkaConsumer, count: int, within_s: float = WAIT_S) -> list[int]:
    """Poll until ``count`` records have come."""
    deadline = time.monotonic() + within_s
    values: list[int] = []
    while len(values) < count:
        assert time.monotonic() < deadline, f"{len(values)} of {count} records came in {within_s} s"
        for records in client.poll(POLL_MS, max_records=count - len(values)).values():
            values += [int(record.value) for record in records]
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
    assert sorted(read + rest) == list(range(100))


MEMBER = """
import sys
from kafka import KafkaConsumer
servers, group, topic = sys.argv[1:]
client = KafkaConsumer(topic, bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest",
                       session_timeout_ms=1500, heartbeat_interval_ms=300)
client.partitions_for_topic(topic)  # known before it joins, or it joins twice and may lose the second
while not client.poll(1000):
    pass
print("reads", flush=True)
while True:
    client.poll(1000)
"""


def test_a_member_that_is_killed_is_replaced_when_its_session_ends(
    coordinator: ThreadedCoordinator, filled: str, group_id: str
) -> None:
    arguments = [coordinator.bootstrap_servers, group_id, filled]
    with subprocess.Popen([sys.executable, "-c", MEMBER, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reads\n"
        process.kill()
    with consumer(coordinator, group_id, filled) as survivor:
        assert sorted(take(survivor, 100)) == list(range(100)), "it had not committed anything"


class Revocations(ConsumerRebalanceListener):  # type: ignore[misc]  # the client has no types
    """Counts how often a consumer had to give up what it had."""

    def __init__(self) -> None:
        self.count = 0

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.count += bool(revoked)

    def on_partitions_assigned(self, assigned: Any) -> None:
        pass


def test_a_static_member_restarts_without_a_rebalance(
    coordinator: ThreadedCoordinator, filled: str, group_id: str
) -> None:
    revocations = Revocations()

    def member(name: str, **options: Any) -> AbstractContextManager[Polled]:
        return polled(partial(consumer, coordinator, group_id), filled, group_instance_id=name, **options)

    with member("stays", listener=revocations) as stays:
        settle([stays], 4)
        with member("restarts") as restarts:
            settle([stays, restarts], 4)
            before = revocations.count
            had = restarts.assignment()
        with member("restarts") as again:
            settle([stays, again], 4)
            assert again.assignment() == had
        assert revocations.count == before


def test_offsets_of_timestamps(coordinator: ThreadedCoordinator, topic_name: str) -> None:
    with KafkaProducer(bootstrap_servers=coordinator.bootstrap_servers, compression_type="gzip") as producer:
        for number in range(10):
            producer.send(topic_name, b"x", partition=0, timestamp_ms=1000 * number)
    partition = TopicPartition(topic_name, 0)
    with KafkaConsumer(bootstrap_servers=coordinator.bootstrap_servers) as client:
        found = client.offsets_for_times({partition: 4500})[partition]
        assert (found.offset, found.timestamp) == (5, 5000)
        assert client.offsets_for_times({partition: 99_000}) == {partition: None}
        assert client.beginning_offsets([partition]) == {partition: 0}
        assert client.end_offsets([partition]) == {partition: 10}


def test_acks_0_and_1(coordinator: ThreadedCoordinator, topic_name: str) -> None:
    for acks in (0, 1):
        servers = coordinator.bootstrap_servers
        with KafkaProducer(bootstrap_servers=servers, acks=acks, enable_idempotence=False) as producer:
            producer.send(topic_name, b"%d" % acks, partition=0)
    with KafkaConsumer(bootstrap_servers=coordinator.bootstrap_servers, auto_offset_reset="earliest") as client:
        client.assign([TopicPartition(topic_name, 0)])
        assert take(client, 2) == [0, 1]


def test_an_administrator_sees_and_changes_topics_and_groups(
    coordinator: ThreadedCoordinator, topic_name: str, group_id: str
) -> None:
    client = KafkaAdminClient(bootstrap_servers=coordinator.bootstrap_servers)
    client.create_topics([NewTopic(topic_name, 2, 1)])
    client.create_partitions({topic_name: NewPartitions(3)})
    (topic,) = client.describe_topics([topic_name])
    assert len(topic["partitions"]) == 3
    assert [broker["broker_id"] for broker in client.describe_cluster()["brokers"]] == [1]
    with KafkaProducer(bootstrap_servers=coordinator.bootstrap_servers) as producer:
        producer.send(topic_name, b"7", partition=1)
    with consumer(coordinator, group_id, topic_name) as member:
        take(member, 1)
        member.commit()
        assert group_id in {group["group_id"] for group in client.list_groups()}
        described = client.describe_groups([group_id])[group_id]
        assert (described["group_state"], len(described["members"])) == ("Stable", 1)
    offsets = client.list_group_offsets(group_id)[group_id]
    assert offsets[TopicPartition(topic_name, 1)].offset == 1
    client.delete_groups([group_id])
    assert group_id not in {group["group_id"] for group in client.list_groups()}
    client.delete_topics([topic_name])
    assert topic_name not in client.list_topics()
    client.close()
