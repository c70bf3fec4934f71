"""aiokafka: an `AIOKafkaProducer` whose partitions a dispatcher chooses."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from loadwise.dispatcher.acknowledgements import Batch
from loadwise.dispatcher.clients.cluster_metadata import leader_of, leaders_of, partition_count
from loadwise.dispatcher.clients.errors import report_exception
from loadwise.dispatcher.dispatcher import Dispatcher, free_dispatcher
from loadwise.dispatcher.errors import BadDispatcherError
from loadwise.dispatcher.table import NO_LEADER
from loadwise.installation import pip_install

try:
    from loadwise.dispatcher.clients.aiokafka_stock import AIOKafkaProducer
except ImportError as error:
    raise ImportError(f"aiokafka is not installed; get it with: {pip_install('aiokafka')}") from error


def aiokafka_producer(*, dispatcher: Dispatcher | None = None, **config: Any) -> AiokafkaProducer:
    """Return an `aiokafka.AIOKafkaProducer` that sends each batch to a broker that has room for it.

    ``config`` takes the arguments of `AIOKafkaProducer` except ``partitioner``, which would receive neither topic nor
    size. Raises `BadDispatcherError` for a partitioner, and if the dispatcher already has a producer.
    """
    if "partitioner" in config:
        raise BadDispatcherError("the dispatcher is the partitioner; leave out partitioner=")
    return AiokafkaProducer(free_dispatcher(dispatcher), **config)


class AiokafkaProducer(AIOKafkaProducer):
    """An `AIOKafkaProducer` with a dispatcher; `aiokafka_producer` makes it."""

    def __init__(self, dispatcher: Dispatcher, **config: Any) -> None:
        super().__init__(**config)
        self.dispatcher = dispatcher
        self._begin_batch = self._message_accumulator._append_batch
        self._message_accumulator._append_batch = self._begun
        accumulator = self._message_accumulator
        dispatcher.follow(self, batch_bytes=accumulator._batch_size, linger_s=accumulator._linger_time)

    def _partition(  # noqa: PLR0917 (aiokafka's)
        self,
        topic: str,
        partition: int | None,
        key: object,
        value: object,
        serialized_key: bytes | None,
        serialized_value: bytes | None,
    ) -> int:
        """aiokafka: return the partition for a record."""
        if partition is not None:
            return int(super()._partition(topic, partition, key, value, serialized_key, serialized_value))
        size = 0 if serialized_value is None else len(serialized_value)
        found = self.dispatcher.partition(topic, serialized_key, size)
        if serialized_key is None and (topic, found) not in self._message_accumulator._batches:
            self.dispatcher.on_new_batch(topic, found)
            found = self.dispatcher.partition(topic, None, size)
        if found == NO_LEADER:
            return int(super()._partition(topic, partition, key, value, serialized_key, serialized_value))
        return found

    def leaders(self, topic: str) -> Mapping[int, int]:
        """Return the leader of each partition."""
        return leaders_of(self._metadata, topic)

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions, 0 if the topic is unknown."""
        return partition_count(self._metadata, topic)

    def _begun(self, builder: Any, partition: Any) -> Any:
        """aiokafka: begin a batch."""
        batch = self._begin_batch(builder, partition)
        begun = self.dispatcher.begun(leader_of(self._metadata, partition), partition.topic, partition.partition)
        batch.future.add_done_callback(partial(self._done, begun, batch, time.monotonic()))
        return batch

    def _done(self, begun: Batch, batch: Any, began_s: float, future: Any) -> None:
        if future.cancelled() or (error := future.exception()) is not None:
            report_exception(self.dispatcher, begun, None if future.cancelled() else error)
        else:
            self.dispatcher.acknowledged(begun, time.monotonic() - began_s, batch._builder.size())
