"""Clients that run as programs of their own: Java ones, compiled once, and members of groups that say what happens."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from forked import Forked
from kafka_process import SHORT_LIVED, jars, short_lived_jvm
from made_once import made_once
from maven import jars as fetched_jars
from missing import skipped_where_missing, unavailable
from topics import WAIT_S


def compiled_java(*sources: Path, log_level: str = "warn", pom: Path | None = None) -> list[str]:
    """The command that runs a class of these sources, compiled once; the name of the class comes next.

    Its jars are Kafka's, or those that a pom asks for. Skips the test where they cannot be had, unless
    LOADWISE_REQUIRE_KAFKA is set.
    """
    with skipped_where_missing():
        classpath = f"{jars() if pom is None else fetched_jars(pom, pom.name.removesuffix('.pom.xml'))}/*"
        options = short_lived_jvm() if pom is None else SHORT_LIVED

    def compile_them(folder: Path) -> None:
        subprocess.run(["javac", "-cp", classpath, "-d", str(folder), *map(str, sources)], check=True)

    folder = made_once(sources[0].stem, _contents(*sources) + classpath.encode(), compile_them)
    java = shutil.which("java")
    assert java is not None
    log = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}"
    return [java, "-Xmx128m", *options, log, "-cp", f"{classpath}:{folder}"]


def built_go(source: Path, name: str) -> list[str]:
    """The command that runs a Go program, built once. Skips the test where there is no Go that can build it."""
    go = shutil.which("go")
    if go is None:
        unavailable(f"{name} needs Go 1.21 or later, which fetches the one that go.mod asks for")

    def build(folder: Path) -> None:
        environment = os.environ | {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "auto"}
        command = [go, "build", "-o", str(folder / name), "."]
        done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            unavailable(f"{name} could not be built: {done.stderr}")

    return [str(made_once(name, _contents(*sorted(source.iterdir())), build) / name)]


def with_npm(source: Path, name: str) -> list[str]:
    """The command that runs ``client.js`` with its packages, fetched once. Skips the test where that cannot be done."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        unavailable(f"{name} needs Node.js and npm: apt-get install nodejs npm")

    def fetch(folder: Path) -> None:
        for file in source.iterdir():
            shutil.copy(file, folder)
        install = [npm, "ci", "--silent", "--no-audit", "--no-fund"]
        done = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            unavailable(f"npm could not fetch {name}: {done.stdout}{done.stderr}")

    return [node, str(made_once(name, _contents(*sorted(source.iterdir())), fetch) / "client.js")]


def _contents(*files: Path) -> bytes:
    return b"".join(file.name.encode() + b"\0" + file.read_bytes() for file in files)


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
        self.process: Forked | subprocess.Popen[str]
        if command[0] == sys.executable:
            self.process = Forked(command[1], command[2:], log)
        else:
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
