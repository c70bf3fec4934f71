"""The partition of a key for Kafka's producers: Java's default, and librdkafka's ``murmur2_random``."""

from __future__ import annotations

from aiokafka.partitioner import murmur2


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key (``BuiltInPartitioner.partitionForKey``)."""
    return int((murmur2(key) & 0x7FFFFFFF) % partitions)
