"""Members of groups as programs of their own."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import MemberProgram, built_go, compiled_java, with_npm
from topics import WAIT_S

HERE = Path(__file__).resolve().parent
MEMBERS = HERE.parent / "interop"
"""Members of groups in Java and Python, which the tests of mixed groups run too."""
JAVA_ASSIGNORS = {
    "consumer": "consumer",
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


@pytest.fixture(scope="session")
def java() -> list[str]:
    """The command that runs a class of the Java programs here; its name comes next."""
    return compiled_java(MEMBERS / "GroupMember.java", HERE / "Client.java", HERE / "Administrator.java")


@pytest.fixture(scope="session")
def franz_go() -> list[str]:
    """The command that runs ``franz-go/main.go``."""
    return built_go(HERE / "franz-go", "franz-go")


@pytest.fixture(scope="session")
def kafkajs() -> list[str]:
    """The command that runs ``kafkajs/client.js``."""
    return with_npm(HERE / "kafkajs", "kafkajs")


@pytest.fixture(scope="session")
def program(request: pytest.FixtureRequest) -> Callable[..., list[str]]:
    """What runs a client's program: ``program("franz-go", "produce", …)``."""

    def command(client: str, what: str, *arguments: object) -> list[str]:
        words = [str(each) for each in arguments]
        if client == "java":
            if what == "member":
                words[3] = JAVA_ASSIGNORS[words[3]]
                return [*request.getfixturevalue("java"), "GroupMember", *words]
            return [*request.getfixturevalue("java"), "Client", what, *words]
        if client in {"franz-go", "kafkajs"}:
            return [*request.getfixturevalue(client.replace("-", "_")), what, *words]
        if what == "member":
            return [sys.executable, str(MEMBERS / "group_member.py"), client, *words]
        return [sys.executable, str(HERE / "client.py"), client, what, *words]

    return command


class Member(MemberProgram):
    """A member of a group: what it processed, and how often what it owns has changed."""

    def __init__(self, client: str, command: list[str], log: Path) -> None:
        self.processed: list[tuple[int, int, int]] = []
        self.changes = 0
        """How often what it owns has changed; a rebalance that changes nothing for it does not count."""
        super().__init__(client, command, log)

    def take(self, message: dict[str, Any]) -> None:
        if message["event"] == "records":
            self.processed.append((message["partition"], message["from"], message["to"]))
        elif "partitions" in message:
            self.changes += self.owned != frozenset(message["partitions"])
            self.owned = frozenset(message["partitions"])

    def leave(self) -> None:
        super().leave()
        self.owned = frozenset()

    def crash(self) -> None:
        super().crash()
        self.owned = frozenset()


@pytest.fixture
def start(program: Callable[..., list[str]], tmp_path: Path) -> Iterator[Callable[..., Member]]:
    """Run a member of a group: ``start(client, broker, group, topic, strategy, session_ms, instance)``.

    The last two may be left out. What still runs after the test is killed.
    """
    members: list[Member] = []
    numbers = itertools.count()

    def run(client: str, *arguments: object) -> Member:
        command = program(client, "member", *arguments)
        member = Member(client, command, tmp_path / f"{next(numbers)}-{client}.log")
        members.append(member)
        return member

    yield run
    for member in members:
        member.end()


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Wait until a condition over the members holds; fails with what they own when it does not."""

    def wait(condition: Callable[[], bool], members: list[Member], within_s: float = WAIT_S) -> None:
        deadline = time.monotonic() + within_s
        while True:
            for member in members:
                member.update()
            if condition():
                return
            if time.monotonic() > deadline:
                pytest.fail("still: " + ", ".join(f"{member.client} owns {sorted(member.owned)}" for member in members))
            time.sleep(0.02)  # between two looks at the condition, not in its place

    return wait
