"""What a plan may change, and what it must: property tests over random clusters."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_clusters import loads, racks_of_partitions, random_cluster

from loadwise.balance.cluster import Broker, Capacity, Cluster, Partition
from loadwise.balance.errors import NoPlanError, UnfitClusterError
from loadwise.balance.plan import Plan, plan
from loadwise.balance.scope import Scope
from loadwise.balance.table import notes


@st.composite
def clusters(draw: st.DrawFn, *, partitions: int = 110) -> Cluster:
    """Six brokers or more; the search of so many partitions makes single changes only, and is quick."""
    brokers = draw(st.integers(6, 9))
    return random_cluster(
        Random(draw(st.integers(0, 10**6))),
        brokers=brokers,
        partitions=partitions,
        replicas=draw(st.integers(1, 3)),
        racks=draw(st.sampled_from([0, 3])),
        empty=draw(st.integers(0, 1)),
    )


def _pairs(planned: Plan) -> list[tuple[Partition, Partition]]:
    return list(zip(planned.cluster.partitions, planned.planned.partitions, strict=True))


def _arrived(planned: Plan) -> Counter[int]:
    return Counter(broker for before, now in _pairs(planned) for broker in set(now.replicas) - set(before.replicas))


@given(clusters(), st.sets(st.integers(0, 5), max_size=2), st.sets(st.integers(0, 6), max_size=3))
def test_what_is_excluded_stays_as_it_is(cluster: Cluster, brokers: set[int], topics: set[int]) -> None:
    names = tuple(f"topic-{number}" for number in topics)
    planned = plan(cluster, Scope(exclude_brokers=frozenset(brokers), exclude_topics=names))
    for before, now in _pairs(planned):
        assert before.topic not in names or before == now
        assert set(before.replicas) & brokers == set(now.replicas) & brokers
        assert before.leader == now.leader or not {before.leader, now.leader} & brokers
        assert len(set(now.replicas)) == len(before.replicas)


@given(clusters(), st.sets(st.integers(0, 5), min_size=1, max_size=2))
def test_replicas_and_leaders_go_to_added_brokers_only(cluster: Cluster, added: set[int]) -> None:
    planned = plan(cluster, Scope(add=frozenset(added)))
    assert set(_arrived(planned)) <= added
    for before, now in _pairs(planned):
        assert before.leader == now.leader or now.leader in added


@given(clusters(), st.sets(st.integers(0, 5), min_size=1, max_size=2))
def test_removed_brokers_hold_nothing(cluster: Cluster, removed: set[int]) -> None:
    try:
        planned = plan(cluster, Scope(remove=frozenset(removed)))
    except NoPlanError:
        assume(False)
    assert not removed & {broker for each in planned.planned.partitions for broker in each.replicas}


@given(clusters(), st.floats(0, 1))
def test_no_more_is_moved_than_allowed_and_brokers_get_no_worse(cluster: Cluster, part: float) -> None:
    whole = plan(cluster)
    some = plan(cluster, Scope(max_moved_bytes=part * whole.moved_bytes))
    assert some.moved_bytes <= part * whole.moved_bytes + 1e-6
    bounds = whole.limits.at_mean(1.0)
    before, after = (bounds.total_excess(load / whole.limits.unit) for load in (whole.before, some.after))
    assert after <= before + 1e-6


@given(clusters(), st.sets(st.integers(0, 109)), st.sets(st.integers(0, 109)))
def test_partitions_out_of_sync_or_being_reassigned_stay_as_they_are(
    cluster: Cluster, lagging: set[int], reassigned: set[int]
) -> None:
    partitions = list(cluster.partitions)
    for row in lagging:
        leader = partitions[row].replicas[-1]
        partitions[row] = replace(partitions[row], leader=leader, in_sync=(leader,))
    for row in reassigned:
        partitions[row] = replace(partitions[row], is_reassigned=True)
    planned = plan(replace(cluster, partitions=tuple(partitions)))
    for before, now in _pairs(planned):
        if before.out_of_sync or before.is_reassigned:
            assert before == now
        else:
            assert now.in_sync is None or now.leader in now.in_sync


@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(2, 4))
def test_broken_racks_are_repaired(seed: int, replicas: int, racks: int) -> None:
    """Random placements ignore racks; each rack has two brokers."""
    cluster = random_cluster(Random(seed), brokers=2 * racks, partitions=110, replicas=replicas)
    brokers = tuple(Broker(id=each.id, rack=f"r{each.id % racks}") for each in cluster.brokers)
    planned = plan(replace(cluster, brokers=brokers)).planned
    assert racks_of_partitions(planned) == [min(replicas, racks)] * 110


@pytest.mark.parametrize("seed", range(5))
def test_a_new_broker_gets_its_share(seed: int) -> None:
    even = plan(random_cluster(Random(seed), brokers=12, partitions=1200, replicas=2)).planned
    planned = plan(replace(even, brokers=(*even.brokers, Broker(id=12))))
    shares = planned.after / planned.limits.mean
    assert shares.min() >= 0.9 - 1e-6
    assert shares.max() <= 1.1 + 1e-6
    assert _arrived(planned)[12] >= 0.9 * len(planned.moved)


@given(clusters(), st.lists(st.sampled_from([2, 3]), min_size=9, max_size=9))
def test_disks_are_filled_in_proportion_to_their_capacity(cluster: Cluster, sizes: list[int]) -> None:
    total = sum(load[2] for load in loads(cluster).values())
    used = [size for size, _ in zip(sizes, cluster.brokers, strict=False)]
    capacities = {
        broker.id: Capacity(disk_bytes=2.5 * total * size / sum(used))
        for broker, size in zip(cluster.brokers, used, strict=True)
    }
    planned = plan(cluster.with_capacities(capacities))
    share = planned.after[:, 2] / [capacities[broker.id].disk_bytes for broker in cluster.brokers]
    heaviest = max(each.size_bytes for each in cluster.partitions)
    smallest = min(each.disk_bytes for each in capacities.values())
    racks = {broker.rack for broker in cluster.brokers} != {None}
    assert racks or share.max() <= max(0.44, heaviest / smallest) + 0.01
    assert not planned.schedule.blocked


def test_what_is_presumed_of_capacities_is_said() -> None:
    cluster = random_cluster(Random(0), brokers=3, partitions=110, replicas=2)
    equal = "No broker states a capacity of bytes in, bytes out and disk: all brokers count as equal; see --capacities."
    assert equal in list(notes(plan(cluster)))
    some = "Not all brokers state a capacity of disk: shares are equal up to the stated ones."
    assert some in list(notes(plan(cluster.with_capacities({0: Capacity(disk_bytes=1e12)}))))


def test_partitions_that_are_out_of_sync_are_named() -> None:
    cluster = random_cluster(Random(0), brokers=3, partitions=110, replicas=2)
    first = cluster.partitions[0]
    lagging = replace(first, in_sync=first.replicas[:1])
    moved = replace(cluster.partitions[1], is_reassigned=True)
    told = list(notes(plan(replace(cluster, partitions=(lagging, moved, *cluster.partitions[2:])))))
    assert f"1 partition stays as now ({moved.name}): a reassignment is under way." in told
    named = f"1 partition stays as now ({first.name}): replicas on broker {first.replicas[1]} are not in sync."
    assert f"{named} Plan again when they are." in told
    with pytest.raises(NoPlanError, match=f"of partition {first.name}, which has replicas that are not in sync, on"):
        plan(
            Cluster(brokers=(*cluster.brokers, Broker(id=3)), partitions=(lagging,)),
            Scope(remove=frozenset({first.replicas[1]})),
        )


def test_patterns_exclude_topics() -> None:
    cluster = random_cluster(Random(0), brokers=3, partitions=110, replicas=2)
    assert plan(cluster, Scope(exclude_topics=("topic-*",))).reassigned == ()
    with pytest.raises(UnfitClusterError, match="no topic matches 'topics-\\*'"):
        plan(cluster, Scope(exclude_topics=("topics-*",)))
