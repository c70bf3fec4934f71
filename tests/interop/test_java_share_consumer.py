"""Java share consumers (KIP-932), unmodified, against our coordinator and Apache Kafka: the same records, as often."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer, ShareConsumer
from programs import JavaMember, compiled_java
from topics import WAIT_S, configure_group, make_topic, until

from loadwise.coordinator import Coordinator

pytestmark = pytest.mark.kafka

SOURCE = Path(__file__).with_name("ShareMember.java")


class ShareMember(JavaMember):
    """A Java share consumer in a process of its own."""

    def __init__(self, command: list[str]) -> None:
        self.got: list[tuple[str, int]] = []
        """Each record with how often it was delivered."""
        self.answers: set[str] = set()
        """What commits were answered."""
        super().__init__(command)

    def take(self, what: str, rest: list[str]) -> None:
        if what == "got":
            self.got.append((" ".join(rest[:-1]), int(rest[-1])))
        elif what == "ack":
            self.answers.add(rest[0])


@pytest.fixture(scope="session")
def java() -> list[str]:
    """The command that runs the Java member."""
    return [*compiled_java(SOURCE, log_level="error"), "ShareMember"]


class Share:
    """A topic, a share group that reads it from the start, and its members."""

    def __init__(self, broker: str, java: list[str], stack: ExitStack, partitions: int = 1) -> None:
        self.broker = broker
        self.partitions = partitions
        self.topic, self.group = f"topic-{uuid.uuid4()}", f"group-{uuid.uuid4()}"
        self._java = java
        self._stack = stack
        self.configure("share.auto.offset.reset", "earliest")  # before there is a topic that members may be given
        make_topic(broker, self.topic, partitions)

    def configure(self, name: str, value: str) -> None:
        configure_group(self.broker, self.group, name, value)

    def produce(self, *values: str) -> None:
        producer = Producer({"bootstrap.servers": self.broker, "linger.ms": 20})
        for number, value in enumerate(values):
            producer.produce(self.topic, value, partition=number % self.partitions)
        assert producer.flush(WAIT_S) == 0

    def member(self, mode: str = "explicit", *more: str) -> ShareMember:
        member = ShareMember([*self._java, self.broker, self.group, self.topic, mode, *more])
        self._stack.callback(member.end)
        return member


@pytest.fixture
def share(broker: str, java: list[str]) -> Iterator[Share]:
    with ExitStack() as stack:
        yield Share(broker, java, stack)


def test_what_is_told_of_a_record_is_what_becomes_of_it(share: Share) -> None:
    values = [f"{what} {number}" for number in range(3) for what in ("accept", "release", "reject", "renew")]
    share.produce(*values, "again x")
    member = share.member()
    expected = Counter(
        {value: {"release": 2, "renew": 2, "again": 5}.get(value.split()[0], 1) for value in [*values, "again x"]}
    )
    until(lambda: len(member.got) >= expected.total(), lambda: member.got)
    member.leave()
    assert Counter(value for value, _ in member.got) == expected
    assert member.answers == {"none"}
    deliveries = {value: [count for each, count in member.got if each == value] for value in expected}
    assert deliveries["again x"] == [1, 2, 3, 4, 5], "then it is given up"
    assert all(deliveries[each] == [1, 2] for each in values if each.startswith("release"))
    assert all(deliveries[each] == [1, 1] for each in values if each.startswith("renew"))


def test_what_a_killed_member_had_another_one_gets(share: Share) -> None:
    share.configure("share.record.lock.duration.ms", "60000")
    share.produce(*[f"keep {number}" for number in range(6)])
    killed = share.member()
    until(lambda: len(killed.got) == 6, lambda: killed.got)
    killed.end()
    heir = share.member("implicit")
    until(lambda: len(heir.got) == 6, lambda: heir.got)
    heir.leave()
    assert sorted(heir.got) == [(f"keep {number}", 2) for number in range(6)]


@pytest.mark.parametrize("mode", ["implicit", "explicit", "strict"])
def test_members_share_the_records_of_a_partition(share: Share, mode: str) -> None:
    members = [share.member(mode, "10") for _ in range(2)]
    values = [f"accept {number}" for number in range(400)]
    for start in range(0, len(values), 40):
        share.produce(*values[start : start + 40])
    until(lambda: sum(len(each.got) for each in members) >= len(values), lambda: [len(each.got) for each in members])
    for member in members:
        member.leave()
    got = [value for member in members for value, _ in member.got]
    assert sorted(got) == sorted(values), "each record once, whoever had it"
    late = share.member("implicit")
    share.produce("accept last")
    until(lambda: bool(late.got), lambda: late.got)
    late.leave()
    assert late.got == [("accept last", 1)], "what was acknowledged does not come again"


def test_librdkafka_reads_beside_java(share: Share) -> None:
    config = {"bootstrap.servers": share.broker, "group.id": share.group, "log_level": 0}
    values = [f"accept {number}" for number in range(60)]
    got: list[str] = []
    java = share.member("implicit", "5")
    with ShareConsumer(config) as consumer:
        consumer.subscribe([share.topic])

        def read() -> bool:
            got.extend(message.value().decode() for message in consumer.poll(0.1))
            return len(got) + len(java.got) >= len(values)

        share.produce(*values)
        until(read, lambda: (got, java.got))
    java.leave()
    assert sorted([*got, *(value for value, _ in java.got)]) == sorted(values)


def test_a_lock_that_ends_gives_its_records_to_another_member(share: Share) -> None:
    share.configure("share.record.lock.duration.ms", "15000")
    share.produce("keep a", "keep b")
    slow = share.member()
    until(lambda: len(slow.got) == 2, lambda: slow.got)
    quick = share.member("implicit")
    until(lambda: len(quick.got) == 2, lambda: quick.got)
    quick.leave()
    assert sorted(value for value, _ in quick.got) == ["keep a", "keep b"]
    # The slow one's client may still fetch behind its program's back, and so have them once more before the quick one.
    assert all(deliveries >= 2 for _, deliveries in quick.got)


def test_partitions_of_several_brokers_are_shared(java: list[str]) -> None:
    """Each broker leads two of the partitions, and keeps the states of what is delivered from them."""
    with Coordinator(brokers=3).in_thread() as cluster, ExitStack() as stack:
        share = Share(cluster.bootstrap_servers, java, stack, partitions=6)
        values: list[str] = []
        members = [share.member("explicit", "10") for _ in range(2)]
        got: list[str] = []
        config = {"bootstrap.servers": share.broker, "group.id": share.group, "log_level": 0}
        with ShareConsumer(config) as consumer:
            consumer.subscribe([share.topic])

            def read() -> bool:
                got.extend(message.value().decode() for message in consumer.poll(0.1))
                return {*got, *(value for member in members for value, _ in member.got)} == set(values)

            def all_have_some() -> bool:
                more = [f"accept {len(values) + number}" for number in range(30)]
                values.extend(more)
                share.produce(*more)
                read()
                return all([got, *(member.got for member in members)])

            until(all_have_some, lambda: (len(got), [len(member.got) for member in members]))
            until(read, lambda: (len(got), [len(member.got) for member in members]))
        for member in members:
            member.leave()
            assert member.answers == {"none"}
        heir = share.member("implicit")
        last = {(f"accept last {number}", 1) for number in range(share.partitions)}
        share.produce(*[value for value, _ in last])
        until(lambda: last <= set(heir.got), lambda: heir.got)
        heir.leave()
