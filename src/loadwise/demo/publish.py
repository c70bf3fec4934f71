"""Publishing the stream, with confluent-kafka's producer: it takes 1.5 s where kafka-python's takes 13."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from loadwise.demo.errors import CheckFailedError, MissingPartError, StuckError
from loadwise.demo.flights import Record
from loadwise.installation import pip_install

_CHUNK = 1_000
_STALLED_S = 30.0


class LiveProducer:
    """Publishes records of a stream that goes on, by partition. Its values are empty of meaning: only counts matter."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        """Raises `MissingPartError` without confluent-kafka."""
        self._producer = _producer_class()({"bootstrap.servers": bootstrap_servers, "linger.ms": 5}, logger=None)
        self._topic = topic
        self.ends: list[int] = []
        """Records published so far, by partition."""

    def produce_up_to(self, ends: Sequence[int]) -> None:
        """Publish until each partition has its number of records."""
        self.ends = self.ends or [0] * len(ends)
        for partition, end in enumerate(ends):
            for _ in range(end - self.ends[partition]):
                self._producer.produce(self._topic, b"{}", partition=partition)
            self.ends[partition] = end
        self._producer.poll(0)

    def close(self) -> None:
        """Let the broker take the last records. Raises `StuckError` if it does not."""
        if left := self._producer.flush(_STALLED_S):
            raise StuckError(f"the broker did not take the last {left} records of {self._topic}")


def _producer_class() -> Any:
    try:
        from confluent_kafka import Producer
    except ImportError as error:
        raise MissingPartError(f"confluent-kafka is not installed; get it with: {pip_install('demo')}") from error
    return Producer


async def publish(
    bootstrap_servers: str, topic: str, records: Iterable[Record], progress: Callable[[int], None]
) -> int:
    """Publish records to the partitions that Java's partitioner gives their keys (murmur2). Answers how many.

    Calls ``progress`` with the number so far. Raises `CheckFailedError` when the broker refuses a record and
    `StuckError` when it takes none for half a minute.
    """
    producer_class = _producer_class()
    refused: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            refused.append(error)

    producer = producer_class(
        {
            "bootstrap.servers": bootstrap_servers,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "batch.size": 2**18,
            "delivery.report.only.error": True,
            "message.timeout.ms": int(_STALLED_S * 1000),
        },
        logger=None,
    )
    loop = asyncio.get_running_loop()
    published = 0
    for record in records:
        while True:
            try:
                producer.produce(topic, record.value, record.key, timestamp=record.timestamp_ms, on_delivery=delivered)
                break
            except BufferError:  # the local queue is full: let the broker catch up
                producer.poll(0.05)
        published += 1
        if published % _CHUNK == 0:
            producer.poll(0)
            progress(published)
            await asyncio.sleep(0)  # the screen, the children and Ctrl-C get their turn
    deadline_s = loop.time() + _STALLED_S
    while left := producer.flush(0):
        if loop.time() > deadline_s:
            raise StuckError(f"the broker at {bootstrap_servers} did not take the last {left} records of {topic}")
        await asyncio.sleep(0.02)
    if refused:
        raise CheckFailedError(f"the broker refused {len(refused)} records of {topic}, the first with: {refused[0]}")
    progress(published)
    return published
