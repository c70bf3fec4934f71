"""confluent-kafka: a `Producer` whose partitions a dispatcher chooses.

librdkafka calls no partitioner of Python's, so the partition is chosen before ``produce``. Keys are left to its own
``murmur2_random``, unless the dispatcher spreads those of the topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from loadwise.dispatcher.background import Background
from loadwise.dispatcher.dispatcher import Dispatcher
from loadwise.dispatcher.errors import BadDispatcherError
from loadwise.dispatcher.table import NO_LEADER
from loadwise.installation import pip_install

try:
    from confluent_kafka import KafkaException, Producer
except ImportError as error:
    raise ImportError(f"confluent-kafka is not installed: {pip_install('confluent-kafka')}") from error

OnDelivery = Callable[[Any, Any], None]

_METADATA_TIMEOUT_S = 10.0


def confluent_producer(config: Mapping[str, Any], *, dispatcher: Dispatcher | None = None) -> ConfluentProducer:
    """Return a `confluent_kafka.Producer` that sends each batch to the broker with room for it.

    ``config`` is that of `Producer` except ``partitioner``. Raises `BadDispatcherError` for another partitioner than
    ``murmur2_random``, and if the dispatcher serves another producer.
    """
    return ConfluentProducer(dispatcher or Dispatcher(), config)


class ConfluentProducer(Producer):
    """A `confluent_kafka.Producer` with a dispatcher; `confluent_producer` makes it."""

    def __init__(self, dispatcher: Dispatcher, config: Mapping[str, Any]) -> None:
        if config.get("partitioner", "murmur2_random") != "murmur2_random":
            raise BadDispatcherError(f"partitioner is {config['partitioner']!r}; leave it out, the dispatcher chooses")
        super().__init__({**config, "partitioner": "murmur2_random"})
        self.dispatcher = dispatcher
        self._topics: set[str] = set()
        self._metadata: Background[dict[str, dict[int, int]]] = Background(
            partial(_leaders, super().list_topics, self._topics), interval_s=dispatcher.lease_s, name="metadata"
        )
        linger_ms = float(config.get("linger.ms", config.get("queue.buffering.max.ms", 5)))
        dispatcher.follow(self, batch_bytes=int(config.get("batch.size", 1_000_000)), linger_s=linger_ms / 1000)

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
            partition = self.dispatcher.partition(topic, key.encode() if isinstance(key, str) else key, size)
        node = NO_LEADER if partition == NO_LEADER else self.leaders(topic).get(partition, NO_LEADER)
        told = on_delivery or callback
        if node != NO_LEADER:
            told = partial(self._delivered, node, size, told)
            self.dispatcher.sent(node)
        try:
            super().produce(topic, value, key, partition, on_delivery=told, timestamp=timestamp, headers=headers)
        except BaseException:
            if node != NO_LEADER:
                self.dispatcher.acknowledged(node, None, size)
            raise

    def leaders(self, topic: str) -> Mapping[int, int]:
        """Return the leader of each partition; none before the first answer, when librdkafka chooses itself."""
        if topic not in self._topics:
            self._topics.add(topic)
            self._metadata.request()
        return (self._metadata.newest or {}).get(topic, {})

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions, 0 if the topic is unknown."""
        return len(self.leaders(topic))

    def _delivered(self, node: int, size: int, told: OnDelivery | None, error: Any, message: Any) -> None:
        if error is None:
            self.dispatcher.acknowledged(node, message.latency(), size)
        else:
            self.dispatcher.failed(node)
        if told is not None:
            told(error, message)


def _leaders(list_topics: Callable[..., Any], topics: set[str]) -> dict[str, dict[int, int]]:
    found = {}
    for topic in list(topics):
        metadata = list_topics(topic, timeout=_METADATA_TIMEOUT_S).topics[topic]
        if metadata.error is not None:
            raise KafkaException(metadata.error)
        found[topic] = {number: partition.leader for number, partition in metadata.partitions.items()}
    return found
