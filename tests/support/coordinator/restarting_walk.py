"""A cluster that anything may happen to, and that is restarted and put back to snapshots meanwhile: what must hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from cluster_walk import GROUPS, IDS, TOPICS, ClusterWalk, facts, new_router
from hypothesis.stateful import invariant, precondition, rule

from loadwise.coordinator.cluster.records import LogRecord, PartitionRecord
from loadwise.coordinator.faults.injector import FaultInjector
from loadwise.coordinator.keeper import Place, Snapshot
from loadwise.coordinator.storage.kinds import Codec
from loadwise.coordinator.transactions.transaction import Transaction

CODEC = Codec()


class RestartingWalk(ClusterWalk):
    """Anything happens to a cluster; what its keeper has, and what a snapshot has, is what it is."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot: Snapshot | None = None
        self.steps = 0

    @rule()
    def take(self) -> None:
        self.snapshot = self.cluster.snapshot()
        self.taken = facts(self.cluster)
        self.acknowledged_then = dict(self.acknowledged)

    @precondition(lambda self: self.snapshot is not None)
    @rule()
    def put_back(self) -> None:
        assert self.snapshot is not None
        self.injector.restore(self.snapshot, self.now_ms)
        self.lose_connections()
        self.acknowledged = dict(self.acknowledged_then)
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
        router = new_router()
        again = router.cluster
        state = self.keeper.state()
        values = [(place, CODEC.decoded(*CODEC.encoded(value))) for place, value in state.values]
        again.load(Snapshot(values, state.logs), self.keeper, self.now_ms)
        self.cluster = again
        self.injector = FaultInjector(router, self.faults)
        self.lose_connections()
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


def written(values: Mapping[Place, object]) -> dict[Place, Any]:
    """Values as they are written; a collection may come back as one of another type, and a set in another order."""
    return {place: ordered(json.loads(CODEC.encoded(value)[1])) for place, value in values.items()}


def ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: ordered(each) for key, each in value.items()}
    return sorted(map(ordered, value), key=repr) if isinstance(value, list) else value


def soak(hours: int, seed: int) -> RestartingWalk:
    """Let anything happen to a cluster for so many hours of its clock, and check it after each step."""
    random, walk = Random(seed), RestartingWalk()
    end_ms = walk.now_ms + hours * 3_600_000
    topic, group, name = (lambda: random.choice(TOPICS)), (lambda: random.choice(GROUPS)), (lambda: random.choice(IDS))
    steps: list[tuple[int, Any]] = [
        (20, lambda: walk.produce(topic(), random.randrange(2), random.choice(["", "p", "q"]))),
        (20, lambda: walk.send_in_transaction(name(), topic(), random.randrange(2))),
        (8, lambda: walk.commit_in_transaction(name(), topic(), group())),
        (10, lambda: walk.end(name(), random.random() < 0.7, random.choice([4, 5]))),
        (6, lambda: walk.init(name(), random.random() < 0.5)),
        (10, lambda: walk.commit(group(), topic(), random.randrange(2))),
        (30, lambda: walk.beat(random.choice("kl"), random.choice("ab"), set())),
        (4, lambda: walk.beat(random.choice("kl"), random.choice("ab"), {topic(), topic()})),
        (2, lambda: walk.leave(random.choice("kl"), random.choice("ab"))),
        (10, lambda: walk.join_classic(random.choice("ck"))),
        (4, lambda: walk.create(topic(), 2, random.random() < 0.2)),
        (1, lambda: walk.grow(topic())),
        (1, lambda: walk.delete(topic())),
        (2, lambda: walk.move(topic())),
        (2, lambda: walk.configure(topic(), random.choice(["1000", "600000", None]), random.random() < 0.3)),
        (2, lambda: walk.delete_records(topic(), random.randrange(2), -1)),
        (1, lambda: walk.abort_by_admin(group(), name(), random.random() < 0.5)),
        (1, lambda: walk.delete_group(group())),
        (2, lambda: walk.move_coordinator(group())),
        (1, lambda: walk.limit(random.choice(["", "alice"]), random.choice([None, 10.0]))),
        (1, lambda: walk.user(random.choice(["alice", "bob"]), random.choice([b"1", None]))),
        (6, lambda: walk.fault(random.choice(["Produce", "EndTxn", "JoinGroup", "*"]), random.randrange(4), False)),
        (6, lambda: walk.fault(random.choice(["EndTxn", "OffsetCommit", "*"]), random.randrange(4), True)),
        (1, walk.restart),
        (1, walk.take),
        (1, lambda: walk.put_back() if walk.snapshot is not None else None),
        (60, lambda: walk.wait(random.choice([100, 3000, 10_000]))),
        (1, lambda: walk.wait(700_000)),
    ]  # fmt: skip
    weights = [weight for weight, _ in steps]
    checks = [
        walk.no_partition_has_two_owners,
        walk.generations_rise,
        walk.what_was_acknowledged_is_there,
        walk.no_producer_is_given_what_one_had,
    ]
    done = 0
    while walk.now_ms < end_ms:
        ((_, step),) = random.choices(steps, weights)
        step()
        done += 1
        for check in checks:
            check()
        if done % 20 == 0:
            walk.the_keeper_has_what_the_cluster_has()
    walk.steps = done
    return walk
