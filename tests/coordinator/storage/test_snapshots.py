"""The state of a cluster, taken and put back: nothing is lost, nothing is shared that changes, no id is given twice."""

from __future__ import annotations

from uuid import UUID

import pytest
from cluster_walk import MemoryKeeper, new_router
from restarting_walk import RestartingWalk
from seeds import random_walk

from loadwise.coordinator import BadClusterError
from loadwise.coordinator.cluster.brokers import Brokers
from loadwise.coordinator.cluster.producer_ids import BLOCK_SIZE
from loadwise.coordinator.handling import leadership
from loadwise.coordinator.keeper import NOTHING
from loadwise.coordinator.routing.router import Router

TestWalk = random_walk(RestartingWalk, walks=30, steps=30)


def test_a_snapshot_copies_no_record() -> None:
    walk = RestartingWalk()
    walk.create("t", 1, compacts=False)
    walk.produce("t", 0, "")
    snapshot = walk.cluster.snapshot()
    walk.produce("t", 0, "")
    ((batch,), _, _) = next(iter(snapshot.logs.values()))
    other = new_router().cluster
    other.restore(snapshot, 2000)
    log = other.topics.log("t", 0)
    assert log is not None
    assert log.read(0, 10_000, at_least_one=True) is batch
    assert walk.cluster.topics.log("t", 0).end_offset == 4  # type: ignore[union-attr]


def test_it_wants_the_brokers_that_its_partitions_are_on() -> None:
    three = Router(brokers=Brokers(3)).cluster
    three.topics.create("t", 3)
    leadership.move_coordinator(three, "g", 3)
    one = new_router().cluster
    one.topics.create("kept", 1)
    with pytest.raises(BadClusterError, match=r"brokers \[1, 2, 3\]"):
        one.restore(three.snapshot(), 0)
    assert one.topics.get("kept") is not None
    other = Router(brokers=Brokers(3)).cluster
    other.restore(three.snapshot(), 0)
    assert other.brokers.coordinator_of("g").id == 3
    with pytest.raises(BadClusterError, match="use at least as many"):
        one.load(three.snapshot(), NOTHING, 0)


def test_a_restart_after_a_snapshot_was_put_back_gives_no_id_twice() -> None:
    keeper = MemoryKeeper()
    cluster, again = (Router(new_uuid=lambda: UUID(int=0)).cluster for _ in range(2))
    cluster.load(keeper.state(), keeper, 1000)
    snapshot = cluster.snapshot()
    given = [cluster.new_producer_id() for _ in range(BLOCK_SIZE + 1)]
    cluster.restore(snapshot, 2000)
    given.append(cluster.new_producer_id())
    cluster.restore(snapshot, 2000)
    again.load(keeper.state(), keeper, 3000)
    given.append(again.new_producer_id())
    assert len(set(given)) == len(given)
