"""Cooperative consumers of aiokafka: what is kept goes on, what moves is given up first, what is lost is dropped."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import ConsumerRebalanceListener
from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove
from topics import WAIT_S, fill, make_topic

from loadwise import aiokafka_consumer

SETTINGS = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "heartbeat_interval_ms": 100,
    "session_timeout_ms": 30_000,
    "assignor": "cooperative-weighted",
}


class Told(ConsumerRebalanceListener):
    def __init__(self):
        self.revoked, self.assigned, self.lost = [], [], []

    async def on_partitions_revoked(self, revoked):
        self.revoked.append({partition.partition for partition in revoked})

    async def on_partitions_assigned(self, assigned):
        self.assigned.append({partition.partition for partition in assigned})

    def on_partitions_lost(self, lost):
        self.lost.append({partition.partition for partition in lost})


@pytest.fixture
async def start(broker, group_id):
    """``await start(topic, …)`` starts a member; all are stopped at the end."""
    started = []

    async def starts(*topics, **config):
        consumer = aiokafka_consumer(*topics, bootstrap_servers=broker, group_id=group_id, **{**SETTINGS, **config})
        started.append(consumer)
        await asyncio.wait_for(consumer.start(), WAIT_S)
        return consumer

    yield starts
    await asyncio.gather(*(consumer.stop() for consumer in started))


def numbers(consumer):
    return {partition.partition for partition in consumer.assignment()}


async def read_all(consumer, count):
    """Read so many records; their partitions and offsets."""
    read = []
    async with asyncio.timeout(WAIT_S):
        while len(read) < count:
            for records in (await consumer.getmany(timeout_ms=50)).values():
                read += [(record.partition, record.offset) for record in records]
    return read


async def test_positions_and_pauses_outlast_a_rebalance_and_only_what_moves_is_revoked(
    broker, topic_name, start, until
):
    make_topic(broker, topic_name, 6)
    fill(broker, topic_name, [10] * 6)
    told = Told()
    first = await start()
    first.subscribe([topic_name], listener=told)
    await until(lambda: len(numbers(first)) == 6)
    await read_all(first, 60)
    paused = min(first.assignment())
    first.pause(paused)
    second = await start(topic_name)
    await until(lambda: len(numbers(first)) == len(numbers(second)) == 3)
    assert told.lost == []
    assert told.revoked == [set(range(6)) - numbers(first)], "once, and what the second one has now"
    for partition in first.assignment():
        assert await first.position(partition) == 10, "nothing was committed: this position was kept"
    for partition in second.assignment():
        assert await second.position(partition) == 0
    if paused in first.assignment():
        assert first.paused() == {paused}
    fill(broker, topic_name, [1] * 6)
    first.resume(*first.paused())
    assert sorted(await read_all(first, 3)) == sorted((number, 10) for number in numbers(first))


async def test_kept_partitions_are_read_and_committed_while_the_group_waits(broker, topic_name, group_id, start, until):
    make_topic(broker, topic_name, 6)
    fault_free, waiting = asyncio.Event(), asyncio.Event()

    class Slow(ConsumerRebalanceListener):
        """Its member does not join again until the test has seen what it wants to."""

        async def on_partitions_revoked(self, revoked):  # noqa: ARG002 (the client's)
            waiting.set()
            await fault_free.wait()

        async def on_partitions_assigned(self, assigned):
            pass

    reader = await start(topic_name)
    slow = await start(assignor=["cooperative-weighted", "weighted"])  # eager: it tells before it joins
    slow.subscribe([topic_name], listener=Slow())
    fault_free.set()
    await until(lambda: len(numbers(reader)) == len(numbers(slow)) == 3)
    fault_free.clear()
    waiting.clear()
    newcomer = asyncio.create_task(start(topic_name))
    try:
        await until(lambda: reader._coordinator.joining and waiting.is_set())
        fill(broker, topic_name, [5] * 6)
        read = await read_all(reader, 15)
        assert {partition for partition, _ in read} == numbers(reader)
        await asyncio.wait_for(reader.commit(), WAIT_S)
        assert reader._coordinator.joining, "all this was before the join could end"
    finally:
        fault_free.set()
    third = await newcomer
    await until(lambda: len(numbers(reader)) == len(numbers(slow)) == len(numbers(third)) == 2)


async def test_a_member_that_was_evicted_gives_up_what_it_had_as_lost(broker, topic_name, group_id, start, until):
    make_topic(broker, topic_name, 4)
    told = Told()
    consumer = await start()
    consumer.subscribe([topic_name], listener=told)
    await until(lambda: len(numbers(consumer)) == 4)
    admin = KafkaAdminClient(bootstrap_servers=broker)
    member = MemberToRemove(member_id=consumer._coordinator.member_id)
    await asyncio.to_thread(admin.remove_group_members, group_id, [member])
    await asyncio.to_thread(admin.close)
    await until(lambda: told.lost == [{0, 1, 2, 3}] and len(numbers(consumer)) == 4)
    assert told.revoked == []
    assert told.assigned == [{0, 1, 2, 3}] * 2


async def test_another_subscription_keeps_the_positions_of_topics_that_stay(broker, topic_name, start, until):
    other = f"{topic_name}-other"
    make_topic(broker, topic_name, 2)
    make_topic(broker, other, 1)
    fill(broker, topic_name, [5, 5])
    consumer = await start(topic_name)
    await read_all(consumer, 10)
    told = Told()
    consumer.subscribe([topic_name, other], listener=told)
    await until(lambda: len(consumer.assignment()) == 3)
    kept = [partition for partition in consumer.assignment() if partition.topic == topic_name]
    assert [await consumer.position(partition) for partition in kept] == [5, 5]
    consumer.subscribe([other], listener=told)
    await until(lambda: {partition.topic for partition in consumer.assignment()} == {other})
    assert told.revoked == [{0, 1}]
    assert told.lost == []
