"""The leaders of partitions, from the metadata that kafka-python and aiokafka keep in a class of the same methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from loadwise.dispatcher.table import NO_LEADER


class _TopicPartition(NamedTuple):
    """What both clients read of a partition."""

    topic: str
    partition: int


def leader_of(cluster: Any, partition: Any) -> int:
    """Return the leader of a partition, `NO_LEADER` without one."""
    leader = cluster.leader_for_partition(partition)
    return NO_LEADER if leader is None else int(leader)


def leaders_of(cluster: Any, topic: str) -> Mapping[int, int]:
    """Return the leader of each partition of a topic."""
    partitions = cluster.partitions_for_topic(topic) or ()
    return {partition: leader_of(cluster, _TopicPartition(topic, partition)) for partition in partitions}


def partition_count(cluster: Any, topic: str) -> int:
    """Return the number of partitions, 0 if the topic is unknown."""
    return len(cluster._partitions.get(topic, ()))  # its method copies them for each record
