"""kafka-python: a `KafkaProducer` whose partitioner is a dispatcher."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from loadwise.assignor.clients.arguments import check_names
from loadwise.assignor.clients.kafka_python.version import TRIED
from loadwise.dispatcher.acknowledgements import Batch
from loadwise.dispatcher.clients.cluster_metadata import leader_of, leaders_of, partition_count
from loadwise.dispatcher.clients.errors import report_exception
from loadwise.dispatcher.dispatcher import Dispatcher, free_dispatcher
from loadwise.dispatcher.errors import BadDispatcherError
from loadwise.dispatcher.table import NO_LEADER
from loadwise.installation import pip_install

try:
    from kafka.partitioner import Partitioner
    from kafka.producer.producer_batch import FinalState
    from kafka.producer.record_accumulator import IncompleteProducerBatches

    from loadwise.dispatcher.clients.kafka_python_stock import KafkaProducer
except ImportError as error:
    raise ImportError(f"kafka-python is not installed; get it with: {pip_install('kafka-python')}") from error


def kafka_python_producer(*, dispatcher: Dispatcher | None = None, **config: Any) -> KafkaProducer:
    """Return a `kafka.KafkaProducer` that sends each batch to a broker that has room for it.

    ``config`` takes the arguments of `KafkaProducer` except ``partitioner``. Raises `BadDispatcherError` for a
    partitioner, and if the dispatcher already has a producer; `TypeError` for an unknown argument; and what
    `KafkaProducer` raises.
    """
    if "partitioner" in config:
        raise BadDispatcherError("the dispatcher is the partitioner; leave out partitioner=")
    check_names("kafka_python_producer", config, KafkaProducer.DEFAULT_CONFIG)
    if TRIED.includes_installed:
        from loadwise.assignor.clients.kafka_python import logins  # noqa: PLC0415 (other versions lack its base classes)

        config.setdefault("kafka_client", logins.client_that_tells)
        config.setdefault("bootstrap_timeout_ms", logins.BOOTSTRAP_TIMEOUT_MS)
    partitioner = KafkaPythonPartitioner(free_dispatcher(dispatcher))
    producer = KafkaProducer(partitioner=partitioner, **config)
    partitioner.follow(producer)
    return producer


class KafkaPythonPartitioner(Partitioner):
    """A partitioner for `KafkaProducer(partitioner=...)`; call `follow` with the producer afterwards."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._cluster: Any = None

    def follow(self, producer: KafkaProducer) -> None:
        """Watch the batches of this producer: their acknowledgements are what brokers are weighed by."""
        self._cluster = producer._metadata
        producer._accumulator._incomplete = _Batches(self._dispatcher, self._cluster)
        batch_bytes, linger_ms = producer.config["batch_size"], producer.config["linger_ms"]
        self._dispatcher.follow(self, batch_bytes=batch_bytes, linger_s=linger_ms / 1000)

    def partition(  # noqa: PLR0917 (kafka-python's)
        self,
        topic: str,
        key: object,  # noqa: ARG002
        serialized_key: bytes | None,
        value: object,  # noqa: ARG002
        serialized_value: bytes | None,
        cluster: Any,
    ) -> int:
        """kafka-python: return the partition for a record."""
        self._cluster = cluster
        size = 0 if serialized_value is None else len(serialized_value)
        partition = self._dispatcher.partition(topic, serialized_key, size)
        if partition == NO_LEADER:
            raise ValueError(f"Topic {topic} not found in ClusterMetadata")
        return partition

    def on_new_batch(self, topic: str, cluster: Any, prev_partition: int) -> None:  # noqa: ARG002 (kafka-python's)
        """kafka-python: a record without a key would begin a new batch."""
        self._dispatcher.on_new_batch(topic, prev_partition)

    def leaders(self, topic: str) -> Mapping[int, int]:
        """Return the leader of each partition."""
        return leaders_of(self._cluster, topic)

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions, 0 if the topic is unknown."""
        return partition_count(self._cluster, topic)


class _Batches(IncompleteProducerBatches):
    """The producer's batches that are not acknowledged yet: it adds each one once and removes it once."""

    def __init__(self, dispatcher: Dispatcher, cluster: Any) -> None:
        super().__init__()
        self._dispatcher = dispatcher
        self._cluster = cluster
        self._begun: dict[Any, Batch] = {}

    def add(self, batch: Any) -> None:
        """kafka-python: a batch was begun."""
        super().add(batch)
        topic, partition = batch.topic_partition
        begun = self._dispatcher.begun(leader_of(self._cluster, batch.topic_partition), topic, partition)
        with self._lock:
            self._begun[batch] = begun

    def remove(self, batch: Any) -> None:
        """kafka-python: a batch is done."""
        super().remove(batch)
        with self._lock:
            begun = self._begun.pop(batch, None)
        if begun is None:
            return
        if batch.final_state == FinalState.FAILED:
            _, _, exception_of_record = batch.produce_future.value
            report_exception(self._dispatcher, begun, exception_of_record(0))
        else:  # a batch that was split or aborted has no state of a broker's making
            took_s = time.monotonic() - batch.created if batch.final_state == FinalState.SUCCEEDED else None
            self._dispatcher.acknowledged(begun, took_s, batch.records.size_in_bytes())
