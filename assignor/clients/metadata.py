"""A client's cluster metadata for the leader; kafka-python's and aiokafka's differ in one name only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any


class ClientMetadata:
    """The `loadwise.assignor.participant.ClusterView` over a client's ``ClusterMetadata``.

    ``replicas`` is the field with the broker ids of a partition's replicas in the client's own record.
    """

    def __init__(self, cluster: Any, replicas: str) -> None:
        self._cluster = cluster
        self._replicas = attrgetter(replicas)

    def partition_count(self, topic: str) -> int | None:
        """Return the topic's number of partitions; None without metadata."""
        partitions = self._cluster.partitions_for_topic(topic)
        return None if partitions is None else len(partitions)

    def replica_racks(self, topic: str) -> Sequence[Sequence[str]]:
        """Return the racks of each partition's replicas; empty if the brokers have no racks."""
        # There is no public way to read the replicas.
        partitions: Mapping[int, Any] = self._cluster._partitions.get(topic, {})
        racks = [
            [
                broker.rack
                for node in self._replicas(partitions[number])
                if (broker := self._cluster.broker_metadata(node)) is not None and broker.rack
            ]
            for number in sorted(partitions)
        ]
        return racks if any(racks) else []
