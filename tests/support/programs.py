"""Clients that run as programs of their own: Java ones, compiled once, and members of groups that say what happens."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kafka_process import jars
from maven import jars as fetched_jars
from missing import skipped_where_missing
from topics import WAIT_S


def compiled_java(folder: Path, *sources: Path, log_level: str = "warn", pom: Path | None = None) -> list[str]:
    """The command that runs a class of these sources, compiled into the folder; the name of the class comes next.

    Its jars are Kafka's, or those that a pom asks for. Skips the test where they cannot be had, unless
    LOADWISE_REQUIRE_KAFKA is set.
    """
    with skipped_where_missing():
        classpath = f"{jars() if pom is None else fetched_jars(pom, pom.name.removesuffix('.pom.xml'))}/*"
    subprocess.run(["javac", "-cp", classpath, "-d", str(folder), *map(str, sources)], check=True)
    java = shutil.which("java")
    assert java is not None
    quick = ["-Xmx128m", "-XX:TieredStopAtLevel=1", f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}"]
    return [java, *quick, "-cp", f"{folder}:{classpath}"]


class JavaMember:
    """A member of a group in a process of its own, which tells what happens: a line of words each time."""

    def __init__(self, command: Sequence[str], log: Path | None = None) -> None:
        with ExitStack() as stack:
            errors = None if log is None else stack.enter_context(log.open("wb"))
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self._reader = threading.Thread(target=self._listen)
        self._reader.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            what, *rest = line.split()
            self.take(what, rest)

    def take(self, what: str, rest: list[str]) -> None:
        """Take in one line, as it comes."""
        raise NotImplementedError

    def leave(self) -> None:
        """Close in order, and wait for the process to end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            assert self.process.wait(WAIT_S) == 0, self
        finally:
            self.end()

    def end(self) -> None:
        """Kill the process if it runs: it says goodbye to nobody."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


class MemberProgram:
    """A member of a group in a process of its own; what it says, an object of JSON a line, is read as it says it."""

    def __init__(self, client: str, command: list[str], log: Path) -> None:
        self.client = client
        self.owned: frozenset[int] = frozenset()
        """What it owns now."""
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

    def take(self, message: dict[str, Any]) -> None:
        """Take in one thing that the member has said."""
        raise NotImplementedError

    def update(self) -> None:
        """Take in what the member has said since, and fail if it has ended by itself."""
        while not self._said.empty():
            self.take(json.loads(self._said.get()))
        if self.process.poll() not in (None, 0, -9):
            pytest.fail(f"{self.client} ended with {self.process.returncode}:\n{self._log.read_text()[-3000:]}")

    def leave(self) -> None:
        """Ask the member to close in order, and wait for it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(WAIT_S)
        self.end()
        self.update()

    def crash(self) -> None:
        """Kill the member: it says goodbye to nobody."""
        self.end()
        self.update()

    def end(self) -> None:
        """Leave nothing behind of a member, whatever became of it."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
