"""A topic that was deleted stays deleted, though a consumer with one of our assignors has read it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition
from readers import READERS, KafkaPythonReader
from topics import WAIT_S, make_topic

REQUESTS = 20
"""Of metadata, after the topic was deleted. Each client refreshes it five times a second here."""
UNDER_WAY = 3
"""So many requests later none is left from before, when the consumer wanted both topics; no client can take it back."""
SETTINGS = {"metadata_max_age_ms": 200, "lag_interval_s": 0.1}


@pytest.mark.parametrize("by_pattern", [False, True], ids=["names", "pattern"])
@pytest.mark.parametrize("client", READERS)
async def test_a_deleted_topic_stays_deleted(client, by_pattern, coordinator, topic_name, group_id):
    servers, kept, gone = coordinator.bootstrap_servers, f"{topic_name}-kept", f"{topic_name}-gone"
    make_topic(servers, kept, 1)
    make_topic(servers, gone, 1)
    consumer = READERS[client]()
    await consumer.start(servers, group_id, client_id=group_id, **SETTINGS)

    async def polled_until(condition: Any) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                await consumer.poll()

    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    try:
        consumer.subscribe([kept, gone], f"{topic_name}-.*" if by_pattern else None)
        await polled_until(lambda: consumer.topics() == {kept, gone})
        consumer.subscribe([kept], f"{topic_name}-k.*" if by_pattern else None)
        await polled_until(lambda: consumer.topics() == {kept})
        asked = coordinator.faults.delay("Metadata", ms=0, client_id=group_id, times=None)
        await polled_until(lambda: asked.hits >= UNDER_WAY)
        if client == "kafka-python":  # its reader of the lag has the same client id
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
    client = KafkaPythonReader()
    await client.start(servers, group_id, client_id=group_id, **SETTINGS)
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    try:
        client.subscribe([kept])
        async with asyncio.timeout(WAIT_S):
            while client.topics() != {kept}:
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
