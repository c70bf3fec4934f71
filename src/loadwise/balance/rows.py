"""A cluster as arrays: a row for each partition and each broker, a column for each resource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loadwise.balance.cluster import RESOURCES, Cluster, Partition
from loadwise.balance.scope import Scope, stays

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.intp]
Mask: TypeAlias = npt.NDArray[np.bool_]

_EVERYTHING = Scope()
DISK = RESOURCES.index("disk")
"""The column of bytes on disk."""
_IN_AND_OUT = ((0, 1), (len(RESOURCES), len(RESOURCES) + 1))
"""The columns of bytes in and out, on average and in the busiest hour."""
NONE = -1
"""In place of a broker, where a partition has fewer replicas than others."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ClusterRows:
    """Where replicas are, and what each loads its broker with."""

    resources: tuple[str, ...]
    """The columns of loads."""
    replicas: Rows
    """Partitions by replicas: rows of brokers, the preferred leader first, then `NONE`."""
    follower: Floats
    """Partitions by resources: what a follower loads its broker with."""
    leader: Floats
    """The same of the leader. It sends consumers their bytes, and each follower what producers send."""
    rack: Rows
    """Of each broker; one without a rack is a rack of its own."""
    capacity: Floats
    """Brokers by resources."""
    emptied: Mask
    """The brokers that can have no replica: removed, or a capacity of theirs is 0, or less than each replica needs."""
    excluded: Mask
    """The brokers that keep their replicas and leaders, and get no more."""
    closed: Mask
    """The brokers that get no replicas and leaders: the emptied, the excluded, and all but those that are added."""
    fixed: Mask
    """The partitions that stay as they are."""

    @classmethod
    def of(cls, cluster: Cluster, scope: Scope = _EVERYTHING) -> ClusterRows:
        """Make the arrays of a cluster. Leaders are the preferred ones: Kafka elects these by itself.

        Those of partitions with a replica that is out of sync, or with a reassignment under way, are the present ones.
        """
        row = {broker.id: index for index, broker in enumerate(cluster.brokers)}
        partitions = cluster.partitions
        width = max((len(each.replicas) for each in partitions), default=1)
        replicas = np.full((len(partitions), width), NONE, np.intp)
        for index, each in enumerate(partitions):
            order = sorted(each.replicas, key=each.leader.__ne__) if stays(each) else each.replicas
            replicas[index, : len(order)] = [row[broker] for broker in order]
        resources = cluster.resources
        loads = np.array([_loads(each)[: len(resources)] for each in partitions], np.float64)
        follower, leader = loads.reshape(-1, len(resources)).copy(), loads.reshape(-1, len(resources))
        followers = (replicas != NONE).sum(axis=1) - 1
        for came, sent in _IN_AND_OUT[: 1 + (len(resources) > len(RESOURCES))]:
            follower[:, sent] = 0.0
            leader[:, sent] += followers * leader[:, came]
        racks: dict[str | int, int] = {}
        capacity = np.array(
            [
                (each.capacity.bytes_in_per_s, each.capacity.bytes_out_per_s, each.capacity.disk_bytes)
                for each in cluster.brokers
            ],
            np.float64,
        )
        capacity = np.concatenate([capacity, capacity[:, : len(resources) - len(RESOURCES)]], axis=1)
        least = follower.min(axis=0, initial=np.inf)
        ids = [broker.id for broker in cluster.brokers]
        emptied = ((capacity == 0.0) | (capacity < least)).any(axis=1) | np.isin(ids, list(scope.remove))
        excluded = np.isin(ids, list(scope.exclude_brokers))
        kept = scope.excluded_topics(cluster)
        return cls(
            resources=resources,
            replicas=replicas,
            follower=follower,
            leader=leader,
            rack=np.array(
                [
                    racks.setdefault(broker.id if broker.rack is None else broker.rack, len(racks))
                    for broker in cluster.brokers
                ],
                np.intp,
            ),
            capacity=capacity,
            emptied=emptied & ~excluded,
            excluded=excluded,
            closed=emptied | excluded | (~np.isin(ids, list(scope.add)) if scope.add else False),
            fixed=np.array([each.topic in kept or stays(each) for each in partitions], np.bool_),
        )

    def rack_counts(self, replicas: Rows) -> Rows:
        """In how many racks each partition is, with replicas placed like this."""
        racks = np.sort(np.where(replicas == NONE, NONE, self.rack[replicas]), axis=1)
        first = np.ones(racks.shape, np.bool_)
        first[:, 1:] = racks[:, 1:] != racks[:, :-1]
        counts: Rows = (first & (racks != NONE)).sum(axis=1)
        return counts

    def load(self, replicas: Rows) -> Floats:
        """The load of each broker, brokers by resources, with replicas placed like this and led by the first."""
        return self._load(replicas, replicas[:, 0])

    def heaviest_on(self, replicas: Rows) -> Floats:
        """The most that one replica loads each broker with, brokers by resources."""
        most = np.zeros_like(self.capacity)
        np.maximum.at(most, replicas[:, 0], self.leader)
        for column in range(1, replicas.shape[1]):
            there = replicas[:, column] != NONE
            np.maximum.at(most, replicas[there, column], self.follower[there])
        return most

    def load_led_by(self, leaders: Rows) -> Floats:
        """The load of each broker now, while these brokers lead the partitions."""
        return self._load(self.replicas, leaders)

    def _load(self, replicas: Rows, leaders: Rows) -> Floats:
        total = np.zeros_like(self.capacity)
        np.add.at(total, leaders, self.leader)
        for column in replicas.T:
            follows = (column != NONE) & (column != leaders)
            np.add.at(total, column[follows], self.follower[follows])
        return total


def _loads(partition: Partition) -> tuple[float, ...]:
    mean = (partition.bytes_in_per_s, partition.bytes_out_per_s)
    peaks = (partition.peak_bytes_in_per_s, partition.peak_bytes_out_per_s)
    return (*mean, partition.size_bytes, *(a if peak is None else peak for a, peak in zip(mean, peaks, strict=True)))
