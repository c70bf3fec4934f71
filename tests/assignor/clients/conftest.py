"""Members of real groups: consumers of both clients behind one face, and waiting for what must happen."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from patience import LIMITS
from polled import know
from topics import WAIT_S

from loadwise.assignor.clients.aiokafka import consumer as aiokafka
from loadwise.assignor.clients.kafka_python import consumer as kafka_python

QUICK = {"heartbeat_interval_ms": 100, "session_timeout_ms": 30_000, "enable_auto_commit": False}
"""A member learns of a rebalance by its heartbeat; none is evicted because the machine is slow."""

Owned = set[tuple[str, int]]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer waits for its first reading of the lag however slow the machine is: no test sees it join without."""
    for place, limit in LIMITS.items():
        monkeypatch.setattr(place, limit)


async def eventually(condition: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        await asyncio.sleep(0.02)


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """``await until(condition)``."""
    return eventually


class KafkaPythonMember:
    """A ``KafkaConsumer`` that is polled on a thread of its own."""

    def __init__(self, consumer: Any, timeout_ms: int) -> None:
        self.consumer = consumer
        self._timeout_ms = timeout_ms
        self._stopping = threading.Event()
        self._polling = asyncio.create_task(asyncio.to_thread(self._poll))

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self.consumer.poll(timeout_ms=self._timeout_ms)

    def owned(self) -> Owned:
        return {tuple(partition) for partition in self.consumer.assignment()}

    async def stop(self) -> None:
        self._stopping.set()
        try:
            await self._polling
        finally:
            await asyncio.to_thread(self.consumer.close)


class AiokafkaMember:
    """A started ``AIOKafkaConsumer``."""

    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer

    def owned(self) -> Owned:
        return {tuple(partition) for partition in self.consumer.assignment()}

    async def stop(self) -> None:
        await self.consumer.stop()


class Group:
    """Joins members to one group and makes sure that all are gone at the end."""

    def __init__(self, bootstrap_servers: str, group_id: str) -> None:
        self.settings = {"bootstrap_servers": bootstrap_servers, "group_id": group_id, **QUICK}
        self.members: list[KafkaPythonMember | AiokafkaMember] = []

    async def join(self, client: str, *topics: str, **config: Any) -> Any:
        """Join with the factory of a client, ``kafka-python`` or ``aiokafka``."""
        if client == "kafka-python":
            return await self.poll(
                lambda: kafka_python.kafka_python_consumer(*topics, **{**self.settings, **config}), timeout_ms=100
            )
        return await self.run(aiokafka.aiokafka_consumer(*topics, **{**self.settings, **config}))

    async def poll(self, make: Callable[[], Any], timeout_ms: int = 1000) -> KafkaPythonMember:
        """Join with any consumer of kafka-python; ``polled`` says what its own one needs."""
        consumer = await asyncio.to_thread(make)
        await asyncio.to_thread(know, consumer)
        member = KafkaPythonMember(consumer, timeout_ms)
        self.members.append(member)
        return member

    async def run(self, consumer: Any) -> AiokafkaMember:
        """Join with any consumer of aiokafka."""
        member = AiokafkaMember(consumer)
        self.members.append(member)
        await asyncio.wait_for(consumer.start(), WAIT_S)
        return member

    async def leave(self, member: KafkaPythonMember | AiokafkaMember) -> None:
        self.members.remove(member)
        await member.stop()

    def shared(self) -> list[Owned] | None:
        """Who owns what, in the order of joining; None while a partition has two owners."""
        owned = [member.owned() for member in self.members]
        return owned if sum(map(len, owned)) == len(set().union(*owned)) else None

    async def settle(self, partitions: int, counts: list[int] | None = None) -> list[Owned]:
        """Wait until every partition is owned once, by so many each, or by some each where that is not given."""

        found: list[Owned] = []  # what it was when it held: a moment later another rebalance may have begun

        def settled() -> bool:
            owned = self.shared()
            if owned is None or sum(map(len, owned)) != partitions:
                return False
            found[:] = owned
            return all(owned) if counts is None else [len(each) for each in owned] == counts

        await eventually(settled)
        return found


@pytest.fixture
async def group(coordinator: Any, group_id: str) -> AsyncIterator[Group]:
    """A group with no members yet, on loadwise's own coordinator."""
    joined = Group(coordinator.bootstrap_servers, group_id)
    yield joined
    stops: list[Awaitable[None]] = [member.stop() for member in joined.members]
    for failure in await asyncio.gather(*stops, return_exceptions=True):
        if failure is not None:
            raise failure


@pytest.fixture
def topic(coordinator: Any, topic_name: str) -> str:
    """A topic with six partitions."""
    coordinator.create_topic(topic_name, 6)
    return topic_name
