"""Locks of a share group's records end at the same time in Apache Kafka and in ours: after 15 seconds here.

This has an Apache Kafka of its own. Where the locks of another group ended shortly before, a timer of Kafka 4.3.1
stops: no lock of any group ended after that, for as long as we watched (30 seconds longer than the lock should last).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from beside_kafka import sessions_agree
from kafka_process import kafka_from_jars
from share_session import ShareSession
from topics import WAIT_S

from loadwise.coordinator import ThreadedCoordinator

pytestmark = pytest.mark.kafka

ACCEPT = 1


def locks_that_end(broker: ShareSession) -> Iterator[Any]:
    broker.make(**{"record.lock.duration.ms": "15000"})
    broker.fill(3)
    broker.join_as("a")
    yield broker.acquire_as("a", 0)
    yield broker.acquire_as("b", 0)
    yield broker.acquire_as("b", 1, max_wait_ms=int(WAIT_S * 1000))
    yield broker.tell_as("a", 1, {0: [(0, 2, [ACCEPT])]})
    yield broker.tell_as("b", 2, {0: [(0, 2, [ACCEPT])]})


def test_locks_end_when_kafka_s_do(coordinator: ThreadedCoordinator) -> None:
    with kafka_from_jars() as kafka:
        sessions_agree(locks_that_end, ShareSession, kafka["PLAINTEXT"], coordinator.bootstrap_servers)
