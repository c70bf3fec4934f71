"""confluent-kafka: a `Producer` whose partitions a dispatcher chooses.

librdkafka calls no partitioner of Python's, so the partition is chosen before ``produce``. Keys are left to its own
``murmur2_random``, unless the dispatcher spreads those of the topic.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from loadwise.dispatcher.acknowledgements import Batch
from loadwise.dispatcher.background import Background
from loadwise.dispatcher.clients.errors import report
from loadwise.dispatcher.dispatcher import Dispatcher, free_dispatcher
from loadwise.dispatcher.errors import BadDispatcherError
from loadwise.dispatcher.table import NO_LEADER
from loadwise.installation import pip_install

try:
    from confluent_kafka import KafkaError, Producer
    from confluent_kafka.admin import PartitionMetadata, TopicMetadata
except ImportError as error:
    raise ImportError(f"confluent-kafka is not installed; get it with: {pip_install('confluent-kafka')}") from error

OnDelivery = Callable[[Any, Any], None]

_METADATA_TIMEOUT_S = 10.0

_FIRST_RECORD_S = 5.0
"""How long the first record waits for metadata."""

_TAKEN_BACK = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
"""The codes of records that ``abort_transaction`` and ``purge`` drop."""
_NETWORK = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._MSG_TIMED_OUT,
    }
)
"""The codes of a broker that does not answer."""


def confluent_producer(config: Mapping[str, Any], *, dispatcher: Dispatcher | None = None) -> ConfluentProducer:
    """Return a `confluent_kafka.Producer` that sends each batch to the broker with room for it.

    ``config`` is that of `Producer` except ``partitioner``. Raises `BadDispatcherError` for another partitioner than
    ``murmur2_random``, for ``delivery.report.only.error``, and if the dispatcher serves another producer.
    """
    return ConfluentProducer(free_dispatcher(dispatcher), config)


class ConfluentProducer(Producer):
    """A `confluent_kafka.Producer` with a dispatcher; `confluent_producer` makes it.

    The first record waits up to 5 seconds for metadata, except in an event loop. The dispatcher chooses no partition in
    ``produce_batch``.
    """

    def __init__(self, dispatcher: Dispatcher, config: Mapping[str, Any]) -> None:
        if config.get("partitioner", "murmur2_random") != "murmur2_random":
            raise BadDispatcherError(f"partitioner is {config['partitioner']!r}; leave it out, the dispatcher chooses")
        if str(config.get("delivery.report.only.error", False)).lower() == "true":
            raise BadDispatcherError(
                "delivery.report.only.error hides acknowledgements from the dispatcher; leave it out"
            )
        super().__init__({**config, "partitioner": "murmur2_random"})
        self.dispatcher = dispatcher
        self._on_delivery: OnDelivery | None = config.get("on_delivery")
        self._batches: dict[str, _Batch] = {}
        self._produce = super().produce
        self._topics: set[str] = set()
        self._waits = True
        self._metadata: Background[Mapping[str, TopicMetadata]] = Background(
            partial(_topics, super().list_topics), interval_s=dispatcher.lease_s, name="metadata"
        )
        linger_ms = float(config.get("linger.ms", config.get("queue.buffering.max.ms", 5)))
        batch_bytes = int(config.get("batch.size", 1_000_000))
        dispatcher.follow(self, batch_bytes=batch_bytes, linger_s=linger_ms / 1000, turn_s=linger_ms / 1000)

    def produce(  # noqa: PLR0917 (confluent-kafka's)
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = NO_LEADER,
        callback: OnDelivery | None = None,
        on_delivery: OnDelivery | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """confluent-kafka: produce a record. Without a partition, the dispatcher chooses it."""
        size = 0 if value is None else len(value)
        if partition == NO_LEADER and (key is None or self.dispatcher.spreads(topic)):
            if topic not in self._topics:
                self._await_metadata(topic)
            partition = self.dispatcher.partition(topic, key.encode() if isinstance(key, str) else key, size)
        told = on_delivery or callback or self._on_delivery
        batch = None if partition == NO_LEADER else self._batch(topic, partition)
        if batch is None:
            self._produce(topic, value, key, partition, told, None, timestamp, headers)
            return
        batch.count(size)
        delivered = batch.delivered if told is None else partial(batch.delivered_to, told)
        try:
            self._produce(topic, value, key, partition, delivered, None, timestamp, headers)
        except BaseException:
            batch.take_back(size)
            raise

    def leaders(self, topic: str) -> Mapping[int, int]:
        """Return the leader of each partition; none before the first answer, when librdkafka chooses itself."""
        return {number: partition.leader for number, partition in self._partitions(topic).items()}

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions, 0 if the topic is unknown."""
        return len(self._partitions(topic))

    def _partitions(self, topic: str) -> Mapping[int, PartitionMetadata]:
        if topic not in self._topics:
            self._topics.add(topic)
            self._metadata.request()
        found = (self._metadata.newest or {}).get(topic)
        return {} if found is None or found.error is not None else found.partitions

    def _await_metadata(self, topic: str) -> None:
        """Wait until a topic is known, as other clients do; not in an event loop, and not again if it was in vain."""
        if self._partitions(topic) or not self._waits or _in_event_loop():
            return
        self._waits = self._metadata.wait(_FIRST_RECORD_S)

    def _batch(self, topic: str, partition: int) -> _Batch | None:
        """Return the batch that the next record of a partition belongs to; None if its leader is unknown."""
        batch = self._batches.get(topic)
        if batch is not None and batch.partition == partition and batch.waiting:
            return batch
        metadata = self._partitions(topic).get(partition)
        if metadata is None or metadata.leader == NO_LEADER:
            return None
        self._batches[topic] = batch = _Batch(self.dispatcher, metadata.leader, topic, partition)
        return batch


class _Batch:
    """Records that were produced one after the other for one partition, until all of them are delivered.

    librdkafka does not show its own batches. To count these costs less than to count each record.
    """

    def __init__(self, dispatcher: Dispatcher, node: int, topic: str, partition: int) -> None:
        self.partition = partition
        self.waiting = 0
        """Records that are not delivered yet."""
        self._dispatcher = dispatcher
        self._node = node
        self._topic = topic
        self._begun: Batch | None = None
        self._size = 0
        self._took_s: float | None = None
        self._error: KafkaError | None = None
        self._lock = threading.Lock()

    def count(self, size: int) -> None:
        """One record more."""
        with self._lock:
            if self._begun is None:
                self._begun = self._dispatcher.begun(self._node, self._topic, self.partition)
                self._size, self._took_s, self._error = 0, None, None
            self.waiting += 1
            self._size += size

    def take_back(self, size: int) -> None:
        """The last record was refused at once."""
        with self._lock:
            self.waiting -= 1
            self._size -= size
            if not self.waiting:
                self._ended(None)

    def delivered(self, error: Any, message: Any) -> None:
        """librdkafka: a record was delivered, or failed."""
        with self._lock:
            self.waiting -= 1
            if error is None:
                self._took_s = message.latency()
            elif error.code() not in _TAKEN_BACK:
                self._error = error
            if self.waiting:
                return
            self._ended(self._took_s)

    def delivered_to(self, told: OnDelivery, error: Any, message: Any) -> None:
        """librdkafka: the same, with the user's callback."""
        self.delivered(error, message)
        told(error, message)

    def _ended(self, took_s: float | None) -> None:
        """All records are delivered, have failed or were taken back."""
        begun, self._begun = self._begun, None
        if begun is None:
            return
        if self._error is None:
            self._dispatcher.acknowledged(begun, took_s, self._size)
        else:
            code = self._error.code()
            report(self._dispatcher, begun, None if code < -1 else code, network=code in _NETWORK)


def _topics(list_topics: Callable[..., Any]) -> Mapping[str, TopicMetadata]:
    """Return the metadata of all topics: to ask for a topic by name may create it, even if it was just deleted."""
    topics: Mapping[str, TopicMetadata] = list_topics(timeout=_METADATA_TIMEOUT_S).topics
    return topics


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
