"""confluent-kafka: a `Producer` whose partitions a dispatcher chooses.

librdkafka calls no partitioner of Python's, so the partition is chosen before ``produce``. Keys are left to
librdkafka's own ``partitioner``, unless the dispatcher spreads those of the topic.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

from loadwise.assignor.load.background import Background
from loadwise.dispatcher.clients.errors import report
from loadwise.dispatcher.dispatcher import Dispatcher, free_dispatcher
from loadwise.dispatcher.errors import BadDispatcherError
from loadwise.dispatcher.keys import partition_by_crc32, partition_by_fnv1a, partition_of
from loadwise.dispatcher.spread_keys import PartitionOf
from loadwise.dispatcher.table import NO_LEADER
from loadwise.installation import pip_install

try:
    from confluent_kafka import KafkaError, KafkaException, Producer
    from confluent_kafka.admin import PartitionMetadata, TopicMetadata
except ImportError as error:
    raise ImportError(f"confluent-kafka is not installed; get it with: {pip_install('confluent-kafka')}") from error

OnDelivery = Callable[[Any, Any], None]

_TEXT = (bytes, str)

_produce = Producer.produce

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


class _Partitioner(NamedTuple):
    """What a value of librdkafka's ``partitioner`` means."""

    home: PartitionOf
    """Where a key goes; ``random`` sends it anywhere."""
    is_random: bool
    """Whether records without a key go anywhere, and not all to one partition."""
    empty_is_no_key: bool = False
    """Whether a record with an empty key has none."""


_PARTITIONERS = {
    "consistent": _Partitioner(partition_by_crc32, is_random=False),
    "consistent_random": _Partitioner(partition_by_crc32, is_random=True, empty_is_no_key=True),
    "fnv1a": _Partitioner(partition_by_fnv1a, is_random=False),
    "fnv1a_random": _Partitioner(partition_by_fnv1a, is_random=True),
    "murmur2": _Partitioner(partition_of, is_random=False),
    "murmur2_random": _Partitioner(partition_of, is_random=True),
    "random": _Partitioner(partition_of, is_random=True),
}
_DEFAULT_PARTITIONER = "consistent_random"


def confluent_producer(config: Mapping[str, Any], *, dispatcher: Dispatcher | None = None) -> ConfluentProducer:
    """Return a `confluent_kafka.Producer` that sends each batch to a broker that has room for it.

    ``config`` is that of `Producer`. Raises `BadDispatcherError` for ``partitioner_cb`` and
    ``delivery.report.only.error``, and if the dispatcher already has a producer.
    """
    return ConfluentProducer(free_dispatcher(dispatcher), config)


class ConfluentProducer(Producer):
    """A `confluent_kafka.Producer` with a dispatcher; `confluent_producer` makes it.

    The first record waits up to 5 seconds for metadata, except in an event loop. librdkafka chooses the partitions of
    keys and of ``produce_batch``, and of all records if its ``partitioner`` sends those without a key to one partition.
    """

    def __init__(self, dispatcher: Dispatcher, config: Mapping[str, Any]) -> None:
        given: object = config
        if not isinstance(given, Mapping):
            raise BadDispatcherError(f"config is {given!r}; it must be a mapping of librdkafka's settings")
        of_topics = config.get("default.topic.config") or {}  # librdkafka prefers what stands there
        if "partitioner_cb" in (settings := {**config, **of_topics}):
            raise BadDispatcherError(
                "partitioner_cb is for a function in C, and librdkafka calls none of Python's; leave it out, and give"
                " produce() a partition where the dispatcher must not choose one"
            )
        if str(config.get("delivery.report.only.error", False)).lower() == "true":
            raise BadDispatcherError(
                "delivery.report.only.error hides acknowledgements from the dispatcher; leave it out"
            )
        super().__init__({**config})
        self._partitioner = _PARTITIONERS[settings.get("partitioner", _DEFAULT_PARTITIONER)]
        self.dispatcher = dispatcher
        self._on_delivery: OnDelivery | None = config.get("on_delivery")
        self._batches: dict[str, _Batch] = {}
        self._topics: set[str] = set()
        self._waits = True
        self._metadata: Background[Mapping[str, TopicMetadata]] = Background(
            partial(_topics, weakref.ref(self)), interval_s=dispatcher.lease_s, name="metadata"
        )
        linger_ms = float(config.get("linger.ms", config.get("queue.buffering.max.ms", 5)))
        batch_bytes = int(config.get("batch.size", 1_000_000))
        turn_ms = float(config.get("sticky.partitioning.linger.ms", 2 * linger_ms))  # librdkafka's default
        client = cast("ConfluentProducer", weakref.proxy(self))  # `del` ends a producer only if it is in no cycle
        home = self._partitioner.home
        dispatcher.follow(client, batch_bytes=batch_bytes, linger_s=linger_ms / 1000, turn_s=turn_ms / 1000, home=home)

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
        told = on_delivery or callback or self._on_delivery
        if not _are_texts(topic, value or b"", key or b""):
            _produce(self, topic, value, key, partition, told, None, timestamp, headers)  # which says what is wrong
            return
        size = 0 if value is None else len(value)
        chosen = partition
        if partition == NO_LEADER:
            has_key = key is not None and (key or not self._partitioner.empty_is_no_key)
            if self.dispatcher.spreads(topic) if has_key else self._partitioner.is_random:
                if topic not in self._topics:
                    self._await_metadata(topic)
                spread = (key.encode() if isinstance(key, str) else key) if has_key else None
                chosen = self.dispatcher.partition(topic, spread, size)
        batch = self._batches.get(topic)
        try:
            if batch is not None and batch.partition == chosen and batch.waits:
                _produce(self, topic, value, key, chosen, told, None, timestamp, headers)
                batch.size += size
            else:
                self._begin_batch(topic, value, key, chosen, told, timestamp, headers)
        except KafkaException as error:
            if chosen == partition or error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                raise
            self._forget(topic)
            _produce(self, topic, value, key, NO_LEADER, told, None, timestamp, headers)

    def _begin_batch(  # noqa: PLR0917 (as `produce`)
        self,
        topic: str,
        value: str | bytes | None,
        key: str | bytes | None,
        partition: int,
        told: OnDelivery | None,
        timestamp: int,
        headers: Any,
    ) -> None:
        """Produce a record that begins a batch, if the leader of its partition is known."""
        if partition == NO_LEADER or (leader := self._leader(topic, partition)) == NO_LEADER:
            _produce(self, topic, value, key, partition, told, None, timestamp, headers)
            return
        size = 0 if value is None else len(value)
        batch = self._batches[topic] = _Batch(self.dispatcher, leader, topic, partition, size, told)
        try:
            _produce(self, topic, value, key, partition, batch.delivered, None, timestamp, headers)
        except BaseException:
            batch.take_back()
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

    def _forget(self, topic: str) -> None:
        """Leave a topic to librdkafka until there is metadata as new as librdkafka's: it has fewer partitions now."""
        self._metadata.newest = {name: found for name, found in (self._metadata.newest or {}).items() if name != topic}
        self.dispatcher.forget(topic)
        self._metadata.request()

    def _await_metadata(self, topic: str) -> None:
        """Wait until a topic is known, as other clients do; not in an event loop, and not again if it was in vain."""
        if self._partitions(topic) or not self._waits or _in_event_loop():
            return
        self._waits = self._metadata.wait(_FIRST_RECORD_S)

    def _leader(self, topic: str, partition: int) -> int:
        found = self._partitions(topic).get(partition)
        return NO_LEADER if found is None else int(found.leader)


class _Batch:
    """Records that are produced one after the other for one partition, until the first of them is delivered.

    librdkafka does not show its own batches. A callback for one record of them costs less than one for each.
    """

    def __init__(  # noqa: PLR0917 (each is one thing)
        self, dispatcher: Dispatcher, node: int, topic: str, partition: int, size: int, told: OnDelivery | None
    ) -> None:
        self.partition = partition
        self.size = size
        """Bytes of its records so far; threads that add at the same time may lose some."""
        self.waits = True
        """Whether the first record is not delivered yet."""
        self._dispatcher = dispatcher
        self._begun = dispatcher.begun(node, topic, partition)
        self._told = told

    def take_back(self) -> None:
        """The first record was refused at once."""
        self.waits = False
        self._dispatcher.acknowledged(self._begun, None, 0)

    def delivered(self, error: Any, message: Any) -> None:
        """librdkafka: the first record was delivered, or failed."""
        self.waits = False
        if error is None:
            self._dispatcher.acknowledged(self._begun, message.latency(), self.size)
        elif error.code() in _TAKEN_BACK:
            self._dispatcher.acknowledged(self._begun, None, 0)
        else:
            code = error.code()
            report(self._dispatcher, self._begun, None if code < -1 else code, network=code in _NETWORK)
        if self._told is not None:
            self._told(error, message)


def _topics(of: weakref.ref[ConfluentProducer]) -> Mapping[str, TopicMetadata]:
    """Return the metadata of all topics: to ask for a topic by name may create it, even if it was just deleted."""
    if (producer := of()) is None:
        return {}
    topics: Mapping[str, TopicMetadata] = producer.list_topics(timeout=_METADATA_TIMEOUT_S).topics
    return topics


def _are_texts(topic: object, value: object, key: object) -> bool:
    return isinstance(topic, str) and isinstance(value, _TEXT) and isinstance(key, _TEXT)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
