"""Real clients against three brokers: they find leaders, racks and coordinators, and follow when those move."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from polled import know
from topics import WAIT_S, until_so

from loadwise.coordinator import Coordinator
from loadwise.coordinator.apis import fetch_1 as fetch
from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.cluster.replication import ReplicatedPartition
from loadwise.coordinator.handling.access import after

RACKS = ["a", "b", "c"]
PARTITIONS = 6


class Cluster:
    """A running coordinator with three brokers, and what its brokers were asked to read."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self.bootstrap_servers = coordinator.bootstrap_servers
        self.fetches: Counter[int] = Counter()
        """Fetches answered with records, by broker."""

        def counted(call: Call, response: Any) -> Any:
            if any(each.records for topic in response.responses for each in topic.partitions):
                self.fetches[call.node_id] += 1
            return response

        def handle(call: Call, cluster: Any) -> Any:
            return after(call, fetch.handle(call, cluster), lambda response: counted(call, response))

        coordinator._embedded.router.services[1].handle = handle

    def partitions(self) -> list[ReplicatedPartition]:
        topic = self.coordinator.cluster.topics.get("numbers")
        assert topic is not None
        return topic.partitions

    def move_all_leaders(self) -> None:
        for number in range(PARTITIONS):
            self.coordinator.move_leader("numbers", number)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with Coordinator({"numbers": PARTITIONS}, brokers=3, racks=RACKS) as coordinator:
        yield Cluster(coordinator)


def produce_with_confluent(servers: str, numbers: range) -> None:
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 1, "log_level": 0})
    for number in numbers:
        producer.produce(
            "numbers", b"%d" % number, partition=number % PARTITIONS,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )  # fmt: skip
    assert producer.flush(WAIT_S) == 0
    assert failures == []


def produce_with_kafka_python(servers: str, numbers: range) -> None:
    with KafkaProducer(bootstrap_servers=servers) as producer:
        sent = [producer.send("numbers", b"%d" % number, partition=number % PARTITIONS) for number in numbers]
        assert {each.get(WAIT_S).partition for each in sent} == set(range(PARTITIONS))


def read_with_confluent(servers: str, rack: str, stopping: threading.Event) -> Iterator[int]:
    consumer = Consumer({
        "bootstrap.servers": servers, "group.id": "readers", "auto.offset.reset": "earliest", "log_level": 0,
        "client.rack": rack, "heartbeat.interval.ms": 100,
    })  # fmt: skip
    consumer.subscribe(["numbers"])
    while not stopping.is_set():
        for message in consumer.consume(100, 0.1):
            if message.error() is None:
                yield int(message.value())
    consumer.close()


def read_with_kafka_python(servers: str, rack: str, stopping: threading.Event) -> Iterator[int]:
    with KafkaConsumer(
        "numbers", bootstrap_servers=servers, group_id="readers", auto_offset_reset="earliest", client_rack=rack,
        heartbeat_interval_ms=100,
    ) as consumer:  # fmt: skip
        know(consumer)
        while not stopping.is_set():
            for records in consumer.poll(1000).values():
                yield from (int(record.value) for record in records)


@contextlib.asynccontextmanager
async def reading(client: str, servers: str, rack: str = "") -> AsyncIterator[list[int]]:
    """A consumer on a thread of its own; what it reads is in the list."""
    values: list[int] = []
    stopping = threading.Event()

    def read() -> None:
        for value in READERS[client](servers, rack, stopping):
            values.append(value)  # noqa: PERF402  (seen while it grows)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield values
    finally:
        stopping.set()
        await asyncio.to_thread(thread.join)


READERS = {"confluent-kafka": read_with_confluent, "kafka-python": read_with_kafka_python}
WRITERS = {"confluent-kafka": produce_with_confluent, "kafka-python": produce_with_kafka_python}


@pytest.mark.parametrize("client", READERS)
async def test_a_group_reads_on_while_leaders_and_its_coordinator_move(cluster: Cluster, client: str) -> None:
    servers = cluster.bootstrap_servers
    async with reading(client, servers) as values:
        await asyncio.to_thread(WRITERS[client], servers, range(60))
        await until_so(lambda: len(values) == 60)
        assert len(cluster.fetches) == 3, "each broker gave what it leads"
        for step in (1, 2):
            cluster.move_all_leaders()
            before = cluster.coordinator.cluster.brokers.coordinator_of("readers")
            cluster.coordinator.move_coordinator("readers")
            assert cluster.coordinator.cluster.brokers.coordinator_of("readers") is not before
            await asyncio.to_thread(WRITERS[client], servers, range(step * 60, step * 60 + 60))
            await until_so(lambda expected=60 + step * 60: len(values) == expected)  # type: ignore[misc]
    assert sorted(values) == list(range(180)), "nothing is lost, nothing comes twice"
    assert {partition.leader_epoch for partition in cluster.partitions()} == {2}
    committed = cluster.coordinator.cluster.groups.offsets.of("readers")
    assert sum(each.offset for each in committed.values()) == 180


@pytest.mark.parametrize("client", READERS)
async def test_a_consumer_reads_from_the_broker_in_its_rack(cluster: Cluster, client: str) -> None:
    servers = cluster.bootstrap_servers
    await asyncio.to_thread(produce_with_confluent, servers, range(60))
    async with reading(client, servers, rack="b") as values:
        await until_so(lambda: len(values) == 60)
    (node_id,) = cluster.fetches
    node = cluster.coordinator.cluster.brokers.node(node_id)
    assert node is not None
    assert node.rack == "b"


async def test_aiokafka_follows_leaders_and_coordinators(cluster: Cluster) -> None:
    servers = cluster.bootstrap_servers
    values: list[int] = []
    async with (
        AIOKafkaProducer(bootstrap_servers=servers) as producer,
        AIOKafkaConsumer(
            "numbers", bootstrap_servers=servers, group_id="readers", auto_offset_reset="earliest",
            heartbeat_interval_ms=100,
        ) as consumer,
    ):  # fmt: skip
        for step in range(3):
            # Between the steps only: this client hangs in its close() if it does not know the coordinator then.
            if step:
                cluster.move_all_leaders()
                cluster.coordinator.move_coordinator("readers")
            for number in range(step * 60, step * 60 + 60):
                await producer.send_and_wait("numbers", b"%d" % number, partition=number % PARTITIONS)
            async with asyncio.timeout(WAIT_S):
                while len(values) < step * 60 + 60:
                    for records in (await consumer.getmany(timeout_ms=200)).values():
                        values += [int(record.value) for record in records]
        await consumer.commit()
    assert sorted(values) == list(range(180))


async def test_administrators_see_the_brokers_and_find_every_group(cluster: Cluster) -> None:
    servers = cluster.bootstrap_servers
    groups = {f"group-{number}" for number in range(9)}
    assert len({cluster.coordinator.cluster.brokers.coordinator_of(group).id for group in groups}) == 3

    def administrate() -> None:
        admin = AdminClient({"bootstrap.servers": servers})
        for group in groups:
            consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False})
            consumer.subscribe(["numbers"])
            deadline = time.monotonic() + WAIT_S
            while not consumer.assignment():
                assert time.monotonic() < deadline
                consumer.poll(0.1)
            consumer.close()
        assert {group.group_id for group in admin.list_consumer_groups().result(WAIT_S).valid} == groups
        described = admin.describe_cluster().result(WAIT_S)
        assert sorted((node.id, node.rack) for node in described.nodes) == [(1, "a"), (2, "b"), (3, "c")]
        states = admin.describe_consumer_groups(sorted(groups))
        assert {state.result(WAIT_S).coordinator.id for state in states.values()} == {1, 2, 3}
        for deleted in admin.delete_consumer_groups(sorted(groups)).values():
            deleted.result(WAIT_S)
        client = KafkaAdminClient(bootstrap_servers=servers)
        assert client.list_groups() == []
        assert [broker["rack"] for broker in client.describe_cluster()["brokers"]] == RACKS
        client.close()

    await asyncio.to_thread(administrate)


async def test_the_brokers_have_the_ports_after_the_first() -> None:
    async with Coordinator(brokers=2) as some:
        ports = [int(address.rpartition(":")[2]) for address in some.bootstrap_servers.split(",")]
        assert len(set(ports)) == 2
    async with Coordinator(brokers=3, advertised_host="kafka.example", advertised_port=9092) as told:
        assert told.bootstrap_servers == "kafka.example:9092,kafka.example:9093,kafka.example:9094"
