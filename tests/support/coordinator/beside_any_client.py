"""``python beside_any_client.py``: write and read 100 records on our coordinator with the clients that are installed.

`.ci/extras` runs it with versions that the plug-ins do not serve: the coordinator needs no client.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from importlib.util import find_spec

from loadwise.coordinator import Coordinator

RECORDS = 100
WAIT_S = 60


def by_kafka_python(bootstrap_servers: str) -> int:
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap_servers)
    for _ in range(RECORDS):
        producer.send("t", b"x")
    producer.flush()
    producer.close()
    options = {"group_id": "kafka-python", "auto_offset_reset": "earliest", "consumer_timeout_ms": WAIT_S * 1000}
    consumer = KafkaConsumer("t", bootstrap_servers=bootstrap_servers, **options)
    count = sum(1 for _ in zip(range(RECORDS), consumer, strict=False))
    consumer.close()
    return count


def by_aiokafka(bootstrap_servers: str) -> int:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def write_and_read() -> int:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers) as producer:
            for _ in range(RECORDS):
                await producer.send_and_wait("t", b"x")
        options = {"group_id": "aiokafka", "auto_offset_reset": "earliest"}
        async with AIOKafkaConsumer("t", bootstrap_servers=bootstrap_servers, **options) as consumer:
            return len([await asyncio.wait_for(consumer.getone(), WAIT_S) for _ in range(RECORDS)])

    return asyncio.run(write_and_read())


def by_confluent_kafka(bootstrap_servers: str) -> int:
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for _ in range(RECORDS):
        producer.produce("t", b"x")
    producer.flush(WAIT_S)
    options = {"group.id": "confluent-kafka", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, **options})
    consumer.subscribe(["t"])
    count = len(consumer.consume(RECORDS, WAIT_S))
    consumer.close()
    return count


CLIENTS = {
    "kafka-python": ("kafka", by_kafka_python),
    "aiokafka": ("aiokafka", by_aiokafka),
    "confluent-kafka": ("confluent_kafka", by_confluent_kafka),
}


def main() -> None:
    """Run each client on a coordinator of its own; raises if one reads less."""
    for name, (module, write_and_read) in CLIENTS.items():
        if find_spec(module) is None:
            continue
        with Coordinator(topics={"t": 2}).in_thread() as coordinator:
            count = write_and_read(coordinator.bootstrap_servers)
        assert count == RECORDS, f"{name} {version(name)} read {count} of {RECORDS} records"
        print(f"{name} {version(name)}: {count} records")


if __name__ == "__main__":
    main()
