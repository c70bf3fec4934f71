"""Topics for tests against any broker: made, led by somebody, and filled; and how long a test waits for anything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

WAIT_S = 90.0
"""How long a test waits for what must happen. Machines that run tests are slow at times; what hangs, hangs longer."""


def until(reached: Callable[[], object], told: Callable[[], object] = lambda: "", *, limit_s: float = WAIT_S) -> None:
    """Wait for a condition, and report the state if it does not come."""
    deadline = time.monotonic() + limit_s
    while not reached():
        assert time.monotonic() < deadline, told()
        time.sleep(0.02)  # between two looks


async def until_so(condition: Callable[[], bool]) -> None:
    """The same beside a loop's other tasks."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110  (clients tell nobody)
            await asyncio.sleep(0.02)  # between two looks


def make_topic(bootstrap_servers: str, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
    """Make a topic, and wait until the broker tells all of its partitions with their leaders.

    Kafka answers CreateTopics when its controller has the topic; that the broker tells clients of it comes later.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))])[name].result(WAIT_S)
    _wait_until_led(admin, name, partitions)


def delete_topic(bootstrap_servers: str, name: str) -> None:
    """Delete a topic, and wait until the broker no longer tells of it.

    Kafka answers DeleteTopics when its controller has deleted the topic. If it is made anew before the broker knows,
    `make_topic` may see the old one's leaders, and a producer may write to it.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.delete_topics([name])[name].result(WAIT_S)
    until(lambda: name not in admin.list_topics(timeout=WAIT_S).topics, lambda: f"{name} is still told of")


def grow_topic(bootstrap_servers: str, name: str, partitions: int) -> None:
    """Let a topic have so many partitions, and wait until the broker tells all of them with their leaders."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.create_partitions([NewPartitions(name, partitions)])[name].result(WAIT_S)
    _wait_until_led(admin, name, partitions)


def _wait_until_led(admin: AdminClient, name: str, partitions: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while True:
        told = admin.list_topics(name, timeout=WAIT_S).topics[name].partitions.values()
        if len(told) == partitions and all(partition.leader >= 0 for partition in told):
            return
        assert time.monotonic() < deadline, f"{name} has leaders for {len(told)} of {partitions} partitions"
        time.sleep(0.02)  # between two looks


def configure_group(bootstrap_servers: str, group_id: str, name: str, value: str) -> None:
    """Set a config of a group, which Kafka may take in some time after its answer."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group_id, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)


def give_heartbeats_time(bootstrap_servers: str, group_id: str) -> None:
    """Let librdkafka's members of a consumer group (KIP-848) wait 3 s for the answer to a heartbeat.

    They give it up after the interval of heartbeats, half a second in these tests. If it told of a partition to give
    up, no later answer does, and the group hangs. A group of which this is asked before its topic is made has it in
    force once it is given partitions.
    """
    configure_group(bootstrap_servers, group_id, "consumer.heartbeat.interval.ms", "3000")


def committed(bootstrap_servers: str, group_id: str, topic: str, partitions: int) -> list[int]:
    """The group's committed offset of each partition, asked by another client; -1001 where there is none."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group_id})
    found = consumer.committed([TopicPartition(topic, number) for number in range(partitions)], timeout=WAIT_S)
    consumer.close()
    return [each.offset for each in found]


def take(consumer: Consumer, count: int, errors: list[KafkaError] | None = None) -> list[bytes]:
    """The values of so many records, as they come; the reader is told of no errors but those that go to the list."""
    values: list[bytes] = []
    deadline = time.monotonic() + WAIT_S
    while len(values) < count:
        assert time.monotonic() < deadline, f"{len(values)} of {count} records came: {values[-10:]}"
        for message in consumer.consume(count - len(values), 0.2):
            error = message.error()
            if error is None:
                values.append(message.value())
            else:
                assert errors is not None, error
                errors.append(error)
    return values


def fill(bootstrap_servers: str, topic: str, records: Sequence[int], *, batch_records: int = 10_000) -> None:
    """Produce so many records into each partition, no more than so many in a batch; all are there when this returns."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    settings = {"bootstrap.servers": bootstrap_servers, "log_level": 0, "batch.num.messages": batch_records}
    producer = Producer(settings)
    for partition, count in enumerate(records):
        for _ in range(count):
            producer.produce(topic, b"x", partition=partition, on_delivery=delivered)
    assert producer.flush(WAIT_S) == 0
    assert failures == []
