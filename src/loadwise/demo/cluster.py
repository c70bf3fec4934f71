"""The cluster that the demo runs against: our own coordinator, started for it, or a Kafka that is there already."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

from loadwise.demo.errors import CheckFailedError, MissingPartError, RefusedError, StuckError
from loadwise.demo.process import child
from loadwise.installation import pip_install

READY = "loadwise coordinator ready at "
_START_S = 30.0
_COMMIT_S = 10.0

Result = TypeVar("Result")

_CONNECT_MS = 10_000


class Cluster:
    """Bootstrap servers and a topic on them."""

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.topic = topic
        self.partitions = partitions
        self.groups: list[str] = []
        """The groups that have read the topic, to be deleted with it."""

    async def ends(self) -> tuple[int, ...]:
        """The end offset of every partition."""

        def look(admin: Any) -> tuple[int, ...]:
            from kafka import TopicPartition
            from kafka.admin import OffsetSpec

            partitions = [TopicPartition(self.topic, number) for number in range(self.partitions)]
            found = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
            return tuple(found[partition].offset for partition in partitions)

        return await self._ask(look)

    async def committed(self, group: str) -> tuple[int, ...]:
        """The offset that a group has committed on every partition, 0 where it has committed none."""

        def look(admin: Any) -> tuple[int, ...]:
            found = {partition.partition: at.offset for partition, at in admin.list_group_offsets(group)[group].items()}
            return tuple(max(0, found.get(number, 0)) for number in range(self.partitions))

        return await self._ask(look)

    async def await_committed(self, group: str, ends: Sequence[int]) -> None:
        """Wait until a group has committed every partition to its end. Raises `CheckFailedError` if it does not."""
        deadline_s = asyncio.get_running_loop().time() + _COMMIT_S
        while (committed := await self.committed(group)) != tuple(ends):
            if asyncio.get_running_loop().time() > deadline_s:
                behind = [
                    f"{self.topic}-{number} at {at} of {end}"
                    for number, (at, end) in enumerate(zip(committed, ends, strict=True))
                    if at != end
                ]
                raise CheckFailedError(f"group {group} processed everything but committed {', '.join(behind)}")
            await asyncio.sleep(0.1)

    async def create_topic(self) -> None:
        """Create the topic, on one replica."""
        from kafka.admin import NewTopic

        # The flights left in 2013: with Kafka's usual retention of a week they would be gone within minutes.
        topic = NewTopic(self.topic, self.partitions, 1, topic_configs={"retention.ms": "-1"})
        await self._ask(lambda admin: admin.create_topics([topic]))

    async def keep_records(self) -> None:
        """Let records stay however old they are. The flights left in 2013, and topics keep a week by default."""
        from kafka.admin import ConfigResource

        forever = ConfigResource("TOPIC", self.topic, {"retention.ms": "-1"})
        await self._ask(lambda admin: admin.alter_configs([forever]))

    async def delete(self) -> None:
        """Delete the topic and the groups that read it. Their members must have left."""

        def remove(admin: Any) -> None:
            admin.delete_groups(self.groups)
            admin.delete_topics([self.topic])

        await self._ask(remove)

    async def _ask(self, question: Callable[[Any], Result]) -> Result:
        """Put a question to kafka-python's admin client, which blocks: in a thread."""
        try:
            from kafka import KafkaAdminClient
            from kafka.errors import BrokerResponseError, KafkaTimeoutError
        except ImportError as error:
            raise MissingPartError(f"kafka-python is not installed; get it with: {pip_install('demo')}") from error

        def ask() -> Result:
            try:
                admin = KafkaAdminClient(
                    bootstrap_servers=self.bootstrap_servers,
                    client_id="loadwise-demo",
                    bootstrap_timeout_ms=_CONNECT_MS,
                )
            except KafkaTimeoutError:
                raise StuckError(f"no Kafka answers at {self.bootstrap_servers}; is the address right?") from None
            try:
                return question(admin)
            except BrokerResponseError as error:
                raise RefusedError(
                    f"the broker at {self.bootstrap_servers} refuses the request: {error.message}: {error.description}"
                ) from error
            finally:
                admin.close()

        return await asyncio.to_thread(ask)


@contextlib.asynccontextmanager
async def own_coordinator(topic: str, partitions: int) -> AsyncIterator[Cluster]:
    """Run loadwise's coordinator as a process of its own on a free port of loopback."""
    arguments = ("loadwise", "coordinator", "--listen", "127.0.0.1:0", "--topic", f"{topic}:{partitions}")
    async with child("the coordinator", "loadwise.demo.lifeline", *arguments) as process:
        try:
            async with asyncio.timeout(_START_S):
                async for line in process.lines():
                    if line.startswith(READY):
                        address = line.removeprefix(READY).strip()
                        break
                else:
                    raise await process.died()
        except TimeoutError:
            raise StuckError(f"the coordinator was not ready after {_START_S:.0f} s") from None
        cluster = Cluster(address, topic, partitions)
        await cluster.keep_records()
        yield cluster


@contextlib.asynccontextmanager
async def existing_kafka(bootstrap_servers: str, topic: str, partitions: int) -> AsyncIterator[Cluster]:
    """Create the topic on a Kafka that runs already, and delete it with its groups at the end."""
    cluster = Cluster(bootstrap_servers, topic, partitions)
    await cluster.create_topic()
    try:
        yield cluster
    finally:
        await cluster.delete()
