"""How Produce and Fetch return the current leader of a partition (KIP-951)."""

from __future__ import annotations

from collections.abc import Set
from typing import Protocol, TypeVar

from loadwise.coordinator.cluster.replication import ReplicatedPartition
from loadwise.coordinator.kafka_cluster import Cluster

R_co = TypeVar("R_co", covariant=True)


class _Leaders(Protocol[R_co]):
    def __call__(self, *, leader_id: int, leader_epoch: int) -> R_co: ...


class _Nodes(Protocol[R_co]):
    def __call__(self, *, node_id: int, host: str, port: int, rack: str | None) -> R_co: ...


def current_leader(row: _Leaders[R_co], partition: ReplicatedPartition) -> R_co:
    """Return the leader and its epoch, as a ``LeaderIdAndEpoch`` of the response."""
    return row(leader_id=partition.leader, leader_epoch=partition.leader_epoch)


def node_endpoints(row: _Nodes[R_co], cluster: Cluster, leaders: Set[int]) -> list[R_co]:
    """Return these brokers as ``NodeEndpoint`` rows."""
    nodes = [node for node in map(cluster.brokers.node, sorted(leaders)) if node is not None]
    return [row(node_id=node.id, host=node.host, port=node.port, rack=node.rack) for node in nodes]
