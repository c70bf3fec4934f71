"""confluent-kafka's ``AIOConsumer`` with our assignors, on both brokers."""

from __future__ import annotations

import asyncio
import time

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.aio import AIOConsumer
from topics import WAIT_S, fill, make_topic

from loadwise import confluent_aio_consumer

PARTITIONS = 6


@pytest.fixture
def settings(broker, group_id):
    return {
        "bootstrap.servers": broker,
        "group.id": group_id,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "heartbeat.interval.ms": 100,
        "log_level": 0,
    }


async def settle(members, counts, read):
    """Consume with all members until they own so many partitions, none of them twice."""
    deadline = time.monotonic() + WAIT_S
    while True:
        for messages in await asyncio.gather(*(member.consume(100, timeout=0.05) for member in members)):
            assert all(message.error() is None for message in messages)
            read += [(message.partition(), message.offset()) for message in messages]
        owned = [{each.partition for each in await member.assignment()} for member in members]
        if [len(each) for each in owned] == counts and len(set().union(*owned)) == sum(counts):
            return owned
        assert time.monotonic() < deadline, owned


@pytest.mark.parametrize("strategy", ["weighted", "cooperative-weighted"])
async def test_members_on_one_event_loop_share_and_commit_in_callbacks(settings, broker, topic_name, strategy):
    await asyncio.to_thread(make_topic, broker, topic_name, PARTITIONS)
    await asyncio.to_thread(fill, broker, topic_name, [5] * PARTITIONS)
    told, reports, read = [], [], []

    async def on_assign(consumer, partitions):
        assert isinstance(consumer, AIOConsumer)
        told.append((consumer, {each.partition for each in partitions}))

    async def on_revoke(consumer, partitions):
        await consumer.commit(
            offsets=[TopicPartition(topic_name, each.partition, 5) for each in partitions], asynchronous=False
        )

    async def on_commit(error, partitions):
        reports.append((error, len(partitions)))

    first = confluent_aio_consumer(settings | {"on_commit": on_commit}, assignor=strategy)
    await first.subscribe([topic_name], on_assign=on_assign, on_revoke=on_revoke)
    await settle([first], [PARTITIONS], read)
    while len(read) < 5 * PARTITIONS:
        await settle([first], [PARTITIONS], read)
    await first.commit()
    while not reports:
        await first.poll(0.05)
    assert reports == [(None, PARTITIONS)]

    second = confluent_aio_consumer(settings, assignor=strategy)
    await second.subscribe([topic_name], on_assign=on_assign)
    _, moved = await settle([first, second], [3, 3], read)
    assert (second, moved) in told
    assert len(read) == 5 * PARTITIONS, "nothing is read twice"
    with pytest.raises(KafkaException) as refused:
        await first.commit(offsets=[TopicPartition(topic_name, min(moved), 1)], asynchronous=False)
    assert refused.value.args[0].code() == KafkaError._ASSIGNMENT_LOST
    await first.close()
    await settle([second], [PARTITIONS], read)
    assert second.rebalances.led > 0
    await second.close()
