"""Three brokers, and a topic whose partitions they lead unevenly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from uneven import PARTITIONS, leader_of

from loadwise.coordinator import Coordinator, ThreadedCoordinator


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreadedCoordinator]:
    with Coordinator(brokers=3).in_thread() as coordinator:
        yield coordinator


@pytest.fixture
def topic(cluster: ThreadedCoordinator, request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.node.name.translate(str.maketrans("[]", "--"))
    cluster.create_topic(name, PARTITIONS)
    for partition in range(PARTITIONS):
        cluster.move_leader(name, partition, leader_of(partition))
    yield name
    cluster.faults.clear()
    cluster.clock.resume()
