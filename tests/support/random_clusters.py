"""Random clusters, and their brokers' loads by plain arithmetic."""

from __future__ import annotations

from collections import defaultdict
from random import Random

from loadwise.balance.cluster import Broker, Cluster, Partition

MEGABYTE, KILOBYTE = 10**6, 10**3
"""What sizes and rates are multiples of."""
SMALL = 200
"""How many small clusters there are."""


def small_cluster(seed: int) -> Cluster:
    """One of the clusters that are small enough for an exact solver."""
    random = Random(seed)
    brokers = random.randint(3, 6)
    return random_cluster(
        random,
        brokers=brokers,
        partitions=random.randint(4, 14),
        replicas=random.randint(1, 3) if brokers > 3 else random.randint(1, 2),
        racks=random.choice([0, *(racks for racks in (2, 3) if brokers % racks == 0)]),
        empty=random.choice([0, 0, 1]),
    )


def random_cluster(
    random: Random, *, brokers: int, partitions: int, replicas: int, racks: int = 0, empty: int = 0
) -> Cluster:
    """A cluster of skewed partitions, each in as many racks as can be; the last ``empty`` brokers have none."""
    rack = {broker: chr(ord("a") + broker % racks) if racks else None for broker in range(brokers)}
    placed = []
    for number in range(partitions):
        on = random.sample(range(brokers - empty), replicas)
        while racks and len({rack[broker] for broker in on}) < min(replicas, racks):
            on = random.sample(range(brokers - empty), replicas)
        skew = random.lognormvariate(0, 1)
        placed.append(
            Partition(
                topic=f"topic-{number % 7}",
                partition=number // 7,
                replicas=tuple(on),
                leader=on[0],
                size_bytes=MEGABYTE * round(1e3 * skew * random.lognormvariate(0, 0.5)),
                bytes_in_per_s=KILOBYTE * round(1e3 * skew),
                bytes_out_per_s=KILOBYTE * round(2e3 * skew * random.lognormvariate(0, 0.5)),
            )
        )
    return Cluster(
        brokers=tuple(Broker(id=broker, rack=rack[broker]) for broker in range(brokers)), partitions=tuple(placed)
    )


def loads(cluster: Cluster) -> dict[int, tuple[float, float, float]]:
    """Bytes in, bytes out and disk of each broker: each replica writes, the leader sends to consumers and followers."""
    total: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for partition in cluster.partitions:
        for broker in partition.replicas:
            total[broker][0] += partition.bytes_in_per_s
            total[broker][2] += partition.size_bytes
            if broker != partition.leader:
                total[partition.leader][1] += partition.bytes_in_per_s
        total[partition.leader][1] += partition.bytes_out_per_s
    return {broker.id: tuple(total[broker.id]) for broker in cluster.brokers}


def racks_of_partitions(cluster: Cluster) -> list[int]:
    """In how many racks each partition is; a broker without a rack is one of its own."""
    rack = {broker.id: broker.rack or broker.id for broker in cluster.brokers}
    return [len({rack[broker] for broker in each.replicas}) for each in cluster.partitions]


def lower_limits(cluster: Cluster) -> list[float]:
    """Of each resource: nine tenths of what brokers have on average beside replicas that each fill a broker."""
    replicas: list[list[float]] = [[], [], []]
    for partition in cluster.partitions:
        count = len(partition.replicas)
        replicas[0] += [partition.bytes_in_per_s] * count
        replicas[1].append(partition.bytes_out_per_s + (count - 1) * partition.bytes_in_per_s)
        replicas[2] += [partition.size_bytes] * count
    limits = []
    for weights in replicas:
        rest, left = sum(weights), len(cluster.brokers)
        for weight in sorted(weights, reverse=True):
            if left == 1 or weight <= 1.1 * rest / left:
                break
            rest, left = rest - weight, left - 1
        limits.append(0.9 * rest / left)
    return limits
