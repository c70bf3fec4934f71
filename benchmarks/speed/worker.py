"""A program of its own that is given orders: `ours` and `JavaAssignors.java` say what it understands."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from typing import Self

from benchmarks.processes import resident_mib
from benchmarks.speed.cases import Size


class Worker:
    """One process. Use it as a context manager, which ends it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def prepare(self, strategy: str, phase: str, size: Size) -> None:
        """Make the input of what is measured next."""
        self._order(f"prepare {strategy} {phase} {size.partitions} {size.members} {size.topics}")

    def warm_up(self, measure: str, seconds: float) -> float:
        """Call for about so long, once at least; answer the wall time of the quickest call in seconds."""
        deadline = time.monotonic() + seconds
        best = self.time(measure, 1)[0]
        while (left := deadline - time.monotonic()) > best:
            best = min(best, *self.time(measure, max(1, min(1000, int(left / 2 / best)))))
        return best

    def time(self, measure: str, calls: int) -> list[float]:
        """Wall time of each of so many calls, in seconds."""
        return [int(ns) / 1e9 for ns in self._order(f"{measure} {calls}").split()]

    @property
    def peak_mib(self) -> float:
        """The most memory that the process has held, its inputs included."""
        return resident_mib(self._process.pid, peak=True)

    def _order(self, order: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(order + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise SystemExit(f"{' '.join(self._command)} has ended at {order!r}; see its error above")
        return answer.strip()
