"""A program of its own that is given orders and may be stopped: see `benchmarks.speed.orders` for what it understands.

Each assignor is measured in such a process, so that one that never ends costs a minute, one that takes all memory takes
its own, and the memory of each can be told.
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import IO, Self

from benchmarks.speed.cases import Size


class TooSlowError(Exception):
    """An order was not carried out in time."""


class WorkerFailedError(Exception):
    """A worker ended by itself: the message has what it wrote."""


class Worker:
    """One process, started when it is first needed. Use it as a context manager, which ends it."""

    def __init__(self, command: Sequence[str], *, limit_s: float) -> None:
        self._command = command
        self._limit_s = limit_s
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def prepare(self, strategy: str, phase: str, size: Size) -> None:
        """Make the input of what is measured next; may take four times as long as a call."""
        if self._process is None:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
            )
        words = ("prepare", strategy, phase, size.partitions, size.members, size.topics)
        self._order(" ".join(map(str, words)), self._limit_s * 4)

    def warm_up(self, measure: str, seconds: float) -> float:
        """Call for about so long, once at least; answer the wall time of the quickest call in seconds."""
        deadline = time.monotonic() + seconds
        best = self.time(measure, 1)[0]
        while (left := deadline - time.monotonic()) > best:
            best = min(best, *self.time(measure, max(1, min(1000, int(left / 2 / best)))))
        return best

    def time(self, measure: str, calls: int) -> list[float]:
        """Wall time of each of so many calls, in seconds."""
        return [int(ns) / 1e9 for ns in self._order(f"{measure} {calls}", self._limit_s).split()]

    def memory(self) -> tuple[int, int]:
        """Bytes at the height of one call: above its input, and in all."""
        above, total = self._order("memory", self._limit_s).split()
        return int(above), int(total)

    def _order(self, order: str, limit_s: float) -> str:
        """Raises `TooSlowError` and `WorkerFailedError`; the process is gone after either."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = threading.Event()
        killer = threading.Timer(limit_s, _stop, (self._process, late))
        killer.start()
        try:
            self._process.stdin.write(order + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            killer.cancel()
            killer.join()
        if answer and not late.is_set():
            return answer.strip()
        written = self._end()
        if late.is_set():
            raise TooSlowError(order)
        raise WorkerFailedError(f"{' '.join(self._command)}: {order}: {written}")

    def _end(self) -> str:
        """End the process; answer what it wrote to standard error."""
        if self._process is None or self._errors is None:
            return ""
        self._process.kill()
        self._process.communicate()
        self._errors.seek(0)
        written = self._errors.read().decode(errors="replace").strip()
        self._errors.close()
        self._process = self._errors = None
        return written


def _stop(process: subprocess.Popen[str], late: threading.Event) -> None:
    late.set()
    process.kill()
