"""A weighted group under load, by the fake clock: members process and commit, and the group moves partitions or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from consumer_groups import Client, Driver, FakeTopics

from loadwise.assignor.live.events import Assigned
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.watch import GroupWatch
from loadwise.coordinator.groups.consumer.group import ConsumerGroup
from loadwise.coordinator.groups.consumer.state import ConsumerGroupState
from loadwise.coordinator.groups.consumer_records import ConsumerRecord

PARTITIONS = 12
COMMIT_S = 5


class World:
    """Topic t, consumers of unequal speed, and a step a second: records come, are processed and committed.

    Those of the topic "costly", whose partitions are numbered after those of t, cost ten times as much.
    """

    def __init__(
        self,
        rates: Sequence[float],
        speeds: Mapping[str, float],
        *,
        seed: int = 1,
        assignor: str = "weighted",
        late: Sequence[str] = (),
        costly: Sequence[float] = (),
        **limits: Any,
    ) -> None:
        self.driver = Driver(FakeTopics(t=len(rates), **({"costly": len(costly)} if costly else {})), **limits)
        self.rates = np.array([*rates, *costly], float)
        self.costs = np.array([1.0] * len(rates) + [10.0] * len(costly))
        self.places = [("t", number) for number in range(len(rates))]
        self.places += [("costly", number) for number in range(len(costly))]
        self.speeds = dict(speeds)
        self.done = np.zeros(len(self.rates))
        self.ends = np.zeros(len(self.rates))
        self._rng = np.random.default_rng(seed)
        topics = ("t", "costly") if costly else ("t",)
        self.clients = [
            self.driver.client(name, topics=topics, assignor=assignor) for name in speeds if name not in late
        ]
        self.driver.loads.ends = dict.fromkeys(self.places, 0)
        self.driver.settle(*self.clients)

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.ends += self._rng.poisson(self.rates)
            for number, client in enumerate(self.clients):
                mine = self.of(client)
                waiting = self.ends[mine] - self.done[mine]
                work = float((waiting * self.costs[mine]).sum())
                part = min(self.speeds[client.member_id] / max(work, 1e-9), 1.0)
                self.done[mine] += waiting * part
                if self.driver.now_ms // 1000 % COMMIT_S == number % COMMIT_S:
                    self.driver.loads.committed |= {self.places[each]: int(self.done[each]) for each in mine}
                    self.driver.loads.committed_ms |= {self.places[each]: self.driver.now_ms for each in mine}
            self.driver.loads.ends = dict(zip(self.places, map(int, self.ends), strict=True))
            self.driver.wait(1000)
            for client in self.clients:
                assert not client.beat().error

    def of(self, client: Client) -> list[int]:
        return [self.places.index((topic, each)) for topic, owned in client.partitions.items() for each in owned]

    def loads(self) -> list[float]:
        """What the records that come to each member cost, in each second."""
        return [float((self.rates * self.costs)[self.of(client)].sum()) for client in self.clients]

    @property
    def lag_s(self) -> float:
        """The whole lag, in seconds of all traffic."""
        return float((self.ends - self.done).sum() / self.rates.sum())

    def bumps(self) -> list[str]:
        return [each.reason for each in self.driver.transitions if each.reason.startswith("for the load")]


def drift(world: World, total: float) -> None:
    """All of the load comes to the partitions of the first member."""
    hot = world.of(world.clients[0])
    world.rates = np.array([total / len(hot) if number in hot else 0.0 for number in range(len(world.rates))])


THREE = {"a": 900.0, "b": 900.0, "c": 900.0}


@pytest.mark.parametrize("phase_s", range(3))
def test_hot_partitions_that_come_to_one_member_are_shared(phase_s: int) -> None:
    world = World([112.5] * PARTITIONS, THREE, seed=phase_s)
    world.run(120 + phase_s)
    assert not world.bumps()
    drift(world, 1350)
    assert max(world.loads()) == 1350
    world.run(15)
    assert world.bumps(), "a shift is seen within 15 seconds"
    world.run(45)
    assert max(world.loads()) <= 700, "four hot partitions on three members: two are the best possible"
    assert world.lag_s <= 1
    assert 1 <= len(world.bumps()) <= 3
    assert "->" in world.bumps()[0], "who had how much, and has after it"


@pytest.mark.parametrize("seed", range(3))
def test_a_slow_member_is_relieved(seed: int) -> None:
    world = World([75.0] * PARTITIONS, THREE | {"c": 120.0}, seed=seed)
    world.run(90)
    assert world.lag_s <= 1
    assert world.loads()[2] <= 120
    assert 1 <= len(world.bumps()) <= 3


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_steady_load_moves_nothing(seed: int) -> None:
    rates = [300.0, 200, 150, 100, 100, 80, 60, 50, 40, 30, 20, 10]
    world = World(rates, {"a": 500.0, "b": 500.0, "c": 500.0}, seed=seed)
    world.run(60)  # what was given out by count before any rate was known may be put right
    before = world.driver.group.generation
    world.run(1800)
    assert world.driver.group.generation == before
    assert world.driver.group.state is ConsumerGroupState.STABLE


def test_the_first_targets_go_by_what_the_logs_tell_of_the_last_minute() -> None:
    driver = Driver(FakeTopics(t=4))
    rates = [30, 10, 30, 10]
    driver.loads.before = {("t", number): 0 for number in range(4)}
    driver.loads.ends = {("t", number): 60 * rate for number, rate in enumerate(rates)}
    driver.loads.committed = dict(driver.loads.ends)
    clients = [driver.client(name, assignor="weighted") for name in "ab"]
    driver.settle(*clients)
    assert [sum(rates[number] for number in client.partitions["t"]) for client in clients] == [40, 40]


def test_what_waits_counts_before_anything_is_committed() -> None:
    driver = Driver(FakeTopics(t=4))
    driver.loads.ends = {("t", number): 1000 * lag for number, lag in enumerate([3, 1, 1, 1])}
    clients = [driver.client(name, assignor="weighted") for name in "ab"]
    driver.settle(*clients)
    assert sorted(client.partitions["t"] for client in clients) == [[0], [1, 2, 3]]


def test_a_newcomer_gets_its_share_of_the_load() -> None:
    world = World([300.0, 100, 300, 100], {"a": 900.0, "b": 900.0}, late=["b"])
    world.run(60)
    world.clients.append(world.driver.client("b", assignor="weighted"))
    world.driver.settle(*world.clients)
    assert world.loads() == [400, 400]


def test_switched_off_it_goes_by_load_only_when_members_come() -> None:
    world = World([112.5] * PARTITIONS, THREE, live=False)
    world.run(60)
    before = world.driver.group.generation
    drift(world, 1350)
    world.run(120)
    assert world.driver.group.generation == before
    world.speeds["d"] = 900.0
    world.clients.append(world.driver.client("d", assignor="weighted"))
    world.driver.settle(*world.clients)
    assert max(world.loads()) < 1350


def test_a_dry_run_only_tells() -> None:
    world = World([112.5] * PARTITIONS, THREE, live=LiveSettings(dry_run=True))
    world.run(60)
    before = world.driver.group.generation
    drift(world, 1350)
    world.run(60)
    assert world.driver.group.generation == before
    told = [each for each in world.driver.transitions if each.reason.startswith("dry run: Generation")]
    assert told
    assert told[0].before == told[0].after == "Stable"


def test_a_group_that_is_too_small_is_told_so_once() -> None:
    world = World([300.0] * PARTITIONS, THREE)
    world.run(300)
    told = [each.reason for each in world.driver.transitions if "too small" in each.reason]
    assert len(told) == 1
    assert len(world.bumps()) <= 1


@pytest.mark.parametrize("seed", range(3))
def test_where_it_is_stated_what_records_cost_those_of_a_costly_topic_are_shared(seed: int) -> None:
    """Members of KIP-848 tell nothing, and of commits alone nobody can tell a costly topic from a slow member."""
    live = LiveSettings(cost={"costly": 10})
    world = World([75.0] * PARTITIONS, THREE, costly=[15.0] * 6, seed=seed, live=live)
    world.run(60)
    mine = world.of(world.clients[0])
    hot = [each for each in mine if world.costs[each] > 1]
    world.rates = np.where(world.costs > 1, 0.0, 75.0)
    world.rates[hot] = 90.0 / len(hot)
    assert max(world.loads()) > 900
    world.run(60)
    assert max(world.loads()) <= 900
    assert world.lag_s <= 1
    assert 1 <= len(world.bumps()) <= 3


def test_one_partition_that_is_too_heavy_for_anybody_moves_next_to_nothing() -> None:
    world = World([1200.0, 100, 100, 100, 100, 100], THREE)
    world.run(1800)
    assert len(world.bumps()) <= 1


def test_other_assignors_do_not_look_at_the_load() -> None:
    world = World([112.5] * PARTITIONS, THREE, assignor="uniform")
    world.run(10)
    before = world.driver.group.generation
    drift(world, 1350)
    world.run(120)
    assert world.driver.group.generation == before


def test_the_end_of_a_member_that_knows_loads_is_the_end_of_the_watch() -> None:
    world = World([100.0] * 4, {"a": 900.0})
    world.run(30)
    assert world.driver.group.next_deadline_ms is not None
    world.driver.beat("a", -1)
    assert world.driver.group.next_deadline_ms is None


def test_a_rebalance_takes_from_new_targets_until_all_have_reached_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart nobody knows when the targets were made."""
    took_ms: list[int] = []
    handle = GroupWatch.handle

    def noting(watch: GroupWatch, event: Any) -> Any:
        if isinstance(event, Assigned):
            took_ms.append(event.duration_ms)
        return handle(watch, event)

    monkeypatch.setattr(GroupWatch, "handle", noting)
    driver = Driver(FakeTopics(t=4))
    first, second = driver.client("a", assignor="weighted"), driver.client("b", assignor="weighted")
    driver.settle(first)
    second.beat()
    driver.wait(3000)
    driver.settle(first, second)
    assert took_ms == [0, 3000]
    records = [record for record in driver.journal if isinstance(record, ConsumerRecord)]
    driver.group = ConsumerGroup.replay(
        "g", records, driver.topics, driver.now_ms, driver.group.limits, loads=driver.loads
    )
    for _ in range(10):
        driver.wait(1000)
        driver.settle(first, second)
    assert took_ms == [0, 3000, 0]
