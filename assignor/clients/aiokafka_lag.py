"""aiokafka: reading a group's lag, in a task of its own with clients of its own."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Collection, Iterable
from contextlib import AsyncExitStack, suppress
from typing import Any

from loadwise.assignor.errors import MissingClientError
from loadwise.assignor.load.lag import LagLoad, PartitionOffsets
from loadwise.installation import pip_install

try:
    from aiokafka import AIOKafkaConsumer, TopicPartition
    from aiokafka.admin import AIOKafkaAdminClient
except ImportError as error:
    raise MissingClientError(f"aiokafka is not installed; get it with: {pip_install('aiokafka')}") from error

log = logging.getLogger(__name__)

_TIMEOUT_S = 5.0
_ADMIN_OPTIONS = frozenset(inspect.signature(AIOKafkaAdminClient).parameters)


class AiokafkaLag(LagLoad):
    """The lag of a group, read every ``interval_s`` between `start` and `close`; a broker out of reach is tolerated.

    ``config`` holds aiokafka's own keyword arguments, of which those of ``AIOKafkaAdminClient`` are used, and
    ``auto_offset_reset`` and ``isolation_level`` as the group's consumers have them.
    """

    def __init__(self, *topics: str, group_id: str, interval_s: float = 5.0, **config: Any) -> None:
        super().__init__(topics, auto_offset_reset=config.get("auto_offset_reset", "latest"), interval_s=interval_s)
        self.failures = 0
        """How many readings have failed."""
        self._group_id = group_id
        self._isolation_level = config.get("isolation_level", "read_uncommitted")
        self._config = {key: value for key, value in config.items() if key in _ADMIN_OPTIONS}
        self._asked = asyncio.Event()
        self._tried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read, in the running loop."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"loadwise-lag-{self._group_id}")

    def watch(self, topics: Iterable[str] = (), *, pattern: str | re.Pattern[str] | None = None) -> None:
        """Read these topics from now on as well, and at once; `wait` waits for that reading."""
        super().watch(topics, pattern=pattern)
        self._tried.clear()
        self._asked.set()

    async def wait(self, timeout_s: float) -> bool:
        """Wait until what is watched by now was read, or could not be; whether there is a reading."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._tried.wait(), timeout_s)
        return self._read is not None

    async def close(self) -> None:
        """Stop reading and wait for the task to end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        failing = False
        while True:
            self._asked.clear()
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(_TIMEOUT_S):
                        admin, consumer = await self._connect(stack)
                    while True:
                        async with asyncio.timeout(_TIMEOUT_S):
                            self._asked.clear()
                            topics = await self._topics_to_read(admin)
                            self.update(await self._offsets(admin, consumer, topics))
                        failing = False
                        await self._pause()
            except Exception as error:  # noqa: BLE001 (clients raise all sorts, and none of them may end the reading)
                self.failures += 1
                if not failing:
                    log.warning("The lag of group %s cannot be read (%r); trying on", self._group_id, error)
                failing = True
            await self._pause()

    async def _pause(self) -> None:
        if not self._asked.is_set():  # else there is more to read than what was asked for when this reading began
            self._tried.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._asked.wait(), self.interval_s)

    async def _topics_to_read(self, admin: AIOKafkaAdminClient) -> Collection[str]:
        if self.pattern is None:
            return self.topics
        return self.topics.union(filter(self.pattern.match, await admin.list_topics()))

    async def _connect(self, stack: AsyncExitStack) -> tuple[AIOKafkaAdminClient, AIOKafkaConsumer]:
        admin = AIOKafkaAdminClient(**self._config)
        stack.push_async_callback(admin.close)
        await admin.start()
        consumer = AIOKafkaConsumer(isolation_level=self._isolation_level, **self._config)  # of no group
        stack.push_async_callback(consumer.stop)
        await consumer.start()
        return admin, consumer

    async def _offsets(
        self, admin: AIOKafkaAdminClient, consumer: AIOKafkaConsumer, topics: Collection[str]
    ) -> dict[tuple[str, int], PartitionOffsets]:
        if not topics:
            return {}
        partitions = [
            TopicPartition(topic["topic"], partition["partition"])
            for topic in await admin.describe_topics(sorted(topics))
            for partition in topic["partitions"]
            if partition["leader"] >= 0
        ]
        if not partitions:
            return {}
        committed = await admin.list_consumer_group_offsets(self._group_id)
        beginning = await consumer.beginning_offsets(partitions)
        end = await consumer.end_offsets(partitions)
        return {
            partition: PartitionOffsets(
                beginning=beginning[partition],
                end=end[partition],
                committed=committed[partition].offset if partition in committed else None,
            )
            for partition in partitions
        }
