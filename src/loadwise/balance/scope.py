"""Which brokers and partitions a plan may change. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from loadwise.balance.cluster import Cluster, Partition
from loadwise.balance.errors import UnfitClusterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a plan is asked for; by default all that evens out the cluster."""

    add: frozenset[int] = frozenset()
    """Brokers to fill. If there are any, replicas and leaders go to no others."""
    remove: frozenset[int] = frozenset()
    """Brokers to empty."""
    exclude_brokers: frozenset[int] = frozenset()
    """Brokers that get and lose neither replicas nor leaders."""
    exclude_topics: tuple[str, ...] = ()
    """Topics that stay as they are: names, or patterns with ``*`` and ``?``."""
    max_moved_bytes: float = math.inf

    def check(self, cluster: Cluster) -> None:
        """Raises `UnfitClusterError` for brokers and topics that the cluster does not have."""
        for flag, ids in (
            ("--add", self.add),
            ("--remove", self.remove),
            ("--exclude-brokers", self.exclude_brokers),
        ):
            for unknown in sorted(ids - cluster.by_id.keys()):
                raise UnfitClusterError(
                    f"{flag} names broker {unknown}, which the cluster does not have; its brokers are"
                    f" {_listed(cluster.by_id)}"
                )
        for (one, ids), (other, more) in (
            (("--add", self.add), ("--remove", self.remove)),
            (("--add", self.add), ("--exclude-brokers", self.exclude_brokers)),
            (("--remove", self.remove), ("--exclude-brokers", self.exclude_brokers)),
        ):
            for both in sorted(ids & more):
                raise UnfitClusterError(f"{one} and {other} both name broker {both}; keep one of them")
        topics = {partition.topic for partition in cluster.partitions}
        for pattern in self.exclude_topics:
            if not any(fnmatchcase(topic, pattern) for topic in topics):
                raise UnfitClusterError(f"--exclude-topics: no topic matches {pattern!r}; see kafka-topics.sh --list")

    def excluded_topics(self, cluster: Cluster) -> frozenset[str]:
        """The topics of the cluster that stay as they are."""
        topics = {partition.topic for partition in cluster.partitions}
        return frozenset(each for each in topics if any(fnmatchcase(each, of) for of in self.exclude_topics))


def stays(partition: Partition) -> bool:
    """Whether no plan changes the partition: a replica is out of sync, or a reassignment is under way."""
    return partition.is_reassigned or bool(partition.out_of_sync)


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids))
