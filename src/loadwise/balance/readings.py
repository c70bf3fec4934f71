"""Makes a cluster of what its brokers answer, kafka-python's dictionaries. No I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from loadwise.balance.cluster import Broker, Cluster, Partition
from loadwise.balance.errors import ChangedClusterError, UnfitClusterError, UnreadableClusterError

Name: TypeAlias = tuple[str, int]
"""A topic and the number of a partition."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the replicas of a partition are, and the broker that leads it."""

    replicas: tuple[int, ...]
    leader: int

    def __str__(self) -> str:
        return f"replicas {', '.join(map(str, self.replicas))} led by {self.leader}"


@dataclass(frozen=True, slots=True)
class Metadata:
    """The brokers that are up, and the partitions."""

    brokers: tuple[Broker, ...]
    placed: Mapping[Name, Placed]

    @classmethod
    def of(cls, brokers: Iterable[Mapping[str, Any]], topics: Iterable[Mapping[str, Any]]) -> Metadata:
        """Read ``describe_cluster`` and ``describe_topics``. Raises `UnfitClusterError` for an offline replica."""
        placed = {}
        for topic in topics:
            for partition in topic["partitions"]:
                number = partition["partition_index"]
                for offline in partition.get("offline_replicas") or ():
                    raise UnfitClusterError(
                        f"the replica of partition {topic['name']}-{number} on broker {offline} is offline; start that"
                        " broker, or move its replicas with kafka-reassign-partitions.sh"
                    )
                placed[topic["name"], number] = Placed(tuple(partition["replica_nodes"]), partition["leader_id"])
        up = (broker for broker in brokers if not broker.get("is_fenced"))
        return cls(
            brokers=tuple(
                Broker(id=broker["broker_id"], rack=broker["rack"])
                for broker in sorted(up, key=lambda broker: int(broker["broker_id"]))
            ),
            placed=dict(sorted(placed.items())),
        )

    @classmethod
    def within(cls, cluster: Cluster) -> Metadata:
        """The brokers and partitions of a cluster."""
        return cls(
            brokers=tuple(Broker(id=each.id, rack=each.rack) for each in cluster.brokers),
            placed={(each.topic, each.partition): Placed(each.replicas, each.leader) for each in cluster.partitions},
        )

    def check_same(self, later: Metadata) -> None:
        """Raises `ChangedClusterError` if replicas, leaders or brokers are others now."""
        for topic, number in sorted(self.placed.keys() | later.placed.keys()):
            was, is_now = self.placed.get((topic, number)), later.placed.get((topic, number))
            if was != is_now:
                raise ChangedClusterError(
                    f"the cluster changed while it was planned: partition {topic}-{number} had"
                    f" {was or 'no replicas'}, and now has {is_now or 'none'}; run this again when nothing changes"
                )
        if self.brokers != later.brokers:
            raise ChangedClusterError(
                "the cluster changed while it was planned: its brokers were"
                f" {', '.join(str(each.id) for each in self.brokers)}, and now are"
                f" {', '.join(str(each.id) for each in later.brokers)}; run this again when nothing changes"
            )


def sizes_of(log_dirs: Iterable[Mapping[str, Any]]) -> dict[tuple[Name, int], int]:
    """Return the bytes of partitions by broker, from ``describe_log_dirs``. Raises `UnreadableClusterError`."""
    sizes: dict[tuple[Name, int], int] = {}
    for answer in log_dirs:
        for directory in answer["log_dirs"]:
            if directory["error_code"]:
                raise UnreadableClusterError(
                    f"broker {answer['broker']} does not describe its log directory {directory['log_dir']} (error"
                    f" {directory['error_code']}); it needs the right to DESCRIBE the cluster, and a disk that works"
                )
            for topic in directory["topics"]:
                for partition in topic["partitions"]:
                    if not partition["is_future_key"]:  # the copy of a replica that moves to another disk
                        name = (topic["name"], partition["partition_index"])
                        sizes[name, answer["broker"]] = partition["partition_size"]
    return sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Offsets:
    """What two readings of a partition's offsets show."""

    beginning: int
    earlier_end: int
    end: int


def cluster_of(
    metadata: Metadata,
    sizes: Mapping[tuple[Name, int], int],
    offsets: Mapping[Name, Offsets],
    *,
    elapsed_s: float,
    reads: float,
) -> Cluster:
    """Make the cluster. Raises `UnfitClusterError` and `UnreadableClusterError`.

    Bytes in are the records that arrived in ``elapsed_s``, each as large as the mean of its log. Bytes out are these,
    each read ``reads`` times.
    """
    record_bytes = _record_bytes(metadata, sizes, offsets)
    partitions = []
    for (topic, number), placed in metadata.placed.items():
        name = (topic, number)
        if placed.leader in placed.replicas and (name, placed.leader) not in sizes:
            raise UnreadableClusterError(
                f"broker {placed.leader} does not describe the size of partition {topic}-{number}; give the user the"
                " right to DESCRIBE the cluster, or run this again if the topic is new"
            )
        at = offsets.get(name)
        arrived = 0 if at is None else max(at.end - at.earlier_end, 0)
        bytes_in_per_s = arrived * record_bytes[name] / elapsed_s
        partitions.append(
            Partition(
                topic=topic,
                partition=number,
                replicas=placed.replicas,
                leader=placed.leader,
                size_bytes=sizes.get((name, placed.leader), 0),
                bytes_in_per_s=bytes_in_per_s,
                bytes_out_per_s=bytes_in_per_s * reads,
            )
        )
    return Cluster(brokers=metadata.brokers, partitions=tuple(partitions))


def _record_bytes(
    metadata: Metadata, sizes: Mapping[tuple[Name, int], int], offsets: Mapping[Name, Offsets]
) -> dict[Name, float]:
    """The mean size of a record in each log; in a log that has none left, the mean of its topic."""
    held = {
        name: (sizes.get((name, metadata.placed[name].leader), 0), at.end - at.beginning)
        for name, at in offsets.items()
    }
    of_topic: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for (topic, _), (size, records) in held.items():
        of_topic[topic][0] += size
        of_topic[topic][1] += records
    means = {topic: size / records if records else 0.0 for topic, (size, records) in of_topic.items()}
    return {
        name: held[name][0] / held[name][1] if held.get(name, (0, 0))[1] else means.get(name[0], 0.0)
        for name in metadata.placed
    }
