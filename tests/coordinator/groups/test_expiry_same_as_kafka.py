"""Offsets and groups that nobody uses lapse at the same time in Apache Kafka and in ours: after a minute here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from consumer_session import ConsumerSession, protocols, synced
from kafka_process import kafka_from_jars
from topics import WAIT_S

from loadwise.coordinator import BrokerSettings, Coordinator, GroupLimits

pytestmark = pytest.mark.kafka

RETENTION_S = 60
OURS = BrokerSettings(groups=GroupLimits(offsets_retention_minutes=1, offsets_retention_check_interval_ms=2000))
THEIRS = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "2000"}


@pytest.fixture(scope="module")
def addresses() -> Iterator[list[str]]:
    with kafka_from_jars(more=THEIRS) as kafka, Coordinator(settings=OURS).in_thread() as ours:
        yield [kafka["PLAINTEXT"], ours.bootstrap_servers]


def fetched(broker: ConsumerSession, name: str) -> Any:
    topic = {"name": broker.full(name), "partition_indexes": [0]}
    reply = broker.ask("OffsetFetch", 9, groups=[{"group_id": broker.group, "topics": [topic]}], require_stable=False)
    (answer,) = reply.groups
    return [each.committed_offset for found in answer.topics for each in found.partitions]


def a_minute_of_groups(address: str) -> Any:
    """What is left of groups of every kind when the last commit of all is older than the retention."""
    with ExitStack() as stack:

        def session(like: ConsumerSession | None = None) -> ConsumerSession:
            made = ConsumerSession(address)
            stack.callback(made.close)
            if like is not None:
                made.topic, made.topics, made.first = like.topic, dict(like.topics), like.first
            return made

        simple = session()
        simple.make("t", 1)
        simple.make("u", 1)
        left, stable, modern, empty = (session(simple) for _ in range(4))
        for broker in (left, stable, empty):
            joined = broker.join(protocols=protocols(broker), version=3, session_timeout_ms=300_000)
            synced(broker, 0, joined[1] - broker.first, [0])
        modern.join_as("a", "t")
        for broker, who, epoch in ((left, left.ids[0], 1), (stable, stable.ids[0], 1), (modern, "a", 1 + modern.first)):
            for name in "tu":
                assert broker.commit_as(who, epoch - broker.first, 0, name=name) == [0]
        left.leave((0, None))
        empty.leave((0, None))
        begun = time.monotonic()
        assert simple.commit_as("", -1, 0) == [0]

        def have_lapsed() -> bool:
            return {simple.describe()[1], left.describe()[1]} == {"Dead"} and all(
                fetched(each, "u") == [-1] for each in (stable, modern)
            )

        # Each partition of Kafka's __consumer_offsets has a timer of its own, so groups lapse up to an interval apart.
        while not have_lapsed():
            assert time.monotonic() < begun + RETENTION_S + WAIT_S
            modern.beat_as("a", 1)
        lasted = time.monotonic() - begun >= RETENTION_S - 1
        return lasted, [
            (fetched(each, "t"), fetched(each, "u"), each.describe()[1], each.listed())
            for each in (simple, left, stable, modern, empty)
        ]


def test_what_lapses_in_kafka_lapses_in_ours(addresses: list[str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        theirs, ours = pool.map(a_minute_of_groups, addresses)
    assert ours == theirs
