"""confluent-kafka (librdkafka) against the coordinator."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec, ResourceType
from kafka_process import reserved_port
from topics import WAIT_S, take

from loadwise.coordinator import Coordinator, ThreadedCoordinator


def consumer(coordinator: ThreadedCoordinator, group_id: str, topic: str, **options: Any) -> Consumer:
    defaults = {
        "bootstrap.servers": coordinator.bootstrap_servers,
        "group.id": group_id,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "heartbeat.interval.ms": 100,
        "session.timeout.ms": 30_000,
        "topic.metadata.refresh.interval.ms": 500,
    }
    client = Consumer(defaults | {name.replace("_", "."): value for name, value in options.items()})
    client.subscribe([topic])
    return client


def produce(coordinator: ThreadedCoordinator, topic: str, count: int, **options: Any) -> None:
    settings = {"bootstrap.servers": coordinator.bootstrap_servers, "linger.ms": 1}
    producer = Producer(settings | {name.replace("_", "."): value for name, value in options.items()})
    failures: list[object] = []
    for number in range(count):
        producer.produce(topic, b"%d" % number, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(WAIT_S) == 0
    assert failures == []


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_a_group_resumes_where_it_committed(
    coordinator: ThreadedCoordinator, topic_name: str, group_id: str, compression: str
) -> None:
    coordinator.create_topic(topic_name, 4)
    produce(coordinator, topic_name, 100, enable_idempotence=True, compression_type=compression)
    first = consumer(coordinator, group_id, topic_name)
    read = take(first, 60)
    first.commit(asynchronous=False)
    first.close()
    second = consumer(coordinator, group_id, topic_name)
    rest = take(second, 40)
    second.close()
    assert sorted(map(int, read + rest)) == list(range(100))


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_share_and_take_over(
    coordinator: ThreadedCoordinator, topic_name: str, group_id: str, strategy: str
) -> None:
    coordinator.create_topic(topic_name, 4)
    members = [consumer(coordinator, group_id, topic_name, partition_assignment_strategy=strategy) for _ in range(2)]

    def until(counts: list[int]) -> None:
        deadline = time.monotonic() + WAIT_S
        while [len(member.assignment()) for member in members] != counts:
            assert time.monotonic() < deadline, [member.assignment() for member in members]
            for member in members:
                member.poll(0.02)

    until([2, 2])
    members.pop().close()
    until([4])
    produce(coordinator, topic_name, 20)
    assert sorted(map(int, take(members[0], 20))) == list(range(20))
    members[0].close()


def test_an_administrator_sees_and_changes_topics_and_groups(
    coordinator: ThreadedCoordinator, topic_name: str, group_id: str
) -> None:
    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap_servers})
    admin.create_topics([NewTopic(topic_name, 2, 1)])[topic_name].result(WAIT_S)
    with pytest.raises(KafkaException, match="already exists"):
        admin.create_topics([NewTopic(topic_name, 2, 1)])[topic_name].result(WAIT_S)
    admin.create_partitions([NewPartitions(topic_name, 3)])[topic_name].result(WAIT_S)
    assert len(admin.list_topics(topic_name, timeout=WAIT_S).topics[topic_name].partitions) == 3
    produce(coordinator, topic_name, 10)
    member = consumer(coordinator, group_id, topic_name)
    take(member, 10)
    member.commit(asynchronous=False)
    described = admin.describe_consumer_groups([group_id])[group_id].result(WAIT_S)
    assert (described.state.name, len(described.members)) == ("STABLE", 1)
    assert len(described.members[0].assignment.topic_partitions) == 3
    member.close()
    listed = admin.list_consumer_groups().result(WAIT_S).valid
    assert group_id in {group.group_id for group in listed}
    wanted = [ConsumerGroupTopicPartitions(group_id)]
    committed = admin.list_consumer_group_offsets(wanted)[group_id].result(WAIT_S).topic_partitions
    assert sum(partition.offset for partition in committed) == 10
    partition = TopicPartition(topic_name, committed[0].partition)
    latest = admin.list_offsets({partition: OffsetSpec.latest()})[partition].result(WAIT_S)
    assert latest.offset == committed[0].offset
    resource = ConfigResource(ResourceType.TOPIC, topic_name)
    assert admin.describe_configs([resource])[resource].result(WAIT_S)["cleanup.policy"].value == "delete"
    assert len(admin.describe_cluster().result(WAIT_S).nodes) == 1
    admin.delete_consumer_groups([group_id])[group_id].result(WAIT_S)
    admin.delete_topics([topic_name])[topic_name].result(WAIT_S)


def test_a_producer_that_outlives_its_broker_takes_no_record_from_a_new_one(topic_name: str) -> None:
    """Two producers with one id in common would pass for one: a record of the second would count as sent already."""
    acknowledged: list[str] = []

    def produce(producer: Producer, *values: str) -> None:
        def on_delivery(failure: Any, message: Any) -> None:
            assert failure is None
            acknowledged.append(message.value().decode())

        for value in values:
            producer.produce(topic_name, value, on_delivery=on_delivery)
            assert producer.flush(WAIT_S) == 0

    with reserved_port() as port:
        config = {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "enable.idempotence": True,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
        with Coordinator({topic_name: 1}, port=port).in_thread():
            survivor = Producer(config)
            produce(survivor, "a1")
        acknowledged.clear()
        with Coordinator({topic_name: 1}, port=port).in_thread():
            newcomer = Producer(config)
            produce(newcomer, "b1")
            produce(survivor, "a2", "a3")
            produce(newcomer, "b2")
            consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "none"})
            consumer.assign([TopicPartition(topic_name, 0, 0)])
            read = [message.value().decode() for message in consumer.consume(4, WAIT_S) if message.error() is None]
            consumer.close()
    assert read == acknowledged == ["b1", "a2", "a3", "b2"]
