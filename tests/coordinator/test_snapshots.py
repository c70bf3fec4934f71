"""The state of a cluster, taken and put back: nothing is lost, nothing is shared that changes, no id is given twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from cluster_walk import ClusterWalk, facts, new_cluster
from hypothesis import settings
from hypothesis.stateful import invariant, precondition, rule

from loadwise.coordinator import BadClusterError
from loadwise.coordinator.apis import SERVICES
from loadwise.coordinator.cluster.brokers import Brokers
from loadwise.coordinator.cluster.records import LogRecord, PartitionRecord
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.keeper import NOTHING, Place, Snapshot
from loadwise.coordinator.storage.kinds import Codec
from loadwise.coordinator.transactions.transaction import Transaction

CODEC = Codec()


class Walk(ClusterWalk):
    """Anything happens to a cluster; what its keeper has, and what a snapshot has, is what it is."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot: Snapshot | None = None

    @rule()
    def take(self) -> None:
        self.snapshot = self.cluster.snapshot()
        self.taken = facts(self.cluster)

    @precondition(lambda self: self.snapshot is not None)
    @rule()
    def put_back(self) -> None:
        assert self.snapshot is not None
        self.cluster.restore(self.snapshot, self.now_ms)
        self.producers.clear()
        taken, after = self.taken, facts(self.cluster)
        # A rebalance that was under way begins again: those groups are not among the facts.
        assert after["groups"].items() >= taken["groups"].items()
        assert after["values"].keys() == taken["values"].keys()
        for place, value in taken["values"].items():
            assert after["values"][place] == self.as_put_back(value, after["values"][place])
        for each in ("values", "groups"):
            taken = {**taken, each: None}
            after = {**after, each: None}
        assert after == taken

    def as_put_back(self, value: object, after: object) -> object:
        if isinstance(value, Transaction):
            return value.forked()
        if isinstance(value, PartitionRecord):  # those that have written since are not known
            assert isinstance(after, PartitionRecord)
            assert all(each in value.log.producers for each in after.log.producers)
            return replace(value, log=replace(value.log, producers=after.log.producers))
        return value

    @rule()
    def restart(self) -> None:
        """The cluster is rebuilt from what its keeper has, and goes on; its values are written and read meanwhile."""
        before = facts(self.cluster)
        again = new_cluster()
        state = self.keeper.state()
        values = [(place, CODEC.decoded(*CODEC.encoded(value))) for place, value in state.values]
        again.load(Snapshot(values, state.logs), self.keeper, self.now_ms)
        self.cluster = again
        after = facts(again)
        assert before["groups"].items() <= after["groups"].items()
        assert written(after["values"]) == written(before["values"])
        for each in ("values", "groups"):
            before = {**before, each: None}
            after = {**after, each: None}
        assert after == before

    @invariant()
    def the_keeper_has_what_the_cluster_has(self) -> None:
        state = self.cluster.snapshot()
        kept = self.keeper.state()
        values, kept_values = dict(state.values), dict(kept.values)
        for each in (values, kept_values):
            each.pop(("producer ids",), None)
            for place in [place for place in each if place[0] == "partition"]:
                log = LogRecord(start_offset=each[place].log.start_offset)
                each[place] = replace(each[place], log=log)
        assert written(kept_values) == written(values)
        assert {name: tuple(map(tuple, each)) for name, each in kept.logs.items()} == {
            name: tuple(map(tuple, each)) for name, each in state.logs.items()
        }

    @invariant()
    def no_producer_is_given_what_one_had(self) -> None:
        assert len(set(self.given)) == len(self.given)


def written(values: Mapping[Place, object]) -> dict[Place, Any]:
    """Values as they are written; a collection may come back as one of another type, and a set in another order."""
    return {place: ordered(json.loads(CODEC.encoded(value)[1])) for place, value in values.items()}


def ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: ordered(each) for key, each in value.items()}
    return sorted(map(ordered, value), key=repr) if isinstance(value, list) else value


TestWalk = Walk.TestCase
TestWalk.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)


def test_a_snapshot_copies_no_record() -> None:
    walk = Walk()
    walk.create("t", 1, compacts=False)
    walk.produce("t", 0, "")
    snapshot = walk.cluster.snapshot()
    walk.produce("t", 0, "")
    ((batch,), _, _) = next(iter(snapshot.logs.values()))
    other = new_cluster()
    other.restore(snapshot, 2000)
    log = other.topics.log("t", 0)
    assert log is not None
    assert log.read(0, 10_000, at_least_one=True) is batch
    assert walk.cluster.topics.log("t", 0).end_offset == 4  # type: ignore[union-attr]


def test_it_wants_the_brokers_that_its_partitions_are_on() -> None:
    three = Cluster(SERVICES, brokers=Brokers(3))
    three.topics.create("t", 3)
    three.move_coordinator("g", 3)
    one = new_cluster()
    one.topics.create("kept", 1)
    with pytest.raises(BadClusterError, match=r"brokers \[1, 2, 3\]"):
        one.restore(three.snapshot(), 0)
    assert one.topics.get("kept") is not None
    other = Cluster(SERVICES, brokers=Brokers(3))
    other.restore(three.snapshot(), 0)
    assert other.brokers.coordinator_of("g").id == 3
    with pytest.raises(BadClusterError, match="give as many"):
        one.load(three.snapshot(), NOTHING, 0)
