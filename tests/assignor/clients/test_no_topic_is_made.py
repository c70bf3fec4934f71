"""A topic that was deleted stays deleted, though a consumer with one of our assignors has read it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition
from topics import WAIT_S, make_topic

from loadwise import aiokafka_consumer, confluent_consumer, kafka_python_consumer

REQUESTS = 20
"""Of metadata, after the topic was deleted. Each client refreshes it five times a second here."""
UNDER_WAY = 3
"""So many requests later none is left from before, when the consumer wanted both topics; no client can take it back."""
SETTINGS = {"metadata_max_age_ms": 200, "heartbeat_interval_ms": 100, "session_timeout_ms": 30_000}


class KafkaPython:
    async def start(self, servers: str, group_id: str) -> None:
        options = {"bootstrap_servers": servers, "group_id": group_id, "client_id": group_id, **SETTINGS}
        self.consumer = await asyncio.to_thread(lambda: kafka_python_consumer(lag_interval_s=0.1, **options))

    def subscribe(self, topics: list[str], pattern: str | None) -> None:
        self.consumer.subscribe(() if pattern else topics, pattern=pattern)

    async def poll(self) -> None:
        await asyncio.to_thread(self.consumer.poll, timeout_ms=50)

    async def stop(self) -> None:
        await asyncio.to_thread(self.consumer.close)


class Aiokafka:
    async def start(self, servers: str, group_id: str) -> None:
        options = {"bootstrap_servers": servers, "group_id": group_id, "client_id": group_id, **SETTINGS}
        self.consumer = aiokafka_consumer(lag_interval_s=0.1, **options)
        await self.consumer.start()

    def subscribe(self, topics: list[str], pattern: str | None) -> None:
        self.consumer.subscribe(() if pattern else topics, pattern=pattern)

    async def poll(self) -> None:
        await self.consumer.getmany(timeout_ms=50)

    async def stop(self) -> None:
        await self.consumer.stop()


class Confluent:
    async def start(self, servers: str, group_id: str) -> None:
        given: dict[str, Any] = {"bootstrap.servers": servers, "group.id": group_id, "client.id": group_id}
        given |= {name.replace("_", "."): value for name, value in SETTINGS.items()} | {"log_level": 0}
        self.consumer = confluent_consumer(given, lag_interval_s=0.1)

    def subscribe(self, topics: list[str], pattern: str | None) -> None:
        self.consumer.subscribe([f"^{pattern}"] if pattern else topics)

    async def poll(self) -> None:
        await asyncio.to_thread(self.consumer.consume, 100, 0.05)

    async def stop(self) -> None:
        await asyncio.to_thread(self.consumer.close)


def topics_of(consumer: Any) -> set[str]:
    return {each.topic for each in consumer.consumer.assignment()}


@pytest.mark.parametrize("by_pattern", [False, True], ids=["names", "pattern"])
@pytest.mark.parametrize("client", [KafkaPython, Aiokafka, Confluent])
async def test_a_deleted_topic_stays_deleted(client, by_pattern, coordinator, topic_name, group_id):
    servers, kept, gone = coordinator.bootstrap_servers, f"{topic_name}-kept", f"{topic_name}-gone"
    make_topic(servers, kept, 1)
    make_topic(servers, gone, 1)
    consumer = client()
    await consumer.start(servers, group_id)

    async def polled_until(condition: Any) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                await consumer.poll()

    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    try:
        consumer.subscribe([kept, gone], f"{topic_name}-.*" if by_pattern else None)
        await polled_until(lambda: topics_of(consumer) == {kept, gone})
        consumer.subscribe([kept], f"{topic_name}-k.*" if by_pattern else None)
        await polled_until(lambda: topics_of(consumer) == {kept})
        asked = coordinator.faults.delay("Metadata", ms=0, client_id=group_id, times=None)
        await polled_until(lambda: asked.hits >= UNDER_WAY)
        if isinstance(consumer, KafkaPython):  # its reader of the lag has the same client id
            await asyncio.to_thread(consumer.consumer.topics)  # waits for the request that is under way
        await asyncio.to_thread(admin.delete_topics([gone])[gone].result, WAIT_S)
        hits = asked.hits
        await polled_until(lambda: asked.hits >= hits + REQUESTS)
        assert gone not in (await asyncio.to_thread(admin.list_topics)).topics
    finally:
        coordinator.faults.clear()
        await consumer.stop()


async def test_kafka_pythons_request_for_offsets_makes_no_topic_again(coordinator, topic_name, group_id):
    """It adds them to the topics whose metadata it refreshes. Partitions that go in a rebalance are asked for too."""
    servers, kept, gone = coordinator.bootstrap_servers, f"{topic_name}-kept", f"{topic_name}-gone"
    make_topic(servers, kept, 1)
    make_topic(servers, gone, 1)
    client = KafkaPython()
    await client.start(servers, group_id)
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    try:
        client.subscribe([kept], None)
        async with asyncio.timeout(WAIT_S):
            while topics_of(client) != {kept}:
                await client.poll()
            ends = await asyncio.to_thread(client.consumer.end_offsets, [TopicPartition(gone, 0)])
            assert list(ends.values()) == [0]
            await asyncio.to_thread(admin.delete_topics([gone])[gone].result, WAIT_S)
            asked = coordinator.faults.delay("Metadata", ms=0, client_id=group_id, times=None)
            while asked.hits < REQUESTS:
                await client.poll()
        assert gone not in (await asyncio.to_thread(admin.list_topics)).topics
    finally:
        coordinator.faults.clear()
        await client.stop()
