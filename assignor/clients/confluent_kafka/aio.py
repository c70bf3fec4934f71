"""confluent-kafka for asyncio: its ``AIOConsumer`` for a group that uses our strategies.

::

    from loadwise.assignor.clients.confluent_kafka.aio import aio_confluent_consumer

    consumer = aio_confluent_consumer({"bootstrap.servers": "localhost:9092", "group.id": "g"}, assignor="weighted")
    await consumer.subscribe(["flights"], on_assign=...)     # a coroutine function
    messages = await consumer.consume(500, timeout=1.0)

``AIOConsumer`` calls a ``Consumer`` on a thread pool and callbacks on the event loop, one call at a time. Here it calls
a `ConfluentConsumer`, whose documentation applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

from loadwise.assignor.clients.confluent_kafka.consumer import ConfluentConsumer, confluent_consumer
from loadwise.assignor.clients.confluent_kafka.version import INSTALLED
from loadwise.assignor.errors import MissingClientError

try:
    from confluent_kafka.aio import AIOConsumer
except ImportError as error:
    raise MissingClientError(
        f"confluent-kafka {INSTALLED} is installed, but its AIOConsumer came later: pip install -U confluent-kafka"
    ) from error

__all__ = ["AioConfluentConsumer", "aio_confluent_consumer"]


class AioConfluentConsumer(AIOConsumer):
    """An ``AIOConsumer`` for a group that uses our assignors; see `aio_confluent_consumer`."""

    def __init__(
        self, config: Mapping[str, Any], *, max_workers: int = 100, executor: Executor | None = None, **options: Any
    ) -> None:
        wrapped = dict(config)
        # The base class wraps the callbacks of its dict and makes a stock consumer, which joins nothing unless it
        # subscribes. That one is closed and replaced by ours.
        super().__init__(wrapped, max_workers=max_workers, executor=executor)
        self._consumer.close()
        self._consumer: ConfluentConsumer = confluent_consumer(wrapped, **options)

    @property
    def assignor(self) -> Any:
        """The member's assignor with its ``participant``. None before ``subscribe``."""
        return self._consumer.assignor


def aio_confluent_consumer(
    config: Mapping[str, Any], *, max_workers: int = 100, executor: Executor | None = None, **options: Any
) -> AioConfluentConsumer:
    """Make an ``AIOConsumer`` whose group uses our strategies; call it on a running event loop.

    ``max_workers`` and ``executor`` are ``AIOConsumer``'s; everything else is as for
    `loadwise.assignor.clients.confluent_kafka.confluent_consumer`, with coroutine functions as callbacks.
    """
    return AioConfluentConsumer(config, max_workers=max_workers, executor=executor, **options)
