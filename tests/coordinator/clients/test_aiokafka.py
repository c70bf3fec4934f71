"""aiokafka against the coordinator, in one loop with it."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from topics import WAIT_S, until_so

from loadwise.coordinator import Coordinator


def consumer(coordinator: Coordinator, **options: Any) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        "numbers",
        bootstrap_servers=coordinator.bootstrap_servers,
        group_id="group",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=100,
        session_timeout_ms=30_000,
        **options,
    )


async def produce(coordinator: Coordinator, count: int, **options: Any) -> None:
    async with AIOKafkaProducer(bootstrap_servers=coordinator.bootstrap_servers, **options) as producer:
        for number in range(count):
            await producer.send("numbers", b"%d" % number, partition=number % 4)


async def take(client: AIOKafkaConsumer, count: int) -> list[int]:
    values: list[int] = []
    async with asyncio.timeout(WAIT_S):
        while len(values) < count:
            for records in (await client.getmany(timeout_ms=500, max_records=count - len(values))).values():
                values += [int(record.value) for record in records]
    return values


async def test_a_group_resumes_where_it_committed() -> None:
    async with Coordinator(topics={"numbers": 4}) as coordinator:
        await produce(coordinator, 100, enable_idempotence=True, compression_type="gzip")
        async with consumer(coordinator) as first:
            read = await take(first, 60)
            await first.commit()
        async with consumer(coordinator) as second:
            rest = await take(second, 40)
        assert sorted(read + rest) == list(range(100))


async def test_members_share_and_take_over_when_one_leaves() -> None:
    async with Coordinator(topics={"numbers": 4}) as coordinator, consumer(coordinator) as stays:
        async with consumer(coordinator) as leaves:
            await until_so(lambda: (len(stays.assignment()), len(leaves.assignment())) == (2, 2))
        await until_so(lambda: len(stays.assignment()) == 4)
        await produce(coordinator, 8)
        assert sorted(await take(stays, 8)) == list(range(8))


async def test_an_administrator_makes_topics_and_reads_groups() -> None:
    async with Coordinator() as coordinator:
        admin = AIOKafkaAdminClient(bootstrap_servers=coordinator.bootstrap_servers)
        await admin.start()
        await admin.create_topics([NewTopic("numbers", 4, 1)])
        await produce(coordinator, 8)
        async with consumer(coordinator) as member:
            await take(member, 8)
            await member.commit()
        assert ("group", "consumer") in await admin.list_consumer_groups()
        offsets = await admin.list_consumer_group_offsets("group")
        assert {partition: offset.offset for partition, offset in offsets.items()} == {
            TopicPartition("numbers", number): 2 for number in range(4)
        }
        await admin.delete_topics(["numbers"])
        assert await admin.list_topics() == ["__consumer_offsets"]
        await admin.close()
