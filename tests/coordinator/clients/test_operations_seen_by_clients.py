"""What is done to a group from outside, and faults at a member's requests, as real members live through them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import aiokafka
import confluent_kafka
import kafka
import pytest
from polled import know
from topics import WAIT_S

from loadwise.coordinator import Coordinator, ThreadedCoordinator
from loadwise.coordinator.groups.service.views import GroupView

HEARTBEAT_MS = 200
SESSION_MS = 60_000


def kafka_python(address: str, group_id: str, stopping: threading.Event) -> None:
    with kafka.KafkaConsumer(
        "t",
        bootstrap_servers=address,
        group_id=group_id,
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        retry_backoff_ms=20,
    ) as consumer:
        know(consumer)
        while not stopping.is_set():
            consumer.poll(2000)  # not shorter: this client loses joins that outlast a poll


def aiokafka_(address: str, group_id: str, stopping: threading.Event) -> None:
    async def run() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            "t",
            bootstrap_servers=address,
            group_id=group_id,
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            retry_backoff_ms=20,
        )
        async with consumer:
            while not stopping.is_set():
                await consumer.getmany(timeout_ms=100)

    asyncio.run(run())


def confluent(address: str, group_id: str, stopping: threading.Event, **config: str) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group_id,
            "enable.auto.commit": False,
            "log_level": 0,
            **({name.replace("_", "."): value for name, value in config.items()}),
            **({} if config else {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}),
        }
    )
    consumer.subscribe(["t"])
    while not stopping.is_set():
        consumer.poll(0.1)
    consumer.close()


CLIENTS = {
    "kafka-python": kafka_python,
    "aiokafka": aiokafka_,
    "confluent": confluent,
    "confluent, KIP-848": partial(confluent, group_protocol="consumer"),
}


@contextmanager
def member(client: Callable[[str, str, threading.Event], None], address: str, group_id: str) -> Iterator[None]:
    """A member of the group, on a thread of its own."""
    stopping = threading.Event()
    thread = threading.Thread(target=client, args=(address, group_id, stopping))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(WAIT_S)
        assert not thread.is_alive()


def settled(coordinator: ThreadedCoordinator, group_id: str, after: int = 0) -> GroupView:
    """Wait until the group's only member has both partitions again, in a later generation."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        for group in coordinator.groups.all():
            owned = [each.assignment for each in group.members]
            is_settled = group.state == "Stable" and group.generation > after and owned == [{"t": [0, 1]}]
            if group.group_id == group_id and is_settled:
                return group
        time.sleep(0.02)
    raise AssertionError(coordinator.groups.all())


@pytest.fixture(scope="module")
def acted_on() -> Iterator[ThreadedCoordinator]:
    with Coordinator({"t": 2}).in_thread() as coordinator:
        yield coordinator


@pytest.mark.parametrize("client", CLIENTS)
def test_a_member_comes_back_from_whatever_is_done_to_it(
    acted_on: ThreadedCoordinator, client: str, group_id: str
) -> None:
    groups, faults = acted_on.groups, acted_on.faults
    is_classic = "KIP-848" not in client
    beat = "Heartbeat" if is_classic else "ConsumerGroupHeartbeat"
    with member(CLIENTS[client], acted_on.bootstrap_servers, group_id):
        group = settled(acted_on, group_id)
        assert group.type == ("classic" if is_classic else "consumer")
        groups.kick(group_id, group.members[0].member_id)
        group = settled(acted_on, group_id, group.generation)
        groups.expire_session(group_id, group.members[0].member_id)
        group = settled(acted_on, group_id, group.generation)
        groups.rebalance(group_id)
        group = settled(acted_on, group_id, group.generation)
        fault = faults.answer(beat, "UNKNOWN_MEMBER_ID", group=group_id, member=group.members[0].member_id)
        if is_classic:
            # The client joins anew. Its old self stays a member until its session ends, which the test sees to.
            while len(now := groups.get(group_id).members) < 2 and now[0].member_id == group.members[0].member_id:
                time.sleep(0.02)
            groups.expire_session(group_id, group.members[0].member_id)
            group = settled(acted_on, group_id, group.generation)
        while fault.hits == 0:
            time.sleep(0.02)
        lost = faults.disconnect(beat, group=group_id)
        while lost.hits == 0:
            time.sleep(0.02)
        settled(acted_on, group_id)
    reasons = " | ".join(moment.reason for moment in groups.get(group_id).history)
    for reason in ("left", "the session of", "forced by a test"):
        assert reason in reasons
