"""What the coordinator knows of load, and what weighted groups make of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from consumer_groups import Client, Driver, FakeTopics

from loadwise.coordinator.groups.consumer.state import ConsumerGroupState
from loadwise.coordinator.groups.offsets import Offsets
from loadwise.coordinator.groups.records import OffsetRecord
from loadwise.coordinator.groups.service.loads import LoadMeter


@dataclass
class FakeLog:
    end_offset: int = 0
    start_offset: int = 0


@dataclass
class Cluster:
    """Topic t with two partitions whose ends tests set."""

    topics: FakeTopics = field(default_factory=lambda: FakeTopics(t=2))
    logs: dict[int, FakeLog] = field(default_factory=lambda: {0: FakeLog(), 1: FakeLog()})
    offsets: Offsets = field(default_factory=Offsets)

    def log(self, name: str, partition: int) -> FakeLog | None:
        return self.logs.get(partition) if name == "t" else None

    def commit(self, partition: int, offset: int) -> None:
        record = OffsetRecord(group_id="g", topic="t", partition=partition, offset=offset, leader_epoch=-1, metadata="")
        self.offsets.apply(record)

    def meter(self) -> LoadMeter:
        return LoadMeter(self.topics, self, self.offsets, horizon_ms=10_000)


def test_lag_counts_by_the_horizon() -> None:
    cluster = Cluster()
    cluster.logs[0] = FakeLog(500, start_offset=200)
    cluster.logs[1].end_offset = 100
    cluster.commit(1, 60)
    assert cluster.meter().read("g", ["t"], 0) == {"t": [30.0, 4.0]}, "what is not committed is unread from its start"


def test_rate_is_measured_between_looks() -> None:
    cluster = Cluster()
    meter = cluster.meter()
    assert meter.read("g", ["t"], 0) == {"t": [0.0, 0.0]}
    cluster.logs[0].end_offset = 100
    cluster.commit(0, 100)
    assert meter.read("g", ["t"], 500) == {"t": [0.0, 0.0]}, "not older than a second: the same again"
    assert meter.read("g", ["t"], 2000) == {"t": [50.0, 0.0]}
    assert meter.read("g", ["t"], 4000) == {"t": [0.0, 0.0]}
    cluster.logs[2] = FakeLog(10)
    cluster.topics.set("t", 3)
    assert meter.read("g", ["t"], 6000) == {"t": [0.0, 0.0, 1.0]}, "a new partition has no rate yet"


def test_a_topic_that_is_gone_has_no_loads() -> None:
    assert Cluster().meter().read("g", ["none"], 0) == {"none": []}


def weighted(*loads: float) -> tuple[Driver, Client, Client]:
    driver = Driver(FakeTopics(t=4), load_interval_ms=1000)
    driver.loads.loads = {"t": loads}
    clients = [driver.client(name, assignor="weighted") for name in "ab"]
    clients[0].beat()
    driver.settle(*clients)
    return driver, clients[0], clients[1]


def test_a_weighted_group_goes_by_load() -> None:
    _, first, second = weighted(30.0, 10.0, 10.0, 10.0)
    assert sorted([first.partitions["t"], second.partitions["t"]]) == [[0], [1, 2, 3]]


def looked_at(driver: Driver, *loads: float | None) -> None:
    """The loads are these when the group looks at them the next time."""
    driver.loads.loads = {"t": loads}
    driver.wait(1000)


def test_load_is_looked_at_again_and_again() -> None:
    driver, first, _ = weighted(1.0, 1.0, 1.0, 1.0)
    heavy = first.partitions["t"]
    driver.wait(1000)
    epoch = driver.group.generation
    driver.loads.loads = {"t": [20.0 if number in heavy else 1.0 for number in range(4)]}
    driver.wait(999)
    assert driver.group.generation == epoch
    driver.wait(1)
    assert driver.group.generation == epoch + 1


def test_skew_that_comes_later_makes_new_targets() -> None:
    driver, first, second = weighted(1.0, 1.0, 1.0, 1.0)
    heavy = first.partitions["t"]
    epoch = driver.group.generation
    looked_at(driver, *[20.0 if number in heavy else 1.0 for number in range(4)])
    assert driver.group.generation == epoch + 1
    assert driver.transitions[-1].reason == "load has got uneven"
    driver.settle(first, second)
    assert {number in first.partitions["t"] for number in heavy} == {True, False}, "one heavy partition each"
    looked_at(driver, *[20.0 if number in heavy else 1.0 for number in range(4)])
    assert driver.group.generation == epoch + 1
    assert driver.group.state is ConsumerGroupState.STABLE


@pytest.mark.parametrize(
    "loads", [[1.1, 1.1, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0], [None, None, None, None]], ids=["slight", "idle", "unknown"]
)
def test_nothing_moves_without_need(loads: list[float | None]) -> None:
    driver, _, _ = weighted(1.0, 1.0, 1.0, 1.0)
    epoch = driver.group.generation
    looked_at(driver, *loads)
    assert driver.group.generation == epoch


def test_one_partition_that_is_too_heavy_for_anybody_moves_nothing() -> None:
    driver, _, _ = weighted(100.0, 1.0, 1.0, 1.0)
    epoch = driver.group.generation
    looked_at(driver, 200.0, 1.0, 1.0, 1.0)
    assert driver.group.generation == epoch


def test_other_assignors_do_not_look_at_load() -> None:
    driver = Driver(FakeTopics(t=4), load_interval_ms=1000)
    client = driver.client("a")
    client.beat()
    epoch = driver.group.generation
    looked_at(driver, 100.0, 1.0, 1.0, 1.0)
    driver.wait(5000)
    assert driver.group.generation == epoch
