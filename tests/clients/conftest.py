"""Members of groups as programs of their own."""

from __future__ import annotations

import itertools
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from kafka_process import KafkaNotInstalledError, jars
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


def _unavailable(missing: str) -> NoReturn:
    """Skip the test with what is missing, where it may skip."""
    if os.environ.get("LOADWISE_REQUIRE_KAFKA"):
        raise RuntimeError(missing)
    pytest.skip(missing)


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs a class of the Java programs here, compiled once; its name comes next."""
    try:
        classpath = f"{jars()}/*"
    except KafkaNotInstalledError as error:
        _unavailable(str(error))
    compiled = tmp_path_factory.mktemp("java")
    sources = [str(MEMBERS / "GroupMember.java"), str(HERE / "Client.java")]
    subprocess.run(["javac", "-cp", classpath, "-d", str(compiled), *sources], check=True)
    command = shutil.which("java")
    assert command is not None
    quiet = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    return [command, *quiet, "-cp", f"{compiled}:{classpath}"]


@pytest.fixture(scope="session")
def franz_go(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs ``franz-go/main.go``, built once."""
    go = shutil.which("go")
    if go is None:
        _unavailable("the tests with franz-go need Go 1.21 or later, which fetches the one that go.mod asks for")
    program = tmp_path_factory.mktemp("go") / "client"
    environment = os.environ | {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "auto"}
    build = [go, "build", "-o", str(program), "."]
    done = subprocess.run(build, cwd=HERE / "franz-go", env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        _unavailable(f"franz-go could not be built: {done.stderr}")
    return [str(program)]


@pytest.fixture(scope="session")
def kafkajs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs ``kafkajs/client.js``, with kafkajs fetched beside it."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        _unavailable("the tests with kafkajs need Node.js and npm: apt-get install nodejs npm")
    folder = tmp_path_factory.mktemp("js")
    for name in ("client.js", "package.json", "package-lock.json"):
        shutil.copy(HERE / "kafkajs" / name, folder)
    install = [npm, "ci", "--silent", "--no-audit", "--no-fund"]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        _unavailable(f"npm could not fetch kafkajs: {done.stdout}{done.stderr}")
    return [node, str(folder / "client.js")]


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


class Member:
    """A member of a group in a process of its own; what it says is read as it says it."""

    def __init__(self, client: str, command: list[str], log: Path) -> None:
        self.client = client
        self.owned: frozenset[int] = frozenset()
        self.processed: list[tuple[int, int, int]] = []
        self.changes = 0
        """How often what it owns has changed; a rebalance that changes nothing for it does not count."""
        self._log = log
        self._said: queue.Queue[str] = queue.Queue()
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._said.put(line)

    def update(self) -> None:
        """Take in what the member has said since."""
        while not self._said.empty():
            message = json.loads(self._said.get())
            if message["event"] == "records":
                self.processed.append((message["partition"], message["from"], message["to"]))
            elif "partitions" in message:
                self.changes += self.owned != frozenset(message["partitions"])
                self.owned = frozenset(message["partitions"])
        if self.process.poll() not in (None, 0, -9):
            pytest.fail(f"{self.client} ended with {self.process.returncode}:\n{self._log.read_text()[-3000:]}")

    def leave(self) -> None:
        """Ask the member to close in order, and wait for it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)
        self._finish()

    def crash(self) -> None:
        """Kill the member: it says goodbye to nobody."""
        self.end()
        self._finish()

    def end(self) -> None:
        """Leave nothing behind of a member, whatever became of it."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()

    def _finish(self) -> None:
        self._reader.join()
        self.update()
        assert self.process.stdout is not None
        self.process.stdout.close()
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
