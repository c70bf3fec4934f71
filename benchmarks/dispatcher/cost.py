"""What choosing a partition costs for each record: ``python -m benchmarks.dispatcher.cost``.

The CPU time of a call, the least of five repetitions, with the metadata of 90 partitions, in each client's own way and
in ours. Keys are new in each call.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.dispatcher.cluster import LEADS, TOPIC

_CALLS = 20_000
_KEY_BYTES = (8, 16, 36)


class _Metadata:
    """A client's metadata of 90 partitions, at its own price."""

    def __init__(self) -> None:
        leaders = [broker for broker, count in LEADS.items() for _ in range(count)]
        self._partitions = {TOPIC: dict(enumerate(leaders))}

    def topics(self) -> set[str]:
        return set(self._partitions)

    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(self._partitions[topic])

    def available_partitions_for_topic(self, topic: str) -> set[int]:
        return {partition for partition, leader in self._partitions[topic].items() if leader != -1}

    def leader_for_partition(self, partition: Any) -> int:
        return self._partitions[partition.topic][partition.partition]


_METADATA = _Metadata()
_VALUE = bytes(500)


class _Accumulator:
    """aiokafka's, while a batch of each partition is open."""

    def __init__(self) -> None:
        self._batches = {(TOPIC, number): True for number in range(sum(LEADS.values()))}


def main() -> None:
    """Print the cost without a key and with keys of several lengths."""
    from aiokafka import AIOKafkaProducer
    from aiokafka.partitioner import DefaultPartitioner as AiokafkasPartitioner
    from kafka.partitioner import DefaultPartitioner

    from loadwise import AiokafkaProducer, Dispatcher
    from loadwise.dispatcher.clients.kafka_python import KafkaPythonPartitioner

    def producer(kind: Any) -> Any:
        made = kind.__new__(kind)
        made._metadata, made._closed, made._partitioner = _Metadata(), True, AiokafkasPartitioner()
        return made

    ours = producer(AiokafkaProducer)
    ours._message_accumulator, ours.dispatcher = _Accumulator(), Dispatcher()
    ours.dispatcher.follow(ours)
    dispatcher = Dispatcher()
    partitioner = KafkaPythonPartitioner(dispatcher)
    partitioner._cluster = _METADATA
    dispatcher.follow(partitioner)
    for key_bytes in (None, *_KEY_BYTES):
        keys = [None if key_bytes is None else b"%0*d" % (key_bytes, number) for number in range(_CALLS)]
        calls = {
            "kafka-python": [partial(_kafka_python, each) for each in (DefaultPartitioner(), partitioner)],
            "aiokafka": [partial(_aiokafka, each) for each in (producer(AIOKafkaProducer), ours)],
        }
        for client, (own, our) in calls.items():
            name = "no key" if key_bytes is None else f"keys of {key_bytes} bytes"
            print(f"{client}, {name}: own {_cost_us(own, keys):.2f} µs a record, ours {_cost_us(our, keys):.2f} µs")


def _kafka_python(partitioner: Any, key: bytes | None) -> object:
    return partitioner.partition(TOPIC, key, key, _VALUE, _VALUE, _METADATA)


def _aiokafka(producer: Any, key: bytes | None) -> object:
    return producer._partition(TOPIC, None, key, _VALUE, key, _VALUE)


def _cost_us(call: Callable[[bytes | None], object], keys: list[bytes | None]) -> float:
    def run() -> None:
        for key in keys:
            call(key)

    return min(timeit.repeat(run, number=1, repeat=5, timer=time.process_time)) / len(keys) * 1e6


if __name__ == "__main__":
    main()
