"""Moves leaders and coordinators between brokers, and stops and starts brokers.

Clients that wait at a former leader or coordinator get their answer at the cluster's next `receive` or `expire`.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadwise.coordinator.cluster.brokers import CONSUMER_OFFSETS, TRANSACTION_STATE, coordinator_partition
from loadwise.coordinator.cluster.replication import ReplicatedPartition
from loadwise.coordinator.kafka_cluster import Cluster


def move_leader(cluster: Cluster, topic: str, partition: int, to: int | None = None) -> None:
    """Make another replica the leader of a partition, with a new leader epoch.

    ``to`` None picks the next replica. Waiting fetches are answered at the next `receive` or `expire`. Raises
    `BadClusterError` if there is no such partition or replica.
    """
    moved = cluster.topics.move_leader(topic, partition, to)
    cluster.log_gone(moved.log)


def reassign(cluster: Cluster, partition: ReplicatedPartition, replicas: Sequence[int]) -> None:
    """Move a partition to other brokers, and answer the clients that wait for it."""
    cluster.topics.reassign(partition, replicas)
    cluster.log_gone(partition.log)


def move_coordinator(cluster: Cluster, group_id: str, to: int | None = None) -> None:
    """Make another broker the coordinator of a group and of its ``__consumer_offsets`` partition.

    As in Kafka, the new coordinator knows what the records contain: members and committed offsets stay, and a current
    rebalance starts again. Members that wait in one get NOT_COORDINATOR at the next `receive` or `expire`. ``to`` None
    picks the next broker. Raises `BadClusterError` if there is no such broker.
    """
    moved = cluster.brokers.move_coordinator(group_id, to)
    cluster.offsets_topic.lead(moved, cluster.brokers.coordinator_of(group_id).id)
    for each in list(cluster.groups.all()):
        if coordinator_partition(each) == moved:
            cluster.outbox += cluster.groups.reload(each, cluster.now_ms)


def drop_leader(cluster: Cluster, topic: str, partition: int) -> None:
    """Leave a partition without a leader, and answer the clients that wait for it.

    Raises `BadClusterError`.
    """
    cluster.log_gone(cluster.topics.drop_leader(topic, partition).log)


def set_isr(cluster: Cluster, topic: str, partition: int, brokers: Sequence[int]) -> None:
    """Set the in-sync replicas of a partition. Raises `BadClusterError`."""
    cluster.log_gone(cluster.topics.set_isr(topic, partition, brokers).log)


def stop_broker(cluster: Cluster, node_id: int) -> None:
    """Stop a broker; other brokers take over its partitions and groups where they can.

    Raises `BadClusterError` if there is no such broker, or it is stopped already.
    """
    moved = cluster.brokers.stop(node_id)
    offsets_partitions = {partition for topic, partition in moved if topic == CONSUMER_OFFSETS}
    for partition in offsets_partitions:
        cluster.offsets_topic.lead(partition, cluster.brokers.coordinators(CONSUMER_OFFSETS)[partition])
    for changed in cluster.topics.node_stopped(node_id):
        cluster.log_gone(changed.log)
    is_last = not cluster.brokers.running
    for each in list(cluster.groups.all()):
        if is_last or coordinator_partition(each) in offsets_partitions:
            cluster.outbox += cluster.groups.reload(each, cluster.now_ms)


def start_broker(cluster: Cluster, node_id: int) -> None:
    """Start a stopped broker. Raises `BadClusterError` if there is no such broker, or it runs already."""
    cluster.brokers.start(node_id)
    for changed in cluster.topics.node_started(node_id):
        cluster.log_gone(changed.log)


def move_transaction_coordinator(cluster: Cluster, transactional_id: str, to: int | None = None) -> None:
    """Make another broker the coordinator of a transactional id and of its partition.

    ``to`` None picks the next broker. Raises `BadClusterError` if there is no such broker.
    """
    cluster.brokers.move_coordinator(transactional_id, to, TRANSACTION_STATE)
