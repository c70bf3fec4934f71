"""Members of groups as programs of their own, and records that are produced meanwhile."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from client_matrix import page
from confluent_kafka import KafkaError, Message, Producer
from programs import MemberProgram, compiled_java
from topics import WAIT_S, make_topic

HERE = Path(__file__).resolve().parent
JAVA_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
LEADS = re.compile(
    r"Finished assignment for group at generation (\d+)"  # Java's ConsumerCoordinator
    r"|JoinGroup response: GenerationId (\d+), Protocol [\w-]+, LeaderId \S+ \(me\)"  # librdkafka's rdkafka_cgrp
)


@pytest.fixture
def topic(broker: str, topic_name: str) -> str:
    """A topic of six partitions."""
    make_topic(broker, topic_name, 6)
    return topic_name


@pytest.fixture(scope="session")
def java_member() -> list[str]:
    """The command that runs ``GroupMember.java``."""
    *java, classpath_option, classpath = compiled_java(HERE / "GroupMember.java")
    elected = "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients.consumer.internals.ConsumerCoordinator=info"
    return [*java, elected, classpath_option, classpath, "GroupMember"]


class Member(MemberProgram):
    """A member of a mixed group: its generations, and every record that it processed."""

    def __init__(self, client: str, command: list[str], log: Path) -> None:
        self.generation = -1
        """The generation that it was told of last, and that it has not begun to leave."""
        self.assigned: dict[int, frozenset[int]] = {}
        """What it was given in each generation."""
        self.strategy: str | None = None
        """The strategy of that generation, where it is one of ours that can tell."""
        self.held: list[frozenset[int]] = []
        """What it owned after each change."""
        self.processed: set[tuple[int, int]] = set()
        """Partition and offset of every record."""
        self._elected = False
        self._led: set[int] = set()
        super().__init__(client, command, log)

    def __repr__(self) -> str:
        return f"{self.client} owns {sorted(self.owned)} in generation {self.generation}"

    def take(self, message: dict[str, Any]) -> None:
        match message["event"]:
            case "records":
                offsets = range(message["from"], message["to"])
                self.processed.update((message["partition"], offset) for offset in offsets)
            case "leads":
                self._elected = True
            case "assigned":
                self.generation, self.owned = message["generation"], frozenset(message["partitions"])
                self.assigned[self.generation] = self.owned
                self.strategy = message.get("strategy")
                if self._elected:
                    self._led.add(self.generation)
                self._elected = False
            case "revoked" | "lost":
                self.owned = frozenset(message["partitions"])
        if message["event"] in ("assigned", "revoked", "lost"):
            self.held.append(self.owned)

    @property
    def log(self) -> str:
        """What it has logged."""
        return self._log.read_text()

    def led(self) -> set[int]:
        """The generations that it made the assignment of, as the client itself says."""
        found = LEADS.findall(self.log)
        return self._led | {int(java or librdkafka) for java, librdkafka in found}


Join = Callable[..., Member]


@pytest.fixture
def join(java_member: list[str], broker: str, tmp_path: Path) -> Iterator[Join]:
    """``join(client, group, topic, strategy, session_timeout_ms)``; what still runs after the test is killed."""
    members: list[Member] = []

    def start(  # noqa: PLR0917 (as on the command line of each program)
        client: str, group: str, topic: str, strategy: str, session_timeout_ms: int, instance_id: str | None = None
    ) -> Member:
        where = [broker, group, topic]
        if client == "java":
            command = [*java_member, *where, JAVA_ASSIGNORS[strategy]]
        else:
            command = [sys.executable, str(HERE / "group_member.py"), client, *where, strategy]
        command = [*command, str(session_timeout_ms), *([] if instance_id is None else [instance_id])]
        members.append(Member(client, command, tmp_path / f"{len(members)}-{client}.log"))
        return members[-1]

    yield start
    for member in members:
        if member.process.poll() is None:
            member.crash()


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool], list[Member]], None]:
    """Wait until a condition over the members holds; fails with what they own when it does not."""

    def wait(condition: Callable[[], bool], members: list[Member]) -> None:
        deadline = time.monotonic() + WAIT_S
        while True:
            for member in members:
                member.update()
            if condition():
                return
            if time.monotonic() > deadline:
                pytest.fail("\n".join([f"still: {members}", *(f"{each}:\n{each.log}" for each in members)]))
            time.sleep(0.02)  # between two looks at the condition, not in its place

    return wait


class Production:
    """Records that are produced on a thread of its own, a few at a time, until it is told to stop."""

    BATCH = 20

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._delivered: set[tuple[int, int]] = set()
        self._failures: list[KafkaError] = []
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="production")
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stopping.wait(0.1):
            for _ in range(self.BATCH):
                self._producer.produce(self._topic, key=str(number), value=b"x", on_delivery=self._told)
                number += 1
            self._producer.poll(0)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._delivered.add((message.partition(), message.offset()))
        else:
            self._failures.append(error)

    def stop(self) -> set[tuple[int, int]]:
        """Stop; partition and offset of everything that was produced."""
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(WAIT_S) == 0
        assert self._failures == []
        return self._delivered


@pytest.fixture
def production(broker: str, topic: str) -> Iterator[Production]:
    """Records into the topic for as long as the test likes."""
    running = Production(broker, topic)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def matrix() -> Iterator[set[tuple[str, str, str]]]:
    """What was shown of which client on which broker; with LOADWISE_MATRIX set, docs/client-matrix.md is made of it."""
    shown: set[tuple[str, str, str]] = set()
    yield shown
    if os.environ.get("LOADWISE_MATRIX"):
        (HERE.parents[1] / "docs" / "client-matrix.md").write_text(page(shown))
