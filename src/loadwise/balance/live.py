"""Reads a running cluster with kafka-python's admin client: replicas, leaders, racks, sizes and arrivals."""

from __future__ import annotations

import time
from collections.abc import Callable

from loadwise.assignor.load.log_dirs import LogDirError, replica_sizes
from loadwise.balance.cluster import Cluster
from loadwise.balance.errors import ChangedClusterError, UnreadableClusterError
from loadwise.balance.readings import AGAIN, CHANGED, Metadata, Offsets, Sizes, cluster_of
from loadwise.running_group.admin import GroupAdmin

from kafka import TopicPartition  # isort: skip
from kafka.admin import OffsetSpec  # isort: skip
from kafka.errors import (  # isort: skip
    AuthorizationError,
    KafkaError,
    KafkaStorageError,
    NotLeaderForPartitionError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)

_CHANGED = (NotLeaderForPartitionError, UnknownTopicIdError, UnknownTopicOrPartitionError)
"""Partitions that were described are led by another broker now, or deleted."""


def read_cluster(
    admin: GroupAdmin,
    *,
    over_s: float,
    reads: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Cluster:
    """Read the cluster, and what arrives in ``over_s``. Each byte is read by consumers ``reads`` times.

    Partitions that are created meanwhile are left out. Raises `UnreadableClusterError`, `UnfitClusterError`, and
    `ChangedClusterError` if it changes otherwise.
    """
    try:
        metadata = read_metadata(admin)
        leaders = {
            TopicPartition(*name): placed.leader for name, placed in metadata.placed.items() if placed.leader >= 0
        }

        def offsets(spec: OffsetSpec) -> dict[TopicPartition, int]:
            admin.leaders = leaders
            found = admin.list_partition_offsets(dict.fromkeys(leaders, spec)) if leaders else {}
            return {partition: at.offset for partition, at in found.items()}

        def sizes() -> Sizes:
            return replica_sizes(admin.describe_all_log_dirs([broker.id for broker in metadata.brokers]))

        earlier_beginning, earlier_end = offsets(OffsetSpec.EARLIEST), offsets(OffsetSpec.LATEST)
        earlier_sizes, began_s = sizes(), clock()
        sleep(over_s)
        end = offsets(OffsetSpec.LATEST)
        later_sizes, elapsed_s = sizes(), clock() - began_s
        beginning = offsets(OffsetSpec.EARLIEST)
        later = read_metadata(admin)
        metadata.check_same(later)
    except KafkaError as error:
        raise _explained(error) from error
    except LogDirError as error:
        raise UnreadableClusterError(str(error)) from error
    created = later.placed.keys() - metadata.placed.keys()
    return cluster_of(
        metadata,
        earlier_sizes,
        {replica: size for replica, size in later_sizes.items() if replica[0] not in created},
        {
            (partition.topic, partition.partition): Offsets(
                earlier_beginning=earlier_beginning[partition],
                beginning=beginning[partition],
                earlier_end=earlier_end[partition],
                end=end[partition],
            )
            for partition in leaders
        },
        elapsed_s=elapsed_s,
        reads=reads,
    )


def check_unchanged(admin: GroupAdmin, cluster: Cluster) -> None:
    """Raises `ChangedClusterError` if replicas, leaders or brokers are others than in the cluster that was read."""
    try:
        Metadata.within(cluster).check_same(read_metadata(admin))
    except KafkaError as error:
        raise _explained(error) from error


def read_metadata(admin: GroupAdmin) -> Metadata:
    """Read brokers, partitions, and which of these are being reassigned. Raises `KafkaError`."""
    reassigned = {(each.topic, each.partition) for each in admin.list_partition_reassignments()}
    return Metadata.of(admin.describe_cluster()["brokers"], admin.describe_topics(), reassigned)


def _explained(error: KafkaError) -> UnreadableClusterError | ChangedClusterError:
    if isinstance(error, _CHANGED):
        return ChangedClusterError(f"{CHANGED}: {error.args[0]}; {AGAIN}")
    if isinstance(error, AuthorizationError):
        reason, remedy = type(error).__name__, "give the user the right to DESCRIBE the cluster and all topics"
    elif isinstance(error, KafkaStorageError):
        reason, remedy = str(error), "repair its disk, and start that broker again"
    else:
        reason, remedy = str(error), "try again when all brokers are up"
    return UnreadableClusterError(f"the cluster cannot be read: {reason}; {remedy}")
