"""Members of groups as programs of their own."""

from __future__ import annotations

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

import pytest
from kafka_process import KafkaNotInstalledError, jars

HERE = Path(__file__).resolve().parent
JAVA_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


@pytest.fixture(scope="session")
def java_member(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs ``GroupMember.java``, compiled once."""
    try:
        classpath = f"{jars()}/*"
    except KafkaNotInstalledError as error:
        if os.environ.get("LOADWISE_REQUIRE_KAFKA"):
            raise
        pytest.skip(str(error))
    compiled = tmp_path_factory.mktemp("java")
    subprocess.run(["javac", "-cp", classpath, "-d", str(compiled), str(HERE / "GroupMember.java")], check=True)
    java = shutil.which("java")
    assert java is not None
    quiet = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    return [java, *quiet, "-cp", f"{compiled}:{classpath}", "GroupMember"]


class Member:
    """A member of a group in a process of its own; what it says is read as it says it."""

    def __init__(self, client: str, command: list[str], log: Path) -> None:
        self.client = client
        self.owned: frozenset[int] = frozenset()
        self.processed: list[tuple[int, int, int]] = []
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
            elif message["event"] != "closed":
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
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._finish()

    def _finish(self) -> None:
        self._reader.join()
        self.update()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.owned = frozenset()


@pytest.fixture
def join(java_member: list[str], broker: str, tmp_path: Path) -> Iterator[Callable[[str, str, str, str], Member]]:
    """Let a member of a client join a group; what still runs after the test is killed."""
    members: list[Member] = []

    def start(client: str, group: str, topic: str, strategy: str) -> Member:
        if client == "java":
            command = [*java_member, broker, group, topic, JAVA_ASSIGNORS[strategy]]
        else:
            command = [sys.executable, str(HERE / "group_member.py"), client, broker, group, topic, strategy]
        members.append(Member(client, command, tmp_path / f"{len(members)}-{client}.log"))
        return members[-1]

    yield start
    for member in members:
        if member.process.poll() is None:
            member.crash()


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Wait until a condition over the members holds; fails with what they own when it does not."""

    def wait(condition: Callable[[], bool], members: list[Member], within_s: float = 40) -> None:
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
