"""Python programs forked from a process that has imported the clients: half of what a short one costs is importing."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "loadwise.assignor.clients.aiokafka.consumer",
        "loadwise.assignor.clients.confluent_kafka.aio",
        "loadwise.assignor.clients.confluent_kafka.consumer",
        "loadwise.assignor.clients.kafka_python.consumer",
    ]
)


class Forked:
    """A running program with pipes for its input and output: what `subprocess.Popen` is, as far as tests ask for it."""

    def __init__(self, program: str, arguments: Sequence[str], log: Path) -> None:
        theirs, ours = os.pipe()
        self.stdin = os.fdopen(ours, "w")
        ours, their_output = os.pipe()
        self.stdout = os.fdopen(ours)
        with log.open("wb") as errors:
            files = (theirs, their_output, errors.fileno())
            self._process = _CONTEXT.Process(target=_Program(program, arguments, files), daemon=True)
            self._process.start()
        os.close(theirs)
        os.close(their_output)
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        """As `poll`."""
        return self.poll()

    def poll(self) -> int | None:
        """What it ended with, the negative number of a signal where one has ended it; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and answer what it ended with."""
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def kill(self) -> None:
        """``kill -9``, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


class _Program:
    """What the new process calls. Its files are handed over as it is pickled."""

    def __init__(self, program: str, arguments: Sequence[str], files: Sequence[int]) -> None:
        self._program, self._arguments, self._files = program, list(arguments), files

    def __getstate__(self) -> dict[str, Any]:
        return {
            "_program": self._program,
            "_arguments": self._arguments,
            "_files": [DupFd(each) for each in self._files],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state | {"_files": [each.detach() for each in state["_files"]]}

    def __call__(self) -> None:
        for standard, file in enumerate(self._files):
            os.dup2(file, standard)
            os.close(file)
        sys.stdin = os.fdopen(0)  # multiprocessing has put nothing in its place
        sys.argv = [self._program, *self._arguments]
        sys.path.insert(0, str(Path(self._program).parent))
        runpy.run_path(self._program, run_name="__main__")
