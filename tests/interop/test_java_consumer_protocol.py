"""Java consumers of KIP-848, unmodified, against our coordinator and Apache Kafka: alone and beside other clients."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kafka import KafkaConsumer
from polled import polled
from programs import JavaMember, compiled_java
from topics import fill, make_topic, until

from loadwise.coordinator import BrokerSettings, ConsumerGroupLimits, Coordinator

pytestmark = pytest.mark.kafka

SOURCE = Path(__file__).with_name("ConsumerProtocolMember.java")


class ConsumerMember(JavaMember):
    """A Java consumer in a process of its own."""

    def __init__(self, command: list[str]) -> None:
        self.owned: set[str] = set()
        self.read = 0
        super().__init__(command)

    def take(self, what: str, rest: list[str]) -> None:
        if what == "owns":
            self.owned = set(rest)
        elif what == "read":
            self.read = int(rest[0])


@pytest.fixture(scope="session")
def java() -> list[str]:
    """The command that runs the Java member."""
    return [*compiled_java(SOURCE, log_level="error"), "ConsumerProtocolMember"]


@pytest.fixture(params=["loadwise", "kafka"])
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of our coordinator, then of Apache Kafka."""
    if request.param == "kafka":
        yield request.getfixturevalue("apache_kafka")
        return
    limits = ConsumerGroupLimits(heartbeat_interval_ms=200)
    with Coordinator(settings=BrokerSettings(consumer_groups=limits)).in_thread() as coordinator:
        yield coordinator.bootstrap_servers


@pytest.fixture
def names() -> tuple[str, str]:
    """A topic and a group that no run before had."""
    return f"topic-{uuid.uuid4()}", f"group-{uuid.uuid4()}"


def test_members_share_take_over_and_resume(java: list[str], broker: str, names: tuple[str, str]) -> None:
    topic, group = names
    make_topic(broker, topic, 4)
    fill(broker, topic, [10] * 4)
    everything = {f"{topic}-{number}" for number in range(4)}
    with ExitStack() as stack:
        command = [*java, broker, group, "names", topic]
        first, second = ConsumerMember(command), ConsumerMember(command)
        stack.callback(first.leave)
        with ExitStack() as inner:
            inner.callback(second.leave)
            until(
                lambda: len(first.owned) == len(second.owned) == 2 and first.owned | second.owned == everything,
                lambda: (first.owned, second.owned),
            )
            until(lambda: first.read + second.read >= 40, lambda: (first.read, second.read))
        until(lambda: first.owned == everything, lambda: first.owned)
        before = first.read
        fill(broker, topic, [5] * 4)
        until(lambda: first.read >= before + 20, lambda: first.read)
        assert first.read == before + 20, "the other one had committed what it read"


def test_a_regular_expression_finds_new_topics(java: list[str], broker: str, names: tuple[str, str]) -> None:
    topic, group = names
    make_topic(broker, f"{topic}.a", 2)
    member = ConsumerMember([*java, broker, group, "regex", f"{topic}\\..*", "range"])
    with ExitStack() as stack:
        stack.callback(member.leave)
        until(lambda: len(member.owned) == 2, lambda: member.owned)
        make_topic(broker, f"{topic}.b", 1)
        until(lambda: f"{topic}.b-0" in member.owned, lambda: member.owned)


def test_a_classic_member_of_another_client_is_in_the_group(
    java: list[str], broker: str, names: tuple[str, str]
) -> None:
    topic, group = names
    make_topic(broker, topic, 4)
    settings = {"bootstrap_servers": broker, "group_id": group, "heartbeat_interval_ms": 300}
    with polled(KafkaConsumer, topic, session_timeout_ms=30_000, **settings) as old:
        until(lambda: len(old.assignment()) == 4, old.assignment)
        new = ConsumerMember([*java, broker, group, "names", topic])
        with ExitStack() as stack:
            stack.callback(new.leave)

            def shared() -> bool:
                theirs = {f"{each.topic}-{each.partition}" for each in old.assignment()}
                return len(theirs) == len(new.owned) == 2 and not theirs & new.owned

            until(shared, lambda: (old.assignment(), new.owned))
        until(lambda: len(old.assignment()) == 4, old.assignment)


def test_our_assignors_serve_java(java: list[str], names: tuple[str, str]) -> None:
    topic, group = names
    limits = ConsumerGroupLimits(heartbeat_interval_ms=200)
    with Coordinator({topic: 4}, settings=BrokerSettings(consumer_groups=limits)).in_thread() as coordinator:
        address = coordinator.bootstrap_servers
        fill(address, topic, [300, 100, 100, 100])
        command = [*java, address, group, "names", topic, "weighted"]
        members = [ConsumerMember(command) for _ in range(2)]
        with ExitStack() as stack:
            for member in members:
                stack.callback(member.leave)
            until(
                lambda: sum(len(member.owned) for member in members) == 4 and all(member.owned for member in members),
                lambda: [member.owned for member in members],
            )
