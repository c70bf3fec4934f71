"""Not an API: how Produce and Fetch return the current leader of a partition (KIP-951)."""

from __future__ import annotations

from collections.abc import Iterable

from loadwise.coordinator.calls import Message
from loadwise.coordinator.cluster.replication import ReplicatedPartition
from loadwise.coordinator.kafka_cluster import Cluster


def current_leader(row: Message, partition: ReplicatedPartition) -> Message:
    """Return the leader and its epoch, as a ``LeaderIdAndEpoch`` of the response."""
    return row(leader_id=partition.leader, leader_epoch=partition.leader_epoch)


def node_endpoints(row: Message, cluster: Cluster, partitions: Iterable[ReplicatedPartition]) -> list[Message]:
    """Return the brokers that lead these partitions, as ``NodeEndpoint`` rows, each once."""
    leaders = sorted({partition.leader for partition in partitions})
    nodes = [node for node in map(cluster.brokers.node, leaders) if node is not None]
    return [row(node_id=node.id, host=node.host, port=node.port, rack=node.rack) for node in nodes]
