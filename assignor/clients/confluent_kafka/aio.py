"""confluent-kafka for asyncio: its ``AIOConsumer`` for a group that uses our assignors.

::

    from loadwise import confluent_aio_consumer

    consumer = confluent_aio_consumer({"bootstrap.servers": "localhost:9092", "group.id": "g"}, assignor="weighted")
    await consumer.subscribe(["flights"], on_assign=...)     # a coroutine function
    messages = await consumer.consume(500, timeout=1.0)

``AIOConsumer`` calls a ``Consumer`` on a thread pool and callbacks on the event loop, one call at a time. Here it calls
a `ConfluentConsumer`, whose documentation applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, Unpack

from loadwise.assignor.clients.confluent_kafka.consumer import ConfluentConsumer, confluent_consumer
from loadwise.assignor.clients.confluent_kafka.version import INSTALLED
from loadwise.assignor.clients.factory import BalancedConsumer, Options
from loadwise.assignor.errors import MissingClientError

try:
    from confluent_kafka.aio import AIOConsumer
except ImportError as error:
    raise MissingClientError(
        f"confluent-kafka {INSTALLED} has no AIOConsumer; upgrade it: pip install -U confluent-kafka"
    ) from error


class ConfluentAioConsumer(BalancedConsumer, AIOConsumer):
    """An ``AIOConsumer`` for a group that uses our assignors: see `confluent_aio_consumer`."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        max_workers: int = 100,
        executor: Executor | None = None,
        **options: Unpack[Options],
    ) -> None:
        wrapped = dict(config)
        # The base class wraps the callbacks of its dict and makes a stock consumer, which joins nothing unless it
        # subscribes. That one is closed and replaced by ours.
        super().__init__(wrapped, max_workers=max_workers, executor=executor)
        self._consumer.close()
        self._consumer: ConfluentConsumer = confluent_consumer(wrapped, **options)
        self._plan = self._consumer._plan


def confluent_aio_consumer(
    config: Mapping[str, Any],
    *,
    max_workers: int = 100,
    executor: Executor | None = None,
    **options: Unpack[Options],
) -> ConfluentAioConsumer:
    """Return an ``AIOConsumer`` whose group uses one of loadwise's assignors; call it on a running event loop.

    ``max_workers`` and ``executor`` are arguments of ``AIOConsumer``. Everything else is the same as for
    `loadwise.confluent_consumer`, but callbacks are coroutine functions.
    """
    return ConfluentAioConsumer(config, max_workers=max_workers, executor=executor, **options)
