"""A member with each client: what it has read, what its listener was told, and what it owns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import aiokafka
import kafka
from confluent_kafka import TopicPartition

from loadwise import aiokafka_consumer, confluent_consumer, kafka_python_consumer

SETTINGS = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, "session_timeout_ms": 30_000}


class Reader:
    """A consumer with what it has read, and what its listener was told."""

    consumer: Any

    def __init__(self) -> None:
        self.read: list[tuple[int, int]] = []
        self.told: list[tuple[str, frozenset[int]]] = []

    def note(self, name: str, partitions: Any) -> None:
        if partitions:
            self.told.append((name, frozenset(each.partition for each in partitions)))

    def owned(self) -> frozenset[int]:
        return frozenset(each.partition for each in self.consumer.assignment())

    def topics(self) -> set[str]:
        return {each.topic for each in self.consumer.assignment()}


class _Listener(kafka.ConsumerRebalanceListener, aiokafka.ConsumerRebalanceListener):
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._reader.note("assigned", assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._reader.note("revoked", revoked)

    def on_partitions_lost(self, lost: Any) -> None:
        self._reader.note("lost", lost)


class _PythonReader(Reader):
    """With kafka-python or aiokafka, whose consumers subscribe alike."""

    def subscribe(self, topics: Sequence[str], pattern: str | None = None) -> None:
        self.consumer.subscribe(() if pattern else topics, pattern=pattern, listener=_Listener(self))


class KafkaPythonReader(_PythonReader):
    async def start(self, broker: str, group_id: str, **config: Any) -> None:
        options = {"bootstrap_servers": broker, "group_id": group_id, **SETTINGS, **config}
        self.consumer = await asyncio.to_thread(lambda: kafka_python_consumer(**options))

    async def poll(self) -> None:
        polled = await asyncio.to_thread(self.consumer.poll, timeout_ms=50)
        self.read += [(each.partition, each.offset) for records in polled.values() for each in records]

    async def commit(self) -> None:
        await asyncio.to_thread(self.consumer.commit)

    def member_id(self) -> str:
        return str(self.consumer._coordinator._generation.member_id)

    async def stop(self) -> None:
        await asyncio.to_thread(self.consumer.close, autocommit=False)


class AiokafkaReader(_PythonReader):
    async def start(self, broker: str, group_id: str, **config: Any) -> None:
        options = {"bootstrap_servers": broker, "group_id": group_id, **SETTINGS, **config}
        self.consumer = aiokafka_consumer(**options)
        await self.consumer.start()

    async def poll(self) -> None:
        polled = await self.consumer.getmany(timeout_ms=50)
        self.read += [(each.partition, each.offset) for records in polled.values() for each in records]

    async def commit(self) -> None:
        await self.consumer.commit()

    def member_id(self) -> str:
        return str(self.consumer._coordinator.member_id)

    async def stop(self) -> None:
        await self.consumer.stop()


class ConfluentReader(Reader):
    async def start(self, broker: str, group_id: str, **config: Any) -> None:
        options = {"bootstrap_servers": broker, "group_id": group_id, **SETTINGS, **config}
        ours = {name: options.pop(name) for name in ("assignor", "lag_interval_s") if name in options}
        given = {name.replace("_", "."): value for name, value in options.items()}
        self.consumer = confluent_consumer(given | {"log_level": 0}, **ours)

    def subscribe(self, topics: Sequence[str], pattern: str | None = None) -> None:
        self.consumer.subscribe(
            [f"^{pattern}"] if pattern else topics,
            on_assign=lambda _, partitions: self.note("assigned", partitions),
            on_revoke=lambda _, partitions: self.note("revoked", partitions),
            on_lost=lambda _, partitions: self.note("lost", partitions),
        )

    async def poll(self) -> None:
        polled = await asyncio.to_thread(self.consumer.consume, 100, 0.05)
        assert not any(each.error() for each in polled)
        self.read += [(each.partition(), each.offset()) for each in polled]

    async def commit(self) -> None:
        positions = self.consumer.position(self.consumer.assignment())
        offsets = [TopicPartition(each.topic, each.partition, each.offset) for each in positions]
        await asyncio.to_thread(self.consumer.commit, offsets=offsets, asynchronous=False)

    def member_id(self) -> str:
        return str(self.consumer._member._coordinator._generation.member_id)

    async def stop(self) -> None:
        await asyncio.to_thread(self.consumer.close)


READERS = {"kafka-python": KafkaPythonReader, "aiokafka": AiokafkaReader, "confluent-kafka": ConfluentReader}
