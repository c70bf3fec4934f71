"""The types of consumers and producers: a user's program is checked, and the stubs have the clients' own methods."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer

import loadwise

SOURCE = Path(loadwise.__file__).parent
CONSUMERS, PRODUCERS = SOURCE / "assignor" / "clients", SOURCE / "dispatcher" / "clients"
GOOD = """
import asyncio
from confluent_kafka import TopicPartition
from loadwise import LiveSettings, aiokafka_consumer, confluent_consumer, kafka_python_consumer
from loadwise import aiokafka_producer, kafka_python_producer


def kafka_python() -> None:
    with kafka_python_consumer(
        "orders", group_id="billing", bootstrap_servers="localhost:9092", live=LiveSettings(dry_run=True)
    ) as consumer:
        consumer.subscribe(["orders"])
        for records in consumer.poll(100, max_records=10).values():
            print(len(records), consumer.assignment(), consumer.explain())
        for record in consumer:
            print(record.value)
        consumer.commit()
        consumer.capacity = 2.0
        print(consumer.rebalances.led, consumer.assignor.name, consumer.live, consumer.load)
        consumer.close(autocommit=False)


async def aiokafka() -> None:
    async with aiokafka_consumer("orders", group_id="billing") as consumer:
        async for record in consumer:
            print(record.value)
        batches = await consumer.getmany(timeout_ms=100)
        print(sum(map(len, batches.values())), consumer.assignment(), consumer.explain())
        await consumer.commit()
    await consumer.stop()


def confluent() -> None:
    consumer = confluent_consumer({"bootstrap.servers": "localhost:9092", "group.id": "billing"}, capacity=2.0)
    consumer.subscribe(["orders"], on_assign=lambda _, partitions: print(partitions))
    message = consumer.poll(1.0)
    if message is not None and message.error() is None:
        print(message.value(), consumer.explain())
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()


async def produce() -> None:
    with kafka_python_producer(bootstrap_servers="localhost:9092") as producer:
        producer.send("orders", b"hello").get(timeout=30)
        producer.flush()
    async with aiokafka_producer(bootstrap_servers="localhost:9092") as sender:
        await sender.send_and_wait("orders", b"hello")


asyncio.run(aiokafka())
"""
BAD = """
from loadwise import aiokafka_consumer, confluent_consumer, kafka_python_consumer
from loadwise import aiokafka_producer, kafka_python_producer
kafka_python_consumer("orders", group_id="billing").expain()
aiokafka_consumer("orders", group_id="billing").expain()
confluent_consumer({"group.id": "billing"}).expain()
kafka_python_consumer("orders", group_id="billing").poll(timeout=1)
kafka_python_consumer("orders", group_id="billing", live="often")
kafka_python_producer().sned("orders", b"hello")
aiokafka_producer().sned("orders", b"hello")
kafka_python_consumer("orders", group_id="billing", assignor="wieghted")
"""


@pytest.mark.long  # mypy reads everything anew, for seconds
def test_mypy_finds_the_mistakes_of_a_user_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(BAD)
    command = [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--cache-dir=cache", "good.py", "bad.py"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert [line.split(":")[:2] for line in errors] == [["bad.py", str(number)] for number in range(4, 12)]
    for error in errors[:3]:
        assert 'has no attribute "expain"' in error
    for error in errors[5:7]:
        assert 'has no attribute "sned"' in error


@pytest.mark.parametrize(
    ("stub", "client"),
    [
        (CONSUMERS / "kafka_python" / "stock.pyi", KafkaConsumer),
        (CONSUMERS / "aiokafka" / "stock.pyi", AIOKafkaConsumer),
        (PRODUCERS / "kafka_python_stock.pyi", KafkaProducer),
        (PRODUCERS / "aiokafka_stock.pyi", AIOKafkaProducer),
    ],
)
def test_the_types_name_every_public_method_and_its_arguments(stub: Path, client: type) -> None:
    [typed] = [
        node
        for node in ast.parse(stub.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == client.__name__
    ]
    methods = {
        node.name: [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
        for node in typed.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    }
    assert methods == {
        name: [
            each.name
            for each in inspect.signature(method).parameters.values()
            if each.kind is not inspect.Parameter.VAR_POSITIONAL
        ]
        for name, method in inspect.getmembers(client, inspect.isfunction)
        if not name.startswith("_")
    }
