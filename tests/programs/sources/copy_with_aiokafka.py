"""Copies a topic in a transaction that commits the offsets too, with aiokafka."""

import asyncio
import os

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

BROKER, NAME = os.environ["BROKER"], os.environ["NAME"]


async def main() -> None:
    async with AIOKafkaProducer(bootstrap_servers=BROKER) as producer:
        for number in range(100):
            await producer.send_and_wait(NAME, str(number).encode())
    consumer = AIOKafkaConsumer(
        NAME, bootstrap_servers=BROKER, group_id=NAME, auto_offset_reset="earliest", enable_auto_commit=False
    )
    async with consumer, AIOKafkaProducer(bootstrap_servers=BROKER, transactional_id=NAME) as producer:
        copied = 0
        while copied < 100:
            batches = await consumer.getmany(timeout_ms=1000)
            async with producer.transaction():
                for partition, records in batches.items():
                    for record in records:
                        await producer.send(f"{NAME}-copy", record.value)
                    await producer.send_offsets_to_transaction({partition: records[-1].offset + 1}, NAME)
                    copied += len(records)
    reader = AIOKafkaConsumer(
        f"{NAME}-copy", bootstrap_servers=BROKER, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    async with reader:
        read = [(await reader.getone()).value for _ in range(100)]
    print("copied", len(set(read)))


asyncio.run(main())
