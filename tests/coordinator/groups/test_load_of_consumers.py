"""A weighted group of confluent-kafka's own consumers (KIP-848) whose hot partitions move while records come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import Consumer, Producer
from topics import WAIT_S, fill

from loadwise.assignor.live.settings import LiveSettings
from loadwise.coordinator import BrokerSettings, ConsumerGroupLimits, Coordinator, ThreadedCoordinator

PARTITIONS = 6
SPEED = 300
"""Records that each of three members processes in a second."""
PIECE_S = 0.05


@pytest.fixture
def coordinator(topic_name: str) -> Iterator[ThreadedCoordinator]:
    """One that looks at the load every second."""
    limits = ConsumerGroupLimits(heartbeat_interval_ms=100, load_interval_ms=1000, live=LiveSettings())
    with Coordinator({topic_name: PARTITIONS}, settings=BrokerSettings(consumer_groups=limits)).in_thread() as running:
        yield running


class Traffic:
    """Records that come and are processed, a piece of a second after the other, and late where the machine is."""

    def __init__(self, servers: str, topic: str, members: list[Consumer]) -> None:
        self.rates = [0.0] * PARTITIONS
        self.processed = 0
        self._topic, self._members = topic, members
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        self._owed = [0.0] * PARTITIONS

    def until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not reached():
            began = time.monotonic()
            assert began < deadline, [member.assignment() for member in self._members]
            for partition, rate in enumerate(self.rates):
                self._owed[partition] += rate * PIECE_S
                for _ in range(int(self._owed[partition])):
                    self._producer.produce(self._topic, b"x", partition=partition)
                self._owed[partition] %= 1
            self._producer.poll(0)
            for member in self._members:
                messages = member.consume(round(SPEED * PIECE_S), 0.005)
                assert not any(message.error() for message in messages)
                self.processed += len(messages)
            time.sleep(max(PIECE_S - (time.monotonic() - began), 0))  # the pace of the traffic

    def owned(self) -> list[set[int]]:
        return [{each.partition for each in member.assignment()} for member in self._members]


def member(coordinator: ThreadedCoordinator, topic: str, group_id: str, **more: object) -> closing[Consumer]:
    config = {
        "bootstrap.servers": coordinator.bootstrap_servers,
        "group.id": group_id,
        "group.protocol": "consumer",
        "group.remote.assignor": "weighted",
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 1000,
        "fetch.wait.max.ms": 10,
    }
    consumer = Consumer(config | {name.replace("__", "."): value for name, value in more.items()})
    consumer.subscribe([topic])
    return closing(consumer)


def test_a_second_member_shares_what_waits(coordinator: ThreadedCoordinator, topic_name: str, group_id: str) -> None:
    """As much waits in one partition as in all others together."""
    fill(coordinator.bootstrap_servers, topic_name, [500, *[100] * (PARTITIONS - 1)])
    with ExitStack() as stack:
        # However much they have read by then, nothing is committed, so all of it waits.
        members = [
            stack.enter_context(member(coordinator, topic_name, group_id, enable__auto__commit=False)) for _ in range(2)
        ]
        traffic = Traffic(coordinator.bootstrap_servers, topic_name, members)
        traffic.until(lambda: sorted(map(len, traffic.owned())) == [1, PARTITIONS - 1])
        assert {0} in traffic.owned()


@pytest.mark.long
def test_hot_partitions_that_come_to_one_member_are_shared_and_steady_ones_stay(
    coordinator: ThreadedCoordinator, topic_name: str, group_id: str
) -> None:
    with ExitStack() as stack:
        members = [stack.enter_context(member(coordinator, topic_name, group_id)) for _ in range(3)]
        traffic = Traffic(coordinator.bootstrap_servers, topic_name, members)
        traffic.until(lambda: [len(each) for each in traffic.owned()] == [2, 2, 2])
        steady = coordinator.groups.get(group_id).generation
        traffic.rates = [40.0] * PARTITIONS
        traffic.until(lambda: traffic.processed > 8 * sum(traffic.rates))
        assert coordinator.groups.get(group_id).generation == steady
        hot = traffic.owned()[0]
        traffic.rates = [220.0 if number in hot else 0.0 for number in range(PARTITIONS)]
        traffic.until(lambda: all(len(each & hot) <= 1 for each in traffic.owned()))
        reasons = [each.reason for each in coordinator.groups.get(group_id).history]
        assert any(each.startswith("for the load: Generation") for each in reasons), reasons
        traffic.until(lambda: coordinator.groups.get(group_id).lag < sum(traffic.rates) * 1.5)
