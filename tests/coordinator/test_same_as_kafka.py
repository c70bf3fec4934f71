"""The same requests to Apache Kafka and to ours get the same answers: who joins, who is fenced, which error code."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka.protocol import consumer
from record_batches import batch
from sessions import Session

from loadwise.coordinator import ThreadedCoordinator

pytestmark = pytest.mark.kafka


def joining(broker: Session) -> Iterator[Any]:
    yield broker.join("nobody")
    yield broker.join(session_timeout_ms=2_000_000_000)
    yield broker.join(protocols=[])
    yield broker.join(protocol_type="")
    yield broker.join(group_id="")
    yield broker.join()
    yield broker.join(0)
    yield broker.join(0)
    yield broker.join("", protocols=[consumer.JoinGroupRequest.JoinGroupRequestProtocol(name="other", metadata=b"")])
    yield broker.describe()


def syncing_and_beating(broker: Session) -> Iterator[Any]:
    yield broker.sync("nobody")
    yield broker.beat("nobody")
    broker.join()
    yield broker.join(0)
    yield broker.beat(0)
    yield broker.sync(0, generation=7)
    yield broker.sync(0, protocol_type="connect")
    yield broker.sync(0, protocol_name="other")
    yield broker.sync(0, protocol_type=None)
    yield broker.sync(0, instance="i")
    yield broker.sync(0)
    yield broker.sync(0)
    yield [broker.beat(0), broker.beat(0, 0), broker.beat("nobody"), broker.beat(0, instance="i")]
    yield broker.describe()


def leaving_and_deleting(broker: Session) -> Iterator[Any]:
    yield broker.leave(("nobody", None))
    yield broker.delete()
    broker.join()
    broker.join(0)
    broker.sync(0)
    yield broker.delete()
    yield broker.leave(("nobody", None), ("", "no-instance"), ("", None))
    yield broker.leave((0, None))
    yield [broker.beat(0), broker.sync(0), broker.join(0)]
    yield broker.describe()
    yield [broker.delete(), broker.delete()]
    yield broker.describe()


def static_members(broker: Session) -> Iterator[Any]:
    yield broker.join(instance="i")
    yield broker.sync(0, instance="i")
    yield broker.join(instance="i")
    yield [broker.beat(0, instance="i"), broker.beat(0), broker.beat(1, instance="i"), broker.beat(1)]
    yield [broker.sync(0, instance="i"), broker.sync(1, instance="i")]
    yield broker.join(0, instance="i")
    yield broker.commit(0, 1, "i")
    yield broker.leave((0, "i"))
    yield broker.join(instance="i", version=7)
    yield broker.leave(("", "i"))
    yield broker.describe()


def committing(broker: Session) -> Iterator[Any]:
    yield [broker.commit("nobody", 1, version=9), broker.commit("nobody", 1, version=8)]
    yield broker.create_topic()
    broker.wait_for_topic()
    yield broker.commit("", -1)
    yield broker.describe()
    broker.join()
    broker.join(0)
    yield broker.commit(0, 1)
    broker.sync(0)
    yield [
        broker.commit(0, 1),
        broker.commit(0, 2),
        broker.commit(0, -1),
        broker.commit("", -1),
        broker.commit("nobody", 1),
    ]


def topics_and_batches(broker: Session) -> Iterator[Any]:
    yield [broker.create_topic(), broker.create_topic(), broker.create_topic(broker.topic.replace("-", ".") + "_x")]
    yield broker.create_topic(broker.topic.replace("-", ".") + ".x")
    yield [broker.create_topic(name) for name in ("", ".", "a/b", "x" * 250)]
    yield [broker.create_topic(f"{broker.topic}-{count}", count) for count in (0, -2)]
    yield broker.create_topic(f"{broker.topic}-r", replicas=3)
    broker.wait_for_topic()
    now = int(time.time() * 1000)
    good = batch([b"a", b"b"], timestamp=now)
    yield [broker.produce(data) for data in (good, good[:-1], good + good, good[:20], b"", good[:-1] + b"?")]
    yield [broker.produce(good, acks) for acks in (1, 5)]
    sequences = [(0, 0), (0, 1), (0, 1), (0, 0), (0, 5), (1, 5), (1, 0), (0, 2)]
    yield [broker.produce(batch([b"x"], timestamp=now, producer=(7_000_000, *each))) for each in sequences]


@pytest.mark.parametrize(
    "scenario",
    [joining, syncing_and_beating, leaving_and_deleting, static_members, committing, topics_and_batches],
    ids=lambda scenario: scenario.__name__,
)
def test_ours_answers_as_kafka_does(
    apache_kafka: str, coordinator: ThreadedCoordinator, scenario: Callable[[Session], Iterator[Any]]
) -> None:
    with closing(Session(apache_kafka)) as theirs, closing(Session(coordinator.bootstrap_servers)) as ours:
        for step, (expected, got) in enumerate(zip(scenario(theirs), scenario(ours), strict=True)):
            assert got == expected, f"answer {step}"
