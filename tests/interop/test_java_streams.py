"""Kafka Streams applications in streams groups (KIP-1071), unmodified, against our coordinator and Apache Kafka."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from programs import JavaMember, compiled_java
from topics import WAIT_S, configure_group, make_topic, until

pytestmark = pytest.mark.kafka

SOURCE = Path(__file__).with_name("StreamsMember.java")
JARS = Path(__file__).parents[1] / "support" / "streams.pom.xml"
PARTITIONS = 3
COUNTING = {f"1_{number}" for number in range(PARTITIONS)}
"""The tasks that have a store, behind the repartition topic."""
TASKS = {f"0_{number}" for number in range(PARTITIONS)} | COUNTING


class StreamsMember(JavaMember):
    """An instance of a Streams application in a process of its own."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.active: set[str] = set()
        self.standby: set[str] = set()
        self.states: list[str] = []
        self._log = log
        super().__init__(command, log)

    def __repr__(self) -> str:
        return f"{self.states} {sorted(self.active)} {sorted(self.standby)}: {self._log.read_text()[-2000:]}"

    def take(self, what: str, rest: list[str]) -> None:
        if what == "state":
            self.states.append(rest[0])
        elif what == "tasks":
            self.active, self.standby = (set() if each == "-" else set(each.split(",")) for each in rest)

    def end(self) -> None:
        """Kill the process if it runs: it has no tasks any more."""
        super().end()
        self.active, self.standby = set(), set()


@pytest.fixture(scope="session")
def java() -> list[str]:
    """The command that runs the application."""
    return [*compiled_java(SOURCE, pom=JARS), "StreamsMember"]


class Application:
    """Words that go in, counts that come out, and the instances that count them."""

    def __init__(self, broker: str, java: list[str], folder: Path, stack: ExitStack) -> None:
        self.broker = broker
        self.id = f"words-{uuid.uuid4()}"
        self.input, self.output = f"{self.id}-lines", f"{self.id}-counts"
        self.sent: Counter[str] = Counter()
        self.guarantee = "at_least_once"
        self._java, self._folder, self._stack = java, folder, stack
        self._producer = Producer({"bootstrap.servers": broker, "log_level": 0})
        make_topic(broker, self.input, PARTITIONS)
        make_topic(broker, self.output, 1)
        settings = {"bootstrap.servers": broker, "group.id": f"reader-{uuid.uuid4()}", "log_level": 0}
        self._reader = Consumer(settings | {"isolation.level": "read_committed", "enable.auto.commit": False})
        stack.callback(self._reader.close)
        self._reader.assign([TopicPartition(self.output, 0, 0)])
        self._counts: dict[str, list[int]] = {}
        self._offsets = Consumer({"bootstrap.servers": broker, "group.id": self.id, "log_level": 0})
        stack.callback(self._offsets.close)
        self.configure("streams.session.timeout.ms", "6000")

    def configure(self, name: str, value: str) -> None:
        configure_group(self.broker, self.id, name, value)

    def instance(self) -> StreamsMember:
        name = str(uuid.uuid4())
        where = [self.broker, self.id, self.input, self.output, str(self._folder / name), self.guarantee]
        member = StreamsMember([*self._java, *where], self._folder / f"{name}.log")
        self._stack.callback(member.end)
        return member

    def send(self, *words: str) -> None:
        """A line with these words into each partition."""
        for partition in range(PARTITIONS):
            self._producer.produce(self.input, " ".join(words), partition=partition)
            self.sent.update(words)
        assert self._producer.flush(WAIT_S) == 0

    def counts(self) -> dict[str, list[int]]:
        """All counts of each word, in the order in which they came out, as far as transactions were committed."""
        for message in self._reader.consume(10_000, timeout=0.2):
            assert message.error() is None, message.error()
            self._counts.setdefault(message.key().decode(), []).append(int.from_bytes(message.value(), "big"))
        return self._counts

    def counted(self) -> bool:
        """Whether all that was sent has been counted, and the group has committed that it was."""
        if {word: counts[-1] for word, counts in self.counts().items()} != self.sent:
            return False
        topics = (self.input, f"{self.id}-words-repartition")
        asked = [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)]
        return all(
            max(each.offset, 0) == self._offsets.get_watermark_offsets(each, timeout=WAIT_S)[1]
            for each in self._offsets.committed(asked, timeout=WAIT_S)
        )


@pytest.fixture
def application(broker: str, java: list[str], tmp_path: Path) -> Iterator[Application]:
    with ExitStack() as stack:
        yield Application(broker, java, tmp_path, stack)


def test_an_instance_that_is_killed_leaves_its_tasks_to_the_other(application: Application) -> None:
    first = application.instance()
    until(lambda: first.active == TASKS, lambda: first)
    application.send("a", "b", "a")
    until(application.counted, application.counts)
    second = application.instance()
    both = (first, second)
    until(lambda: first.active | second.active == TASKS and len(first.active) == len(second.active), lambda: both)
    assert not first.active & second.active
    application.send("b", "c")
    until(application.counted, application.counts)
    second.end()
    until(lambda: first.active == TASKS, lambda: first)
    application.send("a", "d")
    until(application.counted, application.counts)
    third = application.instance()
    until(lambda: len(third.active) == len(first.active) == len(TASKS) // 2, lambda: (first, third))
    first.leave()
    until(lambda: third.active == TASKS, lambda: third)
    application.send("d")
    until(application.counted, application.counts)
    third.leave()


def test_a_standby_takes_over(application: Application) -> None:
    application.configure("streams.num.standby.replicas", "1")
    first, second = application.instance(), application.instance()
    both = (first, second)
    until(
        lambda: (
            (first.active & COUNTING, second.active & COUNTING) == (second.standby, first.standby)
            and first.active | second.active == TASKS
            and bool(first.standby)
            and bool(second.standby)
        ),
        lambda: both,
    )
    application.send("a", "b", "c")
    until(application.counted, application.counts)
    first.end()
    until(lambda: second.active == TASKS and not second.standby, lambda: second)
    application.send("a", "b", "c")
    until(application.counted, application.counts)
    second.leave()


def test_exactly_once_though_an_instance_is_killed(application: Application) -> None:
    application.guarantee = "exactly_once_v2"
    first, second = application.instance(), application.instance()
    until(lambda: first.active | second.active == TASKS and len(first.active) == 3, lambda: (first, second))
    stopping = threading.Event()

    def produce() -> None:
        while not stopping.wait(0.02):
            application.send("a", "b", "c", "d", "e")

    with ExitStack() as stack:
        thread = threading.Thread(target=produce)
        thread.start()
        stack.callback(thread.join)
        stack.callback(stopping.set)
        until(lambda: len(application.counts()) == 5, application.counts)
        second.end()
        until(lambda: first.active == TASKS, lambda: first)
        third = application.instance()
        until(lambda: len(third.active) == 3, lambda: (first, third))
    until(application.counted, application.counts)
    for word, counts in application.counts().items():
        assert counts == list(range(1, application.sent[word] + 1)), word
    first.leave()
    third.leave()
