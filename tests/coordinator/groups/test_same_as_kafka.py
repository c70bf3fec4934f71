"""The same requests to Apache Kafka and to ours get the same answers: who joins, who is fenced, which error code."""

from __future__ import annotations

import struct
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest
from client_messages import client_request, request_bytes
from kafka.protocol import consumer
from record_batches import batch
from sessions import Session
from topics import WAIT_S

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
    yield broker.join("", protocols=[{"name": "other", "metadata": b""}])
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


def a_record_that_is_too_large(broker: Session) -> Iterator[Any]:
    """The record of a classic group may have 1,048,588 bytes on both: the last two sizes are one byte apart."""
    broker.join()
    for generation, size in enumerate((2_000_000, 1_048_307, 1_048_306), start=1):
        yield broker.join(0)[:2]
        share = [{"member_id": broker.member(0), "assignment": bytes(size)}]
        error, *_, given = broker.sync(0, generation, assignments=share)
        yield error, len(given)
        yield broker.describe()[:3]


def a_static_member_that_comes_back_with_too_much(broker: Session) -> Iterator[Any]:
    """Its group cannot be recorded with it: the one that was there stays."""
    yield broker.join(instance="i")
    yield broker.sync(0, instance="i")
    yield broker.join(instance="i", protocols=[{"name": "range", "metadata": bytes(2_000_000)}])
    yield broker.beat(0, instance="i")
    yield broker.describe()[:3]
    yield broker.join(instance="i")
    yield broker.beat(0, instance="i"), broker.beat(1, instance="i")


def commits_are_signs_of_life(broker: Session) -> Iterator[Any]:
    """A member that only commits lives on; one that only syncs does not. 6 s is Kafka's shortest session timeout."""
    yield broker.create_topic()
    broker.wait_for_topic()
    broker.join()
    broker.join(0, session_timeout_ms=6000)
    yield broker.sync(0)
    begun = time.monotonic()
    while time.monotonic() < begun + 8:
        assert broker.commit(0, 1) == 0
    yield broker.beat(0)
    begun = time.monotonic()
    while broker.sync(0)[0] == 0:
        assert time.monotonic() < begun + 60
    yield broker.beat(0)


def a_group_id_that_is_no_utf8(broker: Session) -> Iterator[Any]:
    """Both read what cannot be read as U+FFFD, and go on."""
    name = f"{uuid.uuid4()}-????"
    request = client_request(
        "JoinGroup",
        4,
        group_id=name,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b"m"}],
    )
    broker.socket.sendall(request_bytes(request, framed=True).replace(b"????", b"\xff\xc3\x28?"))
    (size,) = struct.unpack(">i", broker._read(4))
    yield consumer.JoinGroupResponse.decode(broker._read(size), version=4, header=True).error_code
    broker.group = name.replace("????", "\ufffd\ufffd(?")
    deadline = time.monotonic() + WAIT_S
    while (described := broker.describe())[1] == "Dead" and time.monotonic() < deadline:
        time.sleep(0.05)  # Kafka describes what is committed to its log, a moment after it has answered
    yield described


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
    [
        joining,
        syncing_and_beating,
        leaving_and_deleting,
        static_members,
        committing,
        a_record_that_is_too_large,
        a_static_member_that_comes_back_with_too_much,
        commits_are_signs_of_life,
        a_group_id_that_is_no_utf8,
        topics_and_batches,
    ],
    ids=lambda scenario: scenario.__name__,
)
def test_ours_answers_as_kafka_does(
    apache_kafka: str, coordinator: ThreadedCoordinator, scenario: Callable[[Session], Iterator[Any]]
) -> None:
    addresses = (apache_kafka, coordinator.bootstrap_servers)
    with ExitStack() as stack:
        sessions = [stack.enter_context(closing(Session(address))) for address in addresses]
        pool = stack.enter_context(ThreadPoolExecutor(2))  # both at once, for what depends on time
        theirs, ours = pool.map(lambda session: list(scenario(session)), sessions)
    for step, (expected, got) in enumerate(zip(theirs, ours, strict=True)):
        assert got == expected, f"answer {step}"
