"""Transactional producers of the Python clients, on our coordinator and on Apache Kafka."""

from __future__ import annotations

import asyncio
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from topics import WAIT_S, committed, make_topic

from loadwise.coordinator import Coordinator, ThreadedCoordinator


def read(broker: str, topic: str, isolation: str, count: int | None = None) -> list[bytes]:
    """The values of a topic with one partition, up to its end as this reader sees it, or so many."""
    consumer = Consumer({
        "bootstrap.servers": broker, "group.id": f"reader-{uuid.uuid4()}", "auto.offset.reset": "earliest",
        "isolation.level": isolation, "enable.partition.eof": True,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + WAIT_S
    try:
        while count is None or len(values) < count:
            assert time.monotonic() < deadline
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                values.append(message.value())
            elif message is not None and count is None:
                return values
        return values
    finally:
        consumer.close()


def confluent(broker: str, topic: str, group: str, transactional_id: str) -> str:
    def new() -> Producer:
        made = Producer({"bootstrap.servers": broker, "transactional.id": transactional_id, "linger.ms": 0})
        made.init_transactions(WAIT_S)
        return made

    def send(producer: Producer, *values: bytes) -> None:
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush(WAIT_S)

    producer = new()
    for values, ends in (((b"a", b"b"), True), ((b"x", b"y"), False), ((b"c",), True)):
        producer.begin_transaction()
        send(producer, *values)
        (producer.commit_transaction if ends else producer.abort_transaction)(WAIT_S)
    consumer = Consumer({"bootstrap.servers": broker, "group.id": group})
    producer.begin_transaction()
    send(producer, b"d")
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, 4)], consumer.consumer_group_metadata(), WAIT_S)
    producer.commit_transaction(WAIT_S)
    consumer.close()
    producer.begin_transaction()
    send(producer, b"z")
    successor = new()
    try:
        producer.commit_transaction(WAIT_S)
    except KafkaException as error:
        return str(error.args[0].name())
    finally:
        successor.flush(WAIT_S)
    return "not fenced"


def kafka_python(broker: str, topic: str, group: str, transactional_id: str) -> str:
    from kafka import KafkaProducer
    from kafka import TopicPartition as Place
    from kafka.errors import KafkaError
    from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata

    def new() -> Any:
        made = KafkaProducer(bootstrap_servers=broker, transactional_id=transactional_id)
        made.init_transactions()
        return made

    def send(producer: Any, *values: bytes) -> None:
        for future in [producer.send(topic, value, partition=0) for value in values]:
            future.get(WAIT_S)

    producer = new()
    for values, ends in (((b"a", b"b"), True), ((b"x", b"y"), False), ((b"c",), True)):
        producer.begin_transaction()
        send(producer, *values)
        (producer.commit_transaction if ends else producer.abort_transaction)()
    producer.begin_transaction()
    send(producer, b"d")
    producer.send_offsets_to_transaction({Place(topic, 0): OffsetAndMetadata(4, "", -1)}, ConsumerGroupMetadata(group))
    producer.commit_transaction()
    producer.begin_transaction()
    send(producer, b"z")
    successor = new()
    try:
        producer.commit_transaction()
    except KafkaError as error:
        return type(error).__name__
    finally:
        producer.close(0)
        successor.close()
    return "not fenced"


def aiokafka(broker: str, topic: str, group: str, transactional_id: str) -> str:
    from aiokafka import AIOKafkaProducer
    from aiokafka import TopicPartition as Place
    from aiokafka.errors import KafkaError

    async def live() -> str:
        async def new() -> Any:
            made = AIOKafkaProducer(bootstrap_servers=broker, transactional_id=transactional_id)
            await made.start()
            return made

        async def send(producer: Any, *values: bytes) -> None:
            for value in values:
                await producer.send_and_wait(topic, value, partition=0)

        producer = await new()
        for values, ends in (((b"a", b"b"), True), ((b"x", b"y"), False), ((b"c",), True)):
            await producer.begin_transaction()
            await send(producer, *values)
            await (producer.commit_transaction() if ends else producer.abort_transaction())
        async with producer.transaction():
            await send(producer, b"d")
            await producer.send_offsets_to_transaction({Place(topic, 0): 4}, group)
        await producer.begin_transaction()
        await send(producer, b"z")
        successor = await new()
        try:
            await producer.commit_transaction()
        except KafkaError as error:
            return type(error).__name__
        finally:
            await producer.stop()
            await successor.stop()
        return "not fenced"

    return asyncio.run(live())


@pytest.mark.parametrize(
    ("client", "fenced"),
    [(confluent, "_FENCED"), (kafka_python, "ProducerFencedError"), (aiokafka, "ProducerFenced")],
    ids=["confluent-kafka", "kafka-python", "aiokafka"],
)
def test_a_transactional_producer_commits_aborts_and_is_fenced(
    broker: str, topic_name: str, group_id: str, client: Any, fenced: str
) -> None:
    make_topic(broker, topic_name, 1)
    assert client(broker, topic_name, group_id, f"transactional-{topic_name}") == fenced
    assert read(broker, topic_name, "read_committed") == [b"a", b"b", b"c", b"d"]
    assert read(broker, topic_name, "read_uncommitted") == [b"a", b"b", b"x", b"y", b"c", b"d", b"z"]
    assert committed(broker, group_id, topic_name, 1) == [4]


def test_who_waits_for_committed_records_gets_them_when_the_transaction_ends(
    coordinator: ThreadedCoordinator, topic_name: str
) -> None:
    coordinator.create_topic(topic_name, 1)
    producer = Producer({"bootstrap.servers": coordinator.bootstrap_servers, "transactional.id": topic_name})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic_name, b"a", partition=0)
    assert producer.flush(WAIT_S) == 0
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(read, coordinator.bootstrap_servers, topic_name, "read_committed", 1)
        assert read(coordinator.bootstrap_servers, topic_name, "read_uncommitted", 1) == [b"a"]
        assert not waiting.done()
        producer.commit_transaction(WAIT_S)
        assert waiting.result(WAIT_S) == [b"a"]


def test_a_transaction_that_takes_too_long_is_aborted(topic_name: str) -> None:
    with Coordinator(topics={topic_name: 1}).in_thread() as running:
        running.clock.freeze()
        broker = running.bootstrap_servers
        producer = Producer({
            "bootstrap.servers": broker, "transactional.id": topic_name, "transaction.timeout.ms": 60_000,
            "log_level": 0,
        })  # fmt: skip
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        producer.produce(topic_name, b"x", partition=0)
        assert producer.flush(WAIT_S) == 0
        running.clock.step(60_000)
        with pytest.raises(KafkaException) as refused:
            producer.commit_transaction(WAIT_S)
        assert refused.value.args[0].name() == "_FENCED"
        running.clock.resume()
        assert read(broker, topic_name, "read_committed") == []
