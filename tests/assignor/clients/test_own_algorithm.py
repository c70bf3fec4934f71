"""CONTRIBUTING's promise: an algorithm is one file and one line, and every client then has it."""

from __future__ import annotations

import importlib
import sys
import time
from types import ModuleType

import pytest
from confluent_kafka import Consumer
from topics import WAIT_S

from loadwise.assignor.algorithms import ALGORITHMS
from loadwise.assignor.load.source import FixedLoad
from loadwise.coordinator import Coordinator
from loadwise.coordinator.groups.consumer.assignors import SERVER_ASSIGNORS, ServerAssignor
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits
from loadwise.coordinator.settings import BrokerSettings

MODULE = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from loadwise.assignor.model import NOBODY, Assignment, GroupSnapshot, Traits

SEEN = []


@dataclass(frozen=True, slots=True)
class Keeping:
    '''Everybody keeps what it owns, up to its share by capacity; the rest is dealt out.'''

    name: ClassVar[str] = "keeping"
    traits: ClassVar[Traits] = Traits(owned=True, load=True, cooperative=True)

    def assign(self, group: GroupSnapshot) -> Assignment:
        SEEN.append(group)
        owner = group.owner.copy()
        most = np.ceil(group.size * group.capacity / group.capacity.sum())
        for member in range(len(group.members)):
            owner[np.flatnonzero(owner == member)[int(most[member]):]] = NOBODY
        for row in np.flatnonzero(owner == NOBODY):
            have = np.bincount(owner[owner != NOBODY], minlength=len(group.members))
            owner[row] = np.argmax(most - have)
        return Assignment(group, owner)
"""


@pytest.fixture
def own(tmp_path, monkeypatch) -> ModuleType:
    """The module, imported, and its algorithm in the registry."""
    (tmp_path / "keeping_assignor.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("keeping_assignor")
    monkeypatch.setitem(ALGORITHMS, "keeping", module.Keeping())
    yield module
    del sys.modules["keeping_assignor"]


@pytest.mark.parametrize(
    ("client", "name"), [("kafka-python", "keeping"), ("kafka-python", "cooperative-keeping"), ("aiokafka", "keeping")]
)
async def test_it_runs_in_a_live_group_and_sees_owned_partitions_load_and_capacity(own, group, topic, client, name):
    load = FixedLoad(load={topic: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    await group.join(client, topic, assignor=name, load=load, capacity=2.0)
    [alone] = await group.settle(6)
    await group.join(client, topic, assignor=name, load=load, capacity=1.0)
    kept, moved = await group.settle(6, [4, 2])
    assert kept == alone - moved
    last = own.SEEN[-1]
    assert sorted(last.capacity) == [1.0, 2.0]
    assert last.load.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert (own.SEEN[-1].owner >= 0).sum() >= 4, "what the first member owned has reached the leader"


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
async def test_an_object_works_without_the_registry(own, monkeypatch, group, topic, client):
    monkeypatch.delitem(ALGORITHMS, "keeping")
    for _ in range(2):
        await group.join(client, topic, assignor=own.Keeping(), load=FixedLoad(load={topic: [1.0] * 6}))
    await group.settle(6, [3, 3])


def test_with_one_more_line_it_serves_consumers_without_assignors_of_their_own(own, monkeypatch, topic_name, group_id):
    monkeypatch.setitem(SERVER_ASSIGNORS, "keeping", ServerAssignor("keeping", "keeping"))
    settings = BrokerSettings(consumer_groups=ConsumerGroupLimits(assignors=["keeping"], heartbeat_interval_ms=50))
    with Coordinator({topic_name: 6}, settings=settings).in_thread() as coordinator:
        members = [
            Consumer(
                {
                    "bootstrap.servers": coordinator.bootstrap_servers,
                    "group.id": group_id,
                    "group.protocol": "consumer",
                    "group.remote.assignor": "keeping",
                }
            )
            for _ in range(2)
        ]
        try:
            for member in members:
                member.subscribe([topic_name])
            deadline = time.monotonic() + WAIT_S
            while [len(member.assignment()) for member in members] != [3, 3]:
                assert time.monotonic() < deadline, "the two members never had three partitions each"
                for member in members:
                    member.poll(0.02)
        finally:
            for member in members:
                member.close()
    assert own.SEEN[-1].load is not None
    assert any((seen.owner >= 0).any() for seen in own.SEEN), "its own targets come back as what members own"
