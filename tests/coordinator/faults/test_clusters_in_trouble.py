"""Brokers that die, partitions without a leader, ISRs that shrink, corrupted batches: what real clients make of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka.admin import AdminClient, NewTopic
from sessions import Session
from topics import WAIT_S, take, until

from loadwise.coordinator import BadClusterError, Coordinator, ThreadedCoordinator

TOPIC = "t"


@pytest.fixture
def three() -> Iterator[ThreadedCoordinator]:
    with Coordinator({TOPIC: 3}, brokers=3).in_thread() as coordinator:
        yield coordinator


def described(
    coordinator: ThreadedCoordinator, topic: str = TOPIC
) -> tuple[set[int], dict[int, tuple[int, list[int]]]]:
    """The brokers, and each partition's leader and ISR, as librdkafka is told."""
    metadata = AdminClient({"bootstrap.servers": coordinator.bootstrap_servers, "log_level": 0}).list_topics(
        topic, timeout=WAIT_S
    )
    partitions = metadata.topics[topic].partitions
    return set(metadata.brokers), {number: (each.leader, sorted(each.isrs)) for number, each in partitions.items()}


def with_kafka_python(address: str, values: list[bytes]) -> list[bytes]:
    with kafka.KafkaProducer(bootstrap_servers=address, acks="all", retries=1000, retry_backoff_ms=50) as producer:
        for value in values:
            producer.send(TOPIC, value).get(timeout=WAIT_S)
    with kafka.KafkaConsumer(TOPIC, bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        return [next(consumer).value for _ in values]


def with_aiokafka(address: str, values: list[bytes]) -> list[bytes]:
    async def run() -> list[bytes]:
        consumer = aiokafka.AIOKafkaConsumer(TOPIC, bootstrap_servers=address, auto_offset_reset="earliest")
        async with consumer:  # first: aiokafka starts only where a broker answers at once
            async with aiokafka.AIOKafkaProducer(bootstrap_servers=address, acks="all") as producer:
                for value in values:
                    await producer.send_and_wait(TOPIC, value)
            return [(await consumer.getone()).value for _ in values]

    return asyncio.run(run())


def with_confluent(address: str, values: list[bytes]) -> list[bytes]:
    producer = confluent_kafka.Producer({"bootstrap.servers": address, "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(TOPIC, value)
    assert producer.flush(WAIT_S) == 0
    settings = {"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([TOPIC])
    read = take(consumer, len(values), errors=[])
    consumer.close()
    return read


CLIENTS = pytest.mark.parametrize("copy", [with_kafka_python, with_aiokafka, with_confluent])
VALUES = [str(number).encode() for number in range(9)]


@CLIENTS
def test_clients_go_on_when_a_broker_dies_and_when_it_comes_back(
    three: ThreadedCoordinator, copy: Callable[..., list[bytes]]
) -> None:
    three.stop_broker(1)
    brokers, partitions = described(three)
    assert brokers == {2, 3}
    assert {isr for _, isrs in partitions.values() for isr in isrs} == {2, 3}
    assert {leader for leader, _ in partitions.values()} <= {2, 3}
    assert sorted(copy(three.bootstrap_servers, VALUES)) == VALUES
    three.start_broker(1)
    brokers, partitions = described(three)
    assert brokers == {1, 2, 3}
    assert all(isrs == [1, 2, 3] for _, isrs in partitions.values())
    assert 1 not in {leader for leader, _ in partitions.values()}  # Kafka gives it its leaderships back minutes later
    with pytest.raises(BadClusterError, match="no stopped broker 1"):
        three.start_broker(1)
    with pytest.raises(BadClusterError, match="no running broker 9"):
        three.stop_broker(9)


@CLIENTS
def test_records_wait_for_the_only_broker_to_come_back(copy: Callable[..., list[bytes]]) -> None:
    with Coordinator({TOPIC: 1}).in_thread() as coordinator:
        address = coordinator.bootstrap_servers
        read: list[list[bytes]] = []
        fault = coordinator.faults.delay("Produce", 0)
        client = threading.Thread(target=lambda: read.append(copy(address, VALUES)))
        client.start()
        until(lambda: fault.hits)
        coordinator.stop_broker(1)
        coordinator.start_broker(1)
        client.join(WAIT_S)
    assert [sorted(set(values)) for values in read] == [VALUES]


def test_a_member_goes_on_when_the_broker_of_its_group_dies(three: ThreadedCoordinator) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": three.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([TOPIC])
    producer = confluent_kafka.Producer({"bootstrap.servers": three.bootstrap_servers, "log_level": 0})
    admin = AdminClient({"bootstrap.servers": three.bootstrap_servers, "log_level": 0})
    for number in range(3):
        producer.produce(TOPIC, str(number).encode())
        assert producer.flush(WAIT_S) == 0
        assert take(consumer, 1, errors=[]) == [str(number).encode()]
        coordinator = admin.describe_consumer_groups(["g"])["g"].result(WAIT_S).coordinator.id
        if number < 2:
            three.stop_broker(coordinator)
            admin = AdminClient({"bootstrap.servers": three.bootstrap_servers, "log_level": 0})
    consumer.close()


@CLIENTS
def test_records_wait_until_a_partition_has_a_leader_again(copy: Callable[..., list[bytes]]) -> None:
    with Coordinator({TOPIC: 1}, brokers=2).in_thread() as coordinator:
        coordinator.drop_leader(TOPIC, 0)
        assert described(coordinator)[1][0][0] == -1
        read: list[list[bytes]] = []
        asked = coordinator.faults.delay("Metadata", 0, topic=TOPIC, times=None)
        client = threading.Thread(target=lambda: read.append(copy(coordinator.bootstrap_servers, VALUES)))
        client.start()
        # it asks again and again who leads
        until(lambda: asked.hits >= 3)
        assert not read
        coordinator.move_leader(TOPIC, 0)
        client.join(WAIT_S)
    assert [sorted(values) for values in read] == [VALUES]


def test_too_few_replicas_in_sync_refuse_who_waits_for_all_of_them(three: ThreadedCoordinator) -> None:
    admin = AdminClient({"bootstrap.servers": three.bootstrap_servers, "log_level": 0})
    topic = NewTopic("safe", 1, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([topic])["safe"].result(WAIT_S)
    leader = described(three, "safe")[1][0][0]

    def produce(acks: str) -> confluent_kafka.KafkaError | None:
        settings = {"bootstrap.servers": three.bootstrap_servers, "acks": acks, "retries": 0, "log_level": 0}
        producer = confluent_kafka.Producer(settings)
        answers: list[confluent_kafka.KafkaError | None] = []
        producer.produce("safe", b"x", on_delivery=lambda error, _: answers.append(error))
        assert producer.flush(WAIT_S) == 0
        return answers[0]

    three.set_isr("safe", 0, [leader])
    assert described(three, "safe")[1][0][1] == [leader]
    refused = produce("all")
    assert refused is not None
    assert refused.code() == confluent_kafka.KafkaError.NOT_ENOUGH_REPLICAS
    assert produce("1") is None
    three.set_isr("safe", 0, [1, 2, 3])
    assert produce("all") is None
    with pytest.raises(BadClusterError, match="leads"):
        three.set_isr("safe", 0, [each for each in (1, 2, 3) if each != leader])
    with pytest.raises(BadClusterError, match="can be in sync"):
        three.set_isr("safe", 0, [leader, 9])


def test_what_too_few_replicas_have_is_read_when_they_are_enough_again(three: ThreadedCoordinator) -> None:
    """The high watermark stands meanwhile (KIP-966), and a fetch that waits is answered when it goes on."""
    settings = {"bootstrap.servers": three.bootstrap_servers, "log_level": 0}
    topic = NewTopic("safe", 1, 3, config={"min.insync.replicas": "2"})
    client = AdminClient(settings)
    client.create_topics([topic])["safe"].result(WAIT_S)
    leader = described(three, "safe")[1][0][0]
    partition = confluent_kafka.TopicPartition("safe", 0, 0)
    consumer = confluent_kafka.Consumer({**settings, "group.id": "g"})
    consumer.assign([partition])
    producer = confluent_kafka.Producer({**settings, "acks": "1"})

    def write(value: bytes) -> None:
        producer.produce("safe", value)
        assert producer.flush(WAIT_S) == 0

    def read() -> bytes:
        message = consumer.poll(WAIT_S)
        assert message is not None
        return message.value()

    write(b"first")
    assert read() == b"first"
    three.set_isr("safe", 0, [leader])
    write(b"hidden")
    assert consumer.get_watermark_offsets(partition, WAIT_S) == (0, 1)
    three.set_isr("safe", 0, [1, 2, 3])
    assert read() == b"hidden"
    write(b"last")
    assert read() == b"last"
    assert consumer.get_watermark_offsets(partition, WAIT_S) == (0, 3)
    consumer.close()


def test_brokers_that_stop_shrink_the_isr_until_too_few_are_left(three: ThreadedCoordinator) -> None:
    for broker in (1, 2):
        three.stop_broker(broker)
    assert all(each == (3, [3]) for each in described(three)[1].values())
    three.stop_broker(3)
    for broker in (1, 3):
        three.start_broker(broker)
    # The last one in sync leads again; nobody else could have.
    assert all(each == (3, [1, 3]) for each in described(three)[1].values())


def test_a_transaction_goes_on_with_another_coordinator(three: ThreadedCoordinator) -> None:
    settings: dict[str, Any] = {"bootstrap.servers": three.bootstrap_servers, "transactional.id": "x", "log_level": 0}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(WAIT_S)
    for number, value in enumerate(VALUES[:3]):
        producer.begin_transaction()
        producer.produce(TOPIC, value)
        assert producer.flush(WAIT_S) == 0
        if number == 1:
            three.stop_broker(next(iter(described(three)[0])))
        else:
            three.move_transaction_coordinator("x")
        producer.commit_transaction(WAIT_S)
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": three.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([TOPIC])
    read = take(consumer, 3, errors=[])
    consumer.close()
    assert sorted(read) == VALUES[:3]


# ---- corrupted batches ----


@pytest.fixture
def filled() -> Iterator[ThreadedCoordinator]:
    with Coordinator({TOPIC: 1}).in_thread() as coordinator:
        with_kafka_python(coordinator.bootstrap_servers, VALUES)
        yield coordinator


def test_kafka_python_tells_of_a_corrupted_batch(filled: ThreadedCoordinator) -> None:
    fault = filled.faults.corrupt(topic=TOPIC)
    address = filled.bootstrap_servers
    with kafka.KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        consumer.assign([kafka.TopicPartition(TOPIC, 0)])
        with pytest.raises(kafka.errors.KafkaError, match=r"(?i)crc|corrupt"):
            consumer.poll(timeout_ms=int(WAIT_S * 1000))
    assert fault.hits == 1
    with kafka.KafkaConsumer(TOPIC, bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        assert next(consumer).value == VALUES[0]


async def test_aiokafka_tells_of_a_corrupted_batch(filled: ThreadedCoordinator) -> None:
    filled.faults.corrupt(topic=TOPIC)
    consumer = aiokafka.AIOKafkaConsumer(
        TOPIC, bootstrap_servers=filled.bootstrap_servers, auto_offset_reset="earliest"
    )
    async with consumer:
        with pytest.raises(AiokafkaError, match=r"(?i)crc|corrupt"):
            await asyncio.wait_for(consumer.getone(), WAIT_S)


def test_librdkafka_fetches_a_corrupted_batch_again(filled: ThreadedCoordinator) -> None:
    fault = filled.faults.corrupt(topic=TOPIC)
    settings = {"bootstrap.servers": filled.bootstrap_servers, "group.id": "g", "check.crcs": True, "log_level": 0}
    consumer = confluent_kafka.Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    errors: list[confluent_kafka.KafkaError] = []
    assert take(consumer, len(VALUES), errors) == VALUES
    consumer.close()
    assert ([error.code() for error in errors], fault.hits) == ([confluent_kafka.KafkaError._BAD_MSG], 1)


def test_a_fetch_without_records_does_not_use_a_corruption_up() -> None:
    with Coordinator({TOPIC: 1}).in_thread() as coordinator:
        fault = coordinator.faults.corrupt()
        address = coordinator.bootstrap_servers
        with kafka.KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
            consumer.assign([kafka.TopicPartition(TOPIC, 0)])
            assert consumer.poll(timeout_ms=300) == {}
            assert (fault.hits, fault.is_used_up) == (0, False)
            with kafka.KafkaProducer(bootstrap_servers=address) as producer:
                producer.send(TOPIC, b"x").get(timeout=WAIT_S)
            with pytest.raises(kafka.errors.KafkaError, match=r"(?i)crc|corrupt"):
                consumer.poll(timeout_ms=int(WAIT_S * 1000))
        assert fault.hits == 1


def test_every_replica_describes_producers(three: ThreadedCoordinator) -> None:
    """``kafka-transactions.sh find-hanging --broker-id`` asks a broker about all partitions that it is a replica of."""
    client = AdminClient({"bootstrap.servers": three.bootstrap_servers, "log_level": 0})
    brokers = client.list_topics(timeout=WAIT_S).brokers.values()
    row = {"name": TOPIC, "partition_indexes": [0]}
    for broker in brokers:
        with closing(Session(f"{broker.host}:{broker.port}")) as session:
            (topic,) = session.ask("DescribeProducers", 0, topics=[row]).topics
            assert topic.partitions[0].error_code == 0, broker.id
