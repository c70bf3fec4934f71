"""Makes a cluster of what its brokers answer, kafka-python's dictionaries. No I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from loadwise.balance.cluster import Broker, Cluster, Partition
from loadwise.balance.errors import ChangedClusterError, UnfitClusterError, UnreadableClusterError

CHANGED, AGAIN = "the cluster changed during planning", "run this again when it no longer changes"
Name: TypeAlias = tuple[str, int]
"""A topic and the number of a partition."""
Sizes: TypeAlias = Mapping[tuple[Name, int], int]
"""The bytes of partitions by broker."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the replicas of a partition are, and the broker that leads it."""

    replicas: tuple[int, ...]
    leader: int
    in_sync: tuple[int, ...] | None = field(default=None, compare=False)
    """The in-sync replicas; None if all are."""
    is_reassigned: bool = field(default=False, compare=False)

    def lost(self, later: Placed) -> tuple[int, ...]:
        """The replicas that are not in sync any more."""
        if later.in_sync is None:
            return ()
        in_sync = self.replicas if self.in_sync is None else self.in_sync
        return tuple(each for each in in_sync if each not in later.in_sync)

    def __str__(self) -> str:
        return f"replicas {', '.join(map(str, self.replicas))} led by {self.leader}"


@dataclass(frozen=True, slots=True)
class Metadata:
    """The brokers that are up, and the partitions."""

    brokers: tuple[Broker, ...]
    placed: Mapping[Name, Placed]

    @classmethod
    def of(
        cls,
        brokers: Iterable[Mapping[str, Any]],
        topics: Iterable[Mapping[str, Any]],
        reassigned: Collection[Name] = (),
    ) -> Metadata:
        """Read ``describe_cluster`` and ``describe_topics``. Raises `UnfitClusterError` for an offline replica.

        ``reassigned`` are the partitions with a reassignment under way.
        """
        placed = {}
        for topic in topics:
            for partition in topic["partitions"]:
                number = partition["partition_index"]
                for offline in partition.get("offline_replicas") or ():
                    raise UnfitClusterError(
                        f"the replica of partition {topic['name']}-{number} on broker {offline} is offline; start that"
                        " broker, repair its disk, or move its replicas with kafka-reassign-partitions.sh"
                    )
                placed[topic["name"], number] = Placed(
                    tuple(partition["replica_nodes"]),
                    partition["leader_id"],
                    tuple(partition["isr_nodes"]),
                    (topic["name"], number) in reassigned,
                )
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
            placed={
                (each.topic, each.partition): Placed(each.replicas, each.leader, each.in_sync, each.is_reassigned)
                for each in cluster.partitions
            },
        )

    def check_same(self, later: Metadata) -> None:
        """Raises `ChangedClusterError` if replicas, leaders or brokers are others now, or replicas are out of sync.

        New partitions are no change. Partitions that were being reassigned may be further by now.
        """
        for (topic, number), was in self.placed.items():
            is_now = later.placed.get((topic, number))
            if was.is_reassigned:
                continue
            if is_now is None or was != is_now:
                raise ChangedClusterError(
                    f"{CHANGED}: partition {topic}-{number} had {was}, and now has {is_now or 'none'}; {AGAIN}"
                )
            if is_now.is_reassigned:
                raise ChangedClusterError(f"{CHANGED}: partition {topic}-{number} is now being reassigned; {AGAIN}")
            for broker in was.lost(is_now):
                raise ChangedClusterError(
                    f"{CHANGED}: the replica of partition {topic}-{number} on broker {broker} is no longer in sync;"
                    f" {AGAIN}"
                )
        if self.brokers != later.brokers:
            raise ChangedClusterError(
                f"{CHANGED}: its brokers were {', '.join(str(each.id) for each in self.brokers)}, and now are"
                f" {', '.join(str(each.id) for each in later.brokers)}; {AGAIN}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Offsets:
    """What two readings of a partition's offsets show."""

    earlier_beginning: int
    beginning: int
    earlier_end: int
    end: int

    @property
    def arrived(self) -> int:
        """How many records came in between."""
        return max(self.end - self.earlier_end, 0)


def cluster_of(
    metadata: Metadata,
    earlier_sizes: Sizes,
    sizes: Sizes,
    offsets: Mapping[Name, Offsets],
    *,
    elapsed_s: float,
    reads: float,
) -> Cluster:
    """Make the cluster. Raises `UnfitClusterError` and `UnreadableClusterError`.

    Bytes in are the records that arrived in ``elapsed_s``, at the size that the logs' growth shows. Bytes out are
    these, each read ``reads`` times.
    """
    for (topic, number), broker in sizes:
        if (topic, number) not in metadata.placed:
            raise UnreadableClusterError(
                f"broker {broker} has partition {topic}-{number}, which is not described; give the user the right to"
                " DESCRIBE all topics, or run this again if the topic was deleted"
            )
    record_bytes = _record_bytes(metadata, earlier_sizes, sizes, offsets)
    partitions = []
    for (topic, number), placed in metadata.placed.items():
        name = (topic, number)
        if placed.leader in placed.replicas and (name, placed.leader) not in sizes:
            raise UnreadableClusterError(
                f"broker {placed.leader} does not describe the size of partition {topic}-{number}; give the user the"
                " right to DESCRIBE the cluster, or run this again if the topic is new"
            )
        at = offsets.get(name)
        bytes_in_per_s = (0 if at is None else at.arrived) * record_bytes[name] / elapsed_s
        partitions.append(
            Partition(
                topic=topic,
                partition=number,
                replicas=placed.replicas,
                leader=placed.leader,
                size_bytes=float(sizes.get((name, placed.leader), 0)),
                bytes_in_per_s=bytes_in_per_s,
                bytes_out_per_s=bytes_in_per_s * reads,
                in_sync=None if set(placed.in_sync or placed.replicas) >= set(placed.replicas) else placed.in_sync,
                is_reassigned=placed.is_reassigned,
            )
        )
    return Cluster(brokers=metadata.brokers, partitions=tuple(partitions))


def _record_bytes(
    metadata: Metadata, earlier_sizes: Sizes, sizes: Sizes, offsets: Mapping[Name, Offsets]
) -> dict[Name, float]:
    """The mean size of a record that arrives in each partition.

    It is the growth of the log for each new record, or that of its topic if the log was cleaned meanwhile. A log that
    lost its oldest records or did not grow has the mean of its records. An empty log has the mean of its topic.
    The mean is not for compacted logs, whose offsets have gaps.
    """
    grown, held = {}, {}
    for name, at in offsets.items():
        on_leader = (name, metadata.placed[name].leader)
        size = sizes.get(on_leader, 0)
        held[name] = (size, at.end - at.beginning)
        growth = size - earlier_sizes.get(on_leader, size)
        if at.beginning == at.earlier_beginning and at.arrived and growth > 0:
            grown[name] = (growth, at.arrived)
    growth_of, mean_of = _of_topics(grown), _of_topics(held)

    def of(name: Name) -> float:
        if name in grown:
            return grown[name][0] / grown[name][1]
        at = offsets.get(name)
        if at is not None and at.beginning == at.earlier_beginning and name[0] in growth_of:
            return growth_of[name[0]]
        size, records = held.get(name, (0, 0))
        return size / records if records else mean_of.get(name[0], 0.0)

    return {name: of(name) for name in metadata.placed}


def _of_topics(bytes_and_records: Mapping[Name, tuple[int, int]]) -> dict[str, float]:
    """The mean size of a record of each topic that has records."""
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for (topic, _), (size, records) in bytes_and_records.items():
        totals[topic][0] += size
        totals[topic][1] += records
    return {topic: size / records for topic, (size, records) in totals.items() if records}
