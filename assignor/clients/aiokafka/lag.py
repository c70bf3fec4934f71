"""aiokafka: read a group's lag in a separate task with a separate client.

All requests are built here. aiokafka's consumers and admin clients request metadata of every topic they ever used, in
a way that creates missing topics, so a deleted topic would come back. The admin client also ignores an error of a whole
OffsetFetch and returns no commits.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any

from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.errors import for_code
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest, OffsetResetStrategy

from loadwise.assignor.load.lag import BEGINNINGS_S, HISTORY_S, FirstSince, LagLoad, PartitionOffsets, ends_before
from loadwise.assignor.load.switch import SwitchReader
from loadwise.protocol.live_switch import switch_group

log = logging.getLogger(__name__)

_TIMEOUT_S = 5.0
_CLIENT_OPTIONS = frozenset(inspect.signature(AIOKafkaClient).parameters)
_ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}
_OUTSIDE = -1
"""The generation and retention of a commit from outside a group."""
_CONSUMER = -1
"""The replica id of clients in ListOffsets."""


class AiokafkaLag(LagLoad):
    """A group's lag, read every ``interval_s`` between `start` and `close`; an unreachable broker is tolerated.

    ``config`` takes aiokafka's keyword arguments. It uses those of ``AIOKafkaClient``, and ``auto_offset_reset`` and
    ``isolation_level`` of the group's consumers.
    """

    def __init__(self, *topics: str, group_id: str, interval_s: float = 5.0, **config: Any) -> None:
        from_where = config.get("auto_offset_reset", "latest")
        super().__init__(topics, auto_offset_reset=from_where, interval_s=interval_s, group_id=group_id)
        self.failures = 0
        """The number of failed readings."""
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
        """Start reading in the running loop: ``at_once`` or on request."""
        if at_once:
            self._asked.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"loadwise-lag-{self._group_id}")

    def refresh(self) -> None:
        """Read at once; `wait` waits for that reading."""
        self._tried.clear()
        self._asked.set()
        self._changed.set()

    def set_interval(self, interval_s: float) -> None:
        """Set the time between two readings; infinite: read only on request."""
        super().set_interval(interval_s)
        self._changed.set()

    async def wait(self, timeout_s: float) -> bool:
        """Wait until everything that is watched now was read or failed; return whether there is a reading."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._tried.wait()
        return self._read is not None

    async def close(self) -> None:
        """Stop reading and wait for the task to end."""
        if self._task is not None:
            self._closing = True  # some libraries swallow a cancellation, as asyncio.wait_for did
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        failing = False
        await self._until_due(-math.inf)  # returns at once if there is an interval
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
                            break  # no reading is due for long: keep no connection open
                        await self._pause()
            except Exception as error:  # noqa: BLE001 (clients raise all sorts, and none of them may end the reading)
                self.failures += 1
                if not failing:
                    log.warning("The lag of group %s cannot be read (%r); retrying", self._group_id, error)
                failing = True
            await self._pause()

    async def _pause(self) -> None:
        if not self._asked.is_set():  # else more was requested since this reading began
            self._tried.set()
        await self._until_due(asyncio.get_running_loop().time())

    async def _until_due(self, since: float) -> None:
        """Wait for the interval to pass since a time of the loop's clock, or for a request to read."""
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
                log.debug("Arrivals of the last minute cannot be read: %r", error)
            else:
                self.prior_listener(ends_before(found, offsets, now_ms))
        if self.switch is not None and self.switch.due(time.monotonic()):
            await self._read_switch(client, self.switch)
        self.update(offsets)

    async def _connect(self, stack: AsyncExitStack) -> AIOKafkaClient:
        client = AIOKafkaClient(**self._config)
        stack.push_async_callback(_end, client)
        await client.bootstrap()
        await asyncio.sleep(0)  # lets its task start: a client that is closed before that leaks its connections
        return client

    async def _offsets(
        self, client: AIOKafkaClient, leaders: Mapping[TopicPartition, int]
    ) -> dict[tuple[str, int], PartitionOffsets]:
        if not leaders:
            return {}
        committed = await self._committed(client, self._group_id)
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
        """Return the leaders' ListOffsets answers, without partitions that have just moved or were deleted.

        Raises aiokafka's errors if a retry would not help.
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
        """Return the leader of each partition of the existing topics; asking creates no topic."""
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

    async def _read_switch(self, client: AIOKafkaClient, switch: SwitchReader) -> None:
        group = switch_group(self._group_id)
        try:
            renewed = switch.read(await self._committed(client, group), round(time.time() * 1000))
            if renewed is None:
                return
            (topic, number), offset, note = renewed
            node = await client.coordinator_lookup(CoordinationType.GROUP, group)
            commits = [(topic, [(number, offset, note.encode())])]
            answer = await client.send(node, OffsetCommitRequest(group, _OUTSIDE, "", _OUTSIDE, commits))
            for code in (code for _, of_topic in answer.topics for _, code in of_topic if code):
                raise for_code(code)(f"the note in group {group}")
        except Exception as error:  # noqa: BLE001 (clients raise all sorts, and the reading itself was good)
            switch.failed(error)

    async def _committed(self, client: AIOKafkaClient, group_id: str) -> dict[TopicPartition, tuple[int, str]]:
        """Return a group's committed offsets and their metadata.

        Raises aiokafka's errors: an error of the group does not mean that it has no commits.
        """
        node = await client.coordinator_lookup(CoordinationType.GROUP, group_id)
        answer = await client.send(node, OffsetFetchRequest(group_id, None))
        codes = [answer.error_code, *(code for _, of_topic in answer.topics for *_, code in of_topic)]
        for code in codes:
            if code:
                raise for_code(code)(f"offsets of group {group_id}")
        return {
            TopicPartition(topic, partition): (offset, metadata or "")
            for topic, of_topic in answer.topics
            for partition, offset, metadata, _ in of_topic
            if offset >= 0
        }


async def _end(client: AIOKafkaClient) -> None:
    """Close a client. If its task has not started yet, it raises a cancellation that is not ours."""
    try:
        await client.close()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
