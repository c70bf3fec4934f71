"""Which broker leads and coordinates what, as a test or an administrator changes it. Brokers stop and start here.

Clients that wait for something that is led elsewhere now are told by the cluster's next `receive` or `expire`.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadwise.coordinator.cluster.brokers import CONSUMER_OFFSETS, TRANSACTION_STATE, coordinator_partition
from loadwise.coordinator.cluster.replication import ReplicatedPartition
from loadwise.coordinator.kafka_cluster import Cluster


def move_leader(cluster: Cluster, topic: str, partition: int, to: int | None = None) -> None:
    """Let another replica lead a partition, in a new leader epoch; ``to`` None is the next one.

    Fetches that wait for it are answered by the next `receive` or `expire`. Raises `BadClusterError` if there is no
    such partition or replica.
    """
    moved = cluster.topics.move_leader(topic, partition, to)
    cluster.log_gone(moved.log)


def reassign(cluster: Cluster, partition: ReplicatedPartition, replicas: Sequence[int]) -> None:
    """Put a partition on other brokers; clients that wait for it are told."""
    cluster.topics.reassign(partition, replicas)
    cluster.log_gone(partition.log)


def move_coordinator(cluster: Cluster, group_id: str, to: int | None = None) -> None:
    """Let another broker coordinate a group, and those that share its partition of ``__consumer_offsets``.

    As in Kafka the new one knows what is in the records: members and committed offsets stay, and a rebalance that
    was under way begins again. Who waits in one hears NOT_COORDINATOR by the next `receive` or `expire`. ``to``
    None is the next broker. Raises `BadClusterError` if there is no such broker.
    """
    moved = cluster.brokers.move_coordinator(group_id, to)
    cluster.offsets_topic.lead(moved, cluster.brokers.coordinator_of(group_id).id)
    for each in list(cluster.groups.all()):
        if coordinator_partition(each) == moved:
            cluster.pass_on(cluster.groups.reload(each, cluster.now_ms))


def drop_leader(cluster: Cluster, topic: str, partition: int) -> None:
    """Let nobody lead a partition; clients that wait for it are told. Raises `BadClusterError`."""
    cluster.log_gone(cluster.topics.drop_leader(topic, partition).log)


def set_isr(cluster: Cluster, topic: str, partition: int, brokers: Sequence[int]) -> None:
    """Let these replicas of a partition be in sync, and no others. Raises `BadClusterError`."""
    cluster.log_gone(cluster.topics.set_isr(topic, partition, brokers).log)


def stop_broker(cluster: Cluster, node_id: int) -> None:
    """Let a broker be gone: others lead and coordinate what it did, as far as they can.

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
            cluster.pass_on(cluster.groups.reload(each, cluster.now_ms))


def start_broker(cluster: Cluster, node_id: int) -> None:
    """Let a broker that was stopped run again. Raises `BadClusterError` if there is no such broker, or it runs."""
    cluster.brokers.start(node_id)
    for changed in cluster.topics.node_started(node_id):
        cluster.log_gone(changed.log)


def move_transaction_coordinator(cluster: Cluster, transactional_id: str, to: int | None = None) -> None:
    """Let another broker coordinate a transactional id, and those that share its partition.

    ``to`` None is the next broker. Raises `BadClusterError` if there is no such broker.
    """
    cluster.brokers.move_coordinator(transactional_id, to, TRANSACTION_STATE)
