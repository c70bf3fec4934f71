"""aiokafka: reading a group's lag, in a task of its own with a client of its own.

All requests are sent here. aiokafka's consumers and admin clients ask for the metadata of every topic that they were
ever asked about, in a way that makes missing topics; a topic that was deleted would come back. The admin client also
takes the error of a whole OffsetFetch for a group that has committed nothing.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any

from loadwise.assignor.errors import MissingClientError
from loadwise.assignor.load.lag import BEGINNINGS_S, HISTORY_S, FirstSince, LagLoad, PartitionOffsets, ends_before
from loadwise.installation import pip_install

try:
    from aiokafka import TopicPartition
    from aiokafka.client import AIOKafkaClient, CoordinationType
    from aiokafka.errors import for_code
    from aiokafka.protocol.commit import OffsetFetchRequest
    from aiokafka.protocol.metadata import MetadataRequest
    from aiokafka.protocol.offset import OffsetRequest, OffsetResetStrategy
except ImportError as error:
    raise MissingClientError(f"aiokafka is not installed; get it with: {pip_install('aiokafka')}") from error

log = logging.getLogger(__name__)

_TIMEOUT_S = 5.0
_CLIENT_OPTIONS = frozenset(inspect.signature(AIOKafkaClient).parameters)
_ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}
_CONSUMER = -1
"""The replica id of clients in ListOffsets."""


class AiokafkaLag(LagLoad):
    """The lag of a group, read every ``interval_s`` between `start` and `close`; a broker out of reach is tolerated.

    ``config`` holds aiokafka's own keyword arguments, of which those of ``AIOKafkaClient`` are used, and
    ``auto_offset_reset`` and ``isolation_level`` as the group's consumers have them.
    """

    def __init__(self, *topics: str, group_id: str, interval_s: float = 5.0, **config: Any) -> None:
        super().__init__(topics, auto_offset_reset=config.get("auto_offset_reset", "latest"), interval_s=interval_s)
        self.failures = 0
        """How many readings have failed."""
        self._group_id = group_id
        self._isolation_level = _ISOLATION_LEVELS[config.get("isolation_level", "read_uncommitted")]
        self._config = {key: value for key, value in config.items() if key in _CLIENT_OPTIONS}
        self._asked = asyncio.Event()
        self._changed = asyncio.Event()
        self._began: dict[TopicPartition, int] = {}
        self._began_at = -math.inf
        self._tried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    def start(self, *, at_once: bool = True) -> None:
        """Begin to read, in the running loop: ``at_once``, or when it is asked for."""
        if at_once:
            self._asked.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"loadwise-lag-{self._group_id}")

    def watch(self, topics: Iterable[str] = (), *, pattern: str | re.Pattern[str] | None = None) -> None:
        """Read these topics from now on as well, and at once; `wait` waits for that reading."""
        super().watch(topics, pattern=pattern)
        self.refresh()

    def refresh(self) -> None:
        """Read at once; `wait` waits for that reading."""
        self._tried.clear()
        self._asked.set()
        self._changed.set()

    def set_interval(self, interval_s: float) -> None:
        """Read so often from now on; infinite: only when it is asked for."""
        super().set_interval(interval_s)
        self._changed.set()

    async def wait(self, timeout_s: float) -> bool:
        """Wait until what is watched by now was read, or could not be; whether there is a reading."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._tried.wait()
        return self._read is not None

    async def close(self) -> None:
        """Stop reading and wait for the task to end."""
        if self._task is not None:
            self._closing = True  # libraries may take a cancellation for the end of a wait, as asyncio.wait_for did
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        failing = False
        await self._until_due(-math.inf)  # at once, where there is an interval
        while not self._closing:
            self._asked.clear()
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(_TIMEOUT_S):
                        client = await self._connect(stack)
                    while not self._closing:
                        async with asyncio.timeout(_TIMEOUT_S):
                            self._asked.clear()
                            await self._read_once(client)
                        failing = False
                        if self.interval_s == math.inf:
                            break  # nothing is to be read for long: no connection is kept for it
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
        await self._until_due(asyncio.get_running_loop().time())

    async def _until_due(self, since: float) -> None:
        """Wait for the interval to pass from a time of the loop's clock, or until a reading is asked for."""
        loop = asyncio.get_running_loop()
        while not (self._asked.is_set() or self._closing):
            left_s = math.inf if self.interval_s == math.inf else since + self.interval_s - loop.time()
            if left_s <= 0:
                return
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if left_s == math.inf else left_s):
                    await self._changed.wait()

    async def _read_once(self, client: AIOKafkaClient) -> None:
        leaders = await self._leaders(client)
        offsets = await self._offsets(client, leaders)
        if offsets and self.lacks_history and self.prior_listener is not None:
            now_ms = round(time.time() * 1000)
            since_ms = now_ms - round(HISTORY_S * 1000)
            try:
                found = await self._list_offsets(client, leaders, since_ms)
            except Exception as error:  # noqa: BLE001 (it is only a first guess, which the next readings replace)
                log.debug("What arrived in the last minute cannot be read: %r", error)
            else:
                self.prior_listener(ends_before(found, offsets, now_ms))
        self.update(offsets)

    async def _connect(self, stack: AsyncExitStack) -> AIOKafkaClient:
        client = AIOKafkaClient(**self._config)
        stack.push_async_callback(_end, client)
        await client.bootstrap()
        await asyncio.sleep(0)  # its task begins: a client that is closed before that leaves its connections open
        return client

    async def _offsets(
        self, client: AIOKafkaClient, leaders: Mapping[TopicPartition, int]
    ) -> dict[tuple[str, int], PartitionOffsets]:
        if not leaders:
            return {}
        committed = await self._committed(client)
        now = time.monotonic()
        if now - self._began_at >= BEGINNINGS_S:
            self._began, self._began_at = {}, now
        asked = {partition: node for partition, node in leaders.items() if partition not in self._began}
        found = await self._list_offsets(client, asked, OffsetResetStrategy.EARLIEST)
        self._began |= {partition: at.offset for partition, at in found.items()}
        end = await self._list_offsets(client, leaders, OffsetResetStrategy.LATEST)
        return {
            partition: PartitionOffsets(self._began[partition], at.offset, *committed.get(partition, (None,)))
            for partition, at in end.items()
            if partition in self._began
        }

    async def _list_offsets(
        self, client: AIOKafkaClient, leaders: Mapping[TopicPartition, int], timestamp: int
    ) -> dict[TopicPartition, FirstSince]:
        """What the leaders of partitions answer to ListOffsets, without those that have just moved or gone.

        Raises aiokafka's errors where another try would not help.
        """
        asked: defaultdict[int, defaultdict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        for partition, node in leaders.items():
            asked[node][partition.topic].append((partition.partition, timestamp))
        requests = (
            client.send(node, OffsetRequest(_CONSUMER, self._isolation_level, list(topics.items())))
            for node, topics in asked.items()
        )
        found: dict[TopicPartition, FirstSince] = {}
        for answer in await asyncio.gather(*requests):
            for topic, partitions in answer.topics:
                for number, code, at, offset, *_ in partitions:
                    partition, error = TopicPartition(topic, number), for_code(code)
                    if not code:
                        found[partition] = FirstSince(offset, at)
                    elif not error.retriable:
                        raise error(f"offsets of {partition}")
        return found

    async def _leaders(self, client: AIOKafkaClient) -> dict[TopicPartition, int]:
        """Who leads the partitions of those topics that there are: none is made by asking."""
        if not (self.topics or self.pattern):
            return {}
        asked = None if self.pattern is not None else sorted(self.topics)
        request = MetadataRequest(asked, allow_auto_topic_creation=False)
        answer = (await client.send(client.get_random_node(), request)).to_object()
        return {
            TopicPartition(topic["topic"], partition["partition"]): partition["leader"]
            for topic in answer["topics"]
            if topic["topic"] in self.topics or (self.pattern is not None and self.pattern.match(topic["topic"]))
            for partition in topic["partitions"]
            if partition["leader"] >= 0
        }

    async def _committed(self, client: AIOKafkaClient) -> dict[TopicPartition, tuple[int, str]]:
        """The group's committed offsets and their metadata.

        Raises aiokafka's errors: an error of the group is no group without any.
        """
        node = await client.coordinator_lookup(CoordinationType.GROUP, self._group_id)
        answer = await client.send(node, OffsetFetchRequest(self._group_id, None))
        codes = [answer.error_code, *(code for _, of_topic in answer.topics for *_, code in of_topic)]
        for code in codes:
            if code:
                raise for_code(code)(f"offsets of group {self._group_id}")
        return {
            TopicPartition(topic, partition): (offset, metadata or "")
            for topic, of_topic in answer.topics
            for partition, offset, metadata, _ in of_topic
            if offset >= 0
        }


async def _end(client: AIOKafkaClient) -> None:
    """Close a client. Where its task has not begun yet, it answers with its cancellation, which is not ours."""
    try:
        await client.close()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
