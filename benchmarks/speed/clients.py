"""The Python clients' own assignors behind `benchmarks.speed.orders`.

``python -m benchmarks.speed.clients kafka-python``, or ``aiokafka``. Both are given what their own coordinators give
them, and their sticky ones what their own members would have sent.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from benchmarks.speed.cases import Size, leaver, partition_counts, subscriptions
from benchmarks.speed.orders import Call, Prepare, serve

_GENERATION = 1


def kafka_python(strategy: str, phase: str, size: Size) -> Mapping[str, Call]:
    """Prepare kafka-python's assignor of that name."""
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

    classes: dict[str, Any] = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }
    cluster = _Cluster(size)
    topics = subscriptions(phase, size)

    def joined(owned: Mapping[str, Any]) -> list[Any]:
        members = []
        for member in topics:
            plug = classes[strategy]()
            if member in owned:
                plug.on_assignment(owned[member], _GENERATION)
            said = plug.metadata(topics[member])
            metadata = ConsumerProtocolSubscription.decode(said.encode()) if owned else said
            members.append(SimpleNamespace(member_id=member, group_instance_id=None, metadata=metadata))
        return members

    members = joined({})
    if phase.endswith("leave"):
        owned = classes[strategy]().assign(cluster, members)
        del topics[leaver(size)]
        members = joined(owned)
    return {"names": lambda: classes[strategy]().assign(cluster, members)}


def aiokafka(strategy: str, phase: str, size: Size) -> Mapping[str, Call]:
    """Prepare aiokafka's assignor of that name."""
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    classes: dict[str, Any] = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }
    assignor = classes[strategy]
    cluster = _Cluster(size)
    topics = subscriptions(phase, size)
    members = {member: assignor.metadata(topics[member]) for member in topics}
    if phase.endswith("leave"):
        owned = assignor.assign(cluster, members)
        del topics[leaver(size)]
        members = {member: assignor.metadata(topics[member]) for member in topics}
        if strategy == "sticky":  # it keeps its state on the class: one consumer a process
            members = {
                member: assignor._metadata(topics[member], owned[member].partitions(), _GENERATION) for member in topics
            }
    return {"names": lambda: assignor.assign(cluster, members)}


class _Cluster:
    """What the assignors ask of a client's ``ClusterMetadata``."""

    def __init__(self, size: Size) -> None:
        self._partitions = {topic: set(range(count)) for topic, count in partition_counts(size).items()}

    def topics(self) -> set[str]:
        return set(self._partitions)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return self._partitions.get(topic)


CLIENTS: dict[str, Prepare] = {"kafka-python": kafka_python, "aiokafka": aiokafka}

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    serve(CLIENTS[sys.argv[1]])
