"""Every step of every batch, over random clusters and plans: what disks hold while Kafka copies."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import permutations

from hypothesis import assume, given
from hypothesis import strategies as st

from loadwise.balance.batches import Schedule, schedule
from loadwise.balance.cluster import Broker, Capacity, Cluster, Partition
from loadwise.balance.errors import NoPlanError
from loadwise.balance.plan import plan


@st.composite
def clusters(draw: st.DrawFn, *, most_partitions: int = 14) -> Cluster:
    """Few brokers with tight disks, and partitions of one to three replicas."""
    ids = range(1, draw(st.integers(2, 5)) + 1)
    sizes = st.integers(0, 40)
    partitions = []
    for number in range(draw(st.integers(1, most_partitions))):
        replicas = tuple(draw(st.permutations(ids)))[: draw(st.integers(1, min(3, len(ids))))]
        partitions.append(_partition(number, replicas, draw(sizes), draw(st.integers(0, 9)), draw(st.integers(0, 9))))
    held = Counter[int]()
    for partition in partitions:
        held.update(dict.fromkeys(partition.replicas, int(partition.size_bytes)))
    brokers = []
    for each in ids:
        capacity = max(held[each] / draw(st.sampled_from([0.3, 0.6, 0.79, 0.85, 1.0])), 10.0)
        stated = Capacity(disk_bytes=capacity) if draw(st.integers(0, 5)) else Capacity()
        brokers.append(Broker(id=each, rack=draw(st.sampled_from([None, "a", "b"])), capacity=stated))
    return Cluster(brokers=tuple(brokers), partitions=tuple(partitions))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Cluster, Cluster]:
    """A cluster, and any other placement of its replicas."""
    cluster = draw(clusters(most_partitions=6))
    ids = list(cluster.by_id)
    planned = []
    for each in cluster.partitions:
        replicas = tuple(draw(st.permutations(ids)))[: len(each.replicas)]
        planned.append(replace(each, replicas=replicas, leader=replicas[0]))
    return cluster, replace(cluster, partitions=tuple(planned))


def _partition(number: int, replicas: tuple[int, ...], size: float, coming: float, going: float) -> Partition:
    return Partition(
        topic="t",
        partition=number,
        replicas=replicas,
        leader=replicas[-1],
        size_bytes=size,
        bytes_in_per_s=coming,
        bytes_out_per_s=going,
    )


def _disks(partitions: dict[str, Partition]) -> dict[int, float]:
    held: dict[int, float] = defaultdict(float)
    for each in partitions.values():
        for broker in each.replicas:
            held[broker] += each.size_bytes
    return held


def _execute(cluster: Cluster, scheduled: Schedule, headroom: float, moves_per_broker: int) -> dict[str, Partition]:
    """Execute all batches as Kafka does, check disks at the worst moment of each, and return the partitions."""
    now = {each.name: each for each in cluster.partitions}
    for batch in scheduled.batches:
        before, during = _disks(now), _disks(now)
        moving = Counter[int]()
        for each in batch.reassigned:
            for broker in set(each.replicas) - set(now[each.name].replicas):
                during[broker] += each.size_bytes
            moving.update(set(each.replicas) ^ set(now[each.name].replicas))
        assert max(moving.values(), default=0) <= moves_per_broker
        for broker in cluster.brokers:
            most = headroom * broker.capacity.disk_bytes
            risen = during[broker.id] > before[broker.id]
            assert not risen or during[broker.id] <= most * (1 + 1e-6)
        for each in batch.reassigned:
            now[each.name] = replace(now[each.name], replicas=each.replicas)
        for each in batch.elected:
            now[each.name] = replace(now[each.name], leader=each.leader)
            assert now[each.name].replicas[0] == each.leader
    return now


@given(clusters(), st.sampled_from([0.8, 1.0]), st.integers(1, 3))
def test_no_disk_fills_up_in_any_batch_of_a_plan(cluster: Cluster, headroom: float, moves_per_broker: int) -> None:
    try:
        planned = plan(cluster, headroom=headroom, moves_per_broker=moves_per_broker)
    except NoPlanError:
        assume(False)
    now = _execute(cluster, planned.schedule, headroom, moves_per_broker)
    assert now == {each.name: each for each in planned.planned.partitions}
    for blocked in planned.schedule.blocked:
        assert blocked.missing_bytes > 0


@given(pairs(), st.integers(1, 3))
def test_a_partition_is_blocked_only_if_no_order_has_space_for_all(
    pair: tuple[Cluster, Cluster], moves_per_broker: int
) -> None:
    cluster, planned = pair
    scheduled = schedule(cluster, planned, headroom=0.8, moves_per_broker=moves_per_broker)
    now = _execute(cluster, scheduled, 0.8, moves_per_broker)
    blocked = {each.partition.name for each in scheduled.blocked}
    moving = [(was, then) for was, then in zip(cluster.partitions, planned.partitions, strict=True)]
    for was, then in moving:
        assert now[then.name] == (was if then.name in blocked else then)
    changed = [(was, then) for was, then in moving if set(was.replicas) != set(then.replicas)]
    assert bool(blocked) == (not any(_has_space(cluster, order) for order in permutations(changed)))


def _has_space(cluster: Cluster, order: tuple[tuple[Partition, Partition], ...]) -> bool:
    held = _disks({each.name: each for each in cluster.partitions})
    for was, then in order:
        for broker in set(then.replicas) - set(was.replicas):
            held[broker] += then.size_bytes
            if then.size_bytes and held[broker] > 0.8 * cluster.by_id[broker].capacity.disk_bytes * (1 + 1e-9):
                return False
        for broker in set(was.replicas) - set(then.replicas):
            held[broker] -= then.size_bytes
    return True


def test_the_time_of_a_batch_is_that_of_the_busiest_broker() -> None:
    brokers = tuple(Broker(id=each) for each in (1, 2, 3))
    before = tuple(_partition(number, (1,), 100, 0, 0) for number in range(2))
    after = tuple(replace(each, replicas=(2 + each.partition,), leader=2 + each.partition) for each in before)
    cluster = Cluster(brokers=brokers, partitions=before)
    (batch,) = schedule(cluster, replace(cluster, partitions=after), headroom=0.8).batches
    assert (batch.moved_bytes, batch.busiest_bytes, batch.estimated_s(50)) == (200, 200, 4)
