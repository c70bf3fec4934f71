"""Delivery as real consumers have it, on both brokers: at most once, at least once, where a group begins."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any, Protocol, Self

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from aiokafka.errors import NoOffsetForPartitionError as AioNoOffsetError
from aiokafka.errors import OffsetOutOfRangeError as AioOutOfRangeError
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from kafka import KafkaConsumer, OffsetAndMetadata
from kafka import TopicPartition as KafkaPartition
from kafka.errors import KafkaError as KafkaPythonError
from kafka.errors import NoOffsetForPartitionError, OffsetOutOfRangeError
from polled import know
from topics import WAIT_S, fill, make_topic

SESSION_MS = 60_000
NUMBERS = count(1)


class NoOffsetError(Exception):
    """There is no offset to begin at, and the consumer was told not to choose one."""


class FencedError(Exception):
    """The consumer is no longer the one that has its group instance id."""


class Reader(Protocol):
    """A consumer of a topic with one partition; what is common to three clients."""

    def take(self, count: int) -> list[int]:
        """The offsets of the next records, as many as asked for."""

    def commit(self, offset: int | None = None) -> None:
        """Commit an offset, or what was taken."""

    def close(self) -> None:
        """Leave without a commit, as a crash does."""


class ConfluentReader:
    def __init__(self, servers: str, group: str, topic: str, reset: str, instance: str | None = None) -> None:
        config = {
            "bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False, "log_level": 0,
            "auto.offset.reset": {"none": "error"}.get(reset, reset), "session.timeout.ms": SESSION_MS,
        }  # fmt: skip
        self._topic = topic
        self._consumer = Consumer(config | ({} if instance is None else {"group.instance.id": instance}))
        self._consumer.subscribe([topic])

    def take(self, count: int) -> list[int]:
        offsets: list[int] = []
        deadline = time.monotonic() + WAIT_S
        while len(offsets) < count:
            assert time.monotonic() < deadline
            for message in self._consumer.consume(count - len(offsets), 0.2):
                error = message.error()
                if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
                    raise NoOffsetError
                assert error is None, error
                offsets.append(message.offset())
        return offsets

    def commit(self, offset: int | None = None) -> None:
        try:
            if offset is None:
                self._consumer.commit(asynchronous=False)
            else:
                self._consumer.commit(offsets=[TopicPartition(self._topic, 0, offset)], asynchronous=False)
        except KafkaException as problem:
            if problem.args[0].code() not in {KafkaError.FENCED_INSTANCE_ID, KafkaError._FATAL}:
                raise
            raise FencedError from problem

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonReader:
    def __init__(self, servers: str, group: str, topic: str, reset: str, instance: str | None = None) -> None:
        self._partition = KafkaPartition(topic, 0)
        self._consumer = KafkaConsumer(
            topic, bootstrap_servers=servers, group_id=group, auto_offset_reset=reset, enable_auto_commit=False,
            session_timeout_ms=SESSION_MS, group_instance_id=instance,
        )  # fmt: skip
        know(self._consumer)

    def take(self, count: int) -> list[int]:
        offsets: list[int] = []
        deadline = time.monotonic() + WAIT_S
        while len(offsets) < count:
            assert time.monotonic() < deadline
            try:
                polled = self._consumer.poll(5000, max_records=count - len(offsets))
            except (NoOffsetForPartitionError, OffsetOutOfRangeError) as problem:
                raise NoOffsetError from problem
            offsets += [record.offset for records in polled.values() for record in records]
        return offsets

    def commit(self, offset: int | None = None) -> None:
        try:
            self._consumer.commit(None if offset is None else {self._partition: OffsetAndMetadata(offset, "", -1)})
        except KafkaPythonError as problem:
            raise FencedError from problem

    def close(self) -> None:
        self._consumer.close(autocommit=False)


class AiokafkaReader:
    def __init__(self, servers: str, group: str, topic: str, reset: str, instance: str | None = None) -> None:
        self._partition = AioPartition(topic, 0)
        self._runner = asyncio.Runner()

        async def start() -> Any:
            consumer = AIOKafkaConsumer(
                topic, bootstrap_servers=servers, group_id=group, auto_offset_reset=reset, enable_auto_commit=False,
                session_timeout_ms=SESSION_MS, group_instance_id=instance,
            )  # fmt: skip
            await consumer.start()
            return consumer

        self._consumer = self._runner.run(start())

    def take(self, count: int) -> list[int]:
        async def take() -> list[int]:
            offsets: list[int] = []
            async with asyncio.timeout(WAIT_S):
                while len(offsets) < count:
                    polled = await self._consumer.getmany(timeout_ms=500, max_records=count - len(offsets))
                    offsets += [record.offset for records in polled.values() for record in records]
            return offsets

        try:
            return self._runner.run(take())
        except (AioNoOffsetError, AioOutOfRangeError) as problem:
            raise NoOffsetError from problem

    def commit(self, offset: int | None = None) -> None:
        self._runner.run(self._consumer.commit(None if offset is None else {self._partition: offset}))

    def close(self) -> None:
        self._runner.run(self._consumer.stop())
        self._runner.close()


READERS: dict[str, Callable[..., Reader]] = {
    "confluent-kafka": ConfluentReader, "kafka-python": KafkaPythonReader, "aiokafka": AiokafkaReader,
}  # fmt: skip


class Readers:
    """A topic with records 0 to 9, a group, and its consumers, which are closed in the end."""

    def __init__(self, servers: str, client: str, closing: ExitStack) -> None:
        name = f"delivery-{next(NUMBERS)}"
        self.servers, self.group, self.topic = servers, name, f"{name}-topic"
        self._read = READERS[client]
        self._closing = closing
        make_topic(servers, self.topic, 1)
        self.produce()

    def produce(self) -> None:
        fill(self.servers, self.topic, [10])

    def open(self, reset: str = "earliest", instance: str | None = None) -> Reader:
        reader = self._read(self.servers, self.group, self.topic, reset, instance)
        self._closing.callback(reader.close)
        return reader

    def crash(self) -> None:
        """Close what is open without a commit."""
        self._closing.close()

    @classmethod
    def of(cls, servers: str, client: str) -> Iterator[Self]:
        with ExitStack() as closing:
            yield cls(servers, client, closing)


@pytest.fixture(params=READERS)
def readers(request: pytest.FixtureRequest, broker: str) -> Iterator[Readers]:
    yield from Readers.of(broker, request.param)


@pytest.fixture(params=["confluent-kafka", "kafka-python"])
def static_readers(request: pytest.FixtureRequest, broker: str) -> Iterator[Readers]:
    """aiokafka does not say its instance id when it commits, so it cannot be fenced there."""
    yield from Readers.of(broker, request.param)


def test_who_commits_after_processing_processes_at_least_once(readers: Readers) -> None:
    reader = readers.open()
    processed = reader.take(4)
    reader.commit()
    processed += reader.take(3)
    readers.crash()  # before the commit
    processed += readers.open().take(6)
    assert processed == [0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 7, 8, 9]


def test_who_commits_before_processing_processes_at_most_once(readers: Readers) -> None:
    reader = readers.open()
    processed = reader.take(4)
    reader.commit()
    reader.take(3)
    reader.commit()
    readers.crash()  # before the processing
    processed += readers.open().take(3)
    assert processed == [0, 1, 2, 3, 7, 8, 9]


def test_a_group_without_offsets_begins_where_it_is_told(readers: Readers) -> None:
    assert readers.open("earliest").take(2) == [0, 1]
    readers.crash()
    with pytest.raises(NoOffsetError):
        readers.open("none").take(1)


def test_latest_begins_behind_what_is_there(readers: Readers) -> None:
    # Nobody says when the consumer has looked up where the end is: so records come until it has.
    taken = threading.Event()

    def produce() -> None:
        while not taken.wait(0.5):
            readers.produce()

    producing = threading.Thread(target=produce)
    producing.start()
    try:
        (first,) = readers.open("latest").take(1)
    finally:
        taken.set()
        producing.join()
    assert first >= 10


def test_a_committed_offset_that_does_not_exist_is_reset_as_told(readers: Readers) -> None:
    reader = readers.open()
    reader.take(1)
    reader.commit(99)
    readers.crash()
    with pytest.raises(NoOffsetError):
        readers.open("none").take(1)
    readers.crash()
    assert readers.open("earliest").take(1) == [0]


def test_a_commit_that_is_repeated_changes_nothing_and_an_older_one_goes_back(readers: Readers) -> None:
    reader = readers.open()
    reader.take(7)
    for _ in range(3):
        reader.commit(7)
    readers.crash()
    second = readers.open()
    assert second.take(1) == [7]
    second.commit(4)  # late: an older one, sent again
    readers.crash()
    assert readers.open().take(6) == [4, 5, 6, 7, 8, 9]


def test_a_commit_of_a_member_that_was_replaced_is_lost(static_readers: Readers) -> None:
    first = static_readers.open(instance="i")
    assert first.take(4) == [0, 1, 2, 3]
    second = static_readers.open(instance="i")
    assert second.take(2) == [0, 1], "nothing was committed"
    with pytest.raises(FencedError):
        first.commit()
    second.commit()
    static_readers.crash()
    assert static_readers.open(instance="i").take(1) == [2]
