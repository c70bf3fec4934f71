"""A cluster at one moment: its brokers, and its partitions with their replicas and loads. Values only."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from loadwise.balance.errors import UnfitClusterError

RESOURCES = ("bytes in", "bytes out", "disk")
PEAKS = ("peak in", "peak out")
"""Bytes in and out in the busiest hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a broker may carry at most; infinite where nothing is stated."""

    bytes_in_per_s: float = math.inf
    bytes_out_per_s: float = math.inf
    disk_bytes: float = math.inf

    def __post_init__(self) -> None:
        _check_amounts(self, "a capacity")


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker that is up."""

    id: int
    rack: str | None = None
    capacity: Capacity = field(default_factory=Capacity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition: where its replicas are, and what it loads their brokers with."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    """Broker ids; the first is the preferred leader."""
    leader: int
    size_bytes: float
    """Of one replica."""
    bytes_in_per_s: float
    """From producers; each replica writes them."""
    bytes_out_per_s: float
    """To consumers, from the leader. What followers fetch is not in it."""
    peak_bytes_in_per_s: float | None = None
    """From producers in the busiest hour of the cluster; None: as above."""
    peak_bytes_out_per_s: float | None = None
    """To consumers in that hour; None: as above."""
    in_sync: tuple[int, ...] | None = None
    """Broker ids of the in-sync replicas; None if all are."""
    is_reassigned: bool = False
    """Whether a reassignment is under way. The replicas include those that are added and removed."""

    def __post_init__(self) -> None:
        _check_amounts(self, self.name)

    @property
    def name(self) -> str:
        """Topic and number, as in ``orders-3``."""
        return f"{self.topic}-{self.partition}"

    @property
    def out_of_sync(self) -> tuple[int, ...]:
        """The brokers of replicas that are not in sync."""
        return () if self.in_sync is None else tuple(each for each in self.replicas if each not in self.in_sync)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Brokers and partitions that fit together. Raises `UnfitClusterError` if they do not."""

    brokers: tuple[Broker, ...]
    partitions: tuple[Partition, ...]

    def __post_init__(self) -> None:
        if not self.brokers:
            raise UnfitClusterError("the cluster has no brokers; give at least one")
        _refuse_twice(f"broker {broker.id}" for broker in self.brokers)
        _refuse_twice(f"partition {partition.name}" for partition in self.partitions)
        for partition in self.partitions:
            _check_replicas(partition, self.by_id)

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """The columns of loads: those of the busiest hour too, if a partition states them."""
        peaks = (peak for each in self.partitions for peak in (each.peak_bytes_in_per_s, each.peak_bytes_out_per_s))
        return RESOURCES if all(peak is None for peak in peaks) else (*RESOURCES, *PEAKS)

    @cached_property
    def by_id(self) -> Mapping[int, Broker]:
        """The brokers by their ids."""
        return {broker.id: broker for broker in self.brokers}

    def with_capacities(self, stated: Mapping[int, Capacity]) -> Cluster:
        """Return the cluster with these capacities. Raises `UnfitClusterError` for a broker that it does not have."""
        for unknown in stated.keys() - self.by_id.keys():
            raise UnfitClusterError(
                f"a capacity is stated for broker {unknown}, which the cluster does not have; its brokers are"
                f" {_listed(self.by_id)}"
            )
        brokers = tuple(replace(each, capacity=stated.get(each.id, each.capacity)) for each in self.brokers)
        return replace(self, brokers=brokers)


def _check_replicas(partition: Partition, brokers: Mapping[int, Broker]) -> None:
    replicas = partition.replicas
    if not replicas:
        raise UnfitClusterError(f"partition {partition.name} has no replicas; a partition has at least one")
    if len(set(replicas)) < len(replicas):
        raise UnfitClusterError(f"partition {partition.name} has two replicas on one broker: {_listed(replicas)}")
    for replica in replicas:
        if replica not in brokers:
            raise UnfitClusterError(
                f"partition {partition.name} has a replica on broker {replica}, which is not up; start the broker, or"
                f" move its replicas with kafka-reassign-partitions.sh. The brokers are {_listed(brokers)}"
            )
    if partition.leader < 0:
        raise UnfitClusterError(
            f"partition {partition.name} has no leader; start a broker with an in-sync replica, one of"
            f" {_listed(replicas)}"
        )
    if partition.leader not in replicas:
        raise UnfitClusterError(
            f"partition {partition.name} is led by broker {partition.leader}, which has no replica of it; its replicas"
            f" are on {_listed(replicas)}"
        )


def _check_amounts(given: Capacity | Partition, name: str) -> None:
    rates = ("bytes_in_per_s", "bytes_out_per_s")
    for amount in (*rates, "size_bytes", "disk_bytes", *(f"peak_{rate}" for rate in rates)):
        value = getattr(given, amount, 0.0)
        if value is None:
            continue
        if not value >= 0 or (value == math.inf and isinstance(given, Partition)):
            raise UnfitClusterError(f"{amount} of {name} is {value}; expected a number of 0 or more")


def _refuse_twice(names: Iterable[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise UnfitClusterError(f"{name} is given {times} times; keep one of them")


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids))
