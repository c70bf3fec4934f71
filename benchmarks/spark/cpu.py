"""CPU seconds of a process and everything below it, dead processes included. Reads ``/proc``, so it is for Linux."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_EVERY_S = 0.1


class CpuMeter:
    """Counts what is used within its with block.

    PySpark's daemon ignores the end of its children (SIGCHLD), so neither `os.wait3` nor the parent's own figures have
    their time. So this samples all processes ten times a second, and misses at most the time between the last sample
    and the end of a process.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._seen: dict[tuple[int, int], int] = {}
        """Ticks that each process has used, by its id and when it was started."""
        self._over = Event()
        self._thread = Thread(target=self._watch, name="cpu-meter", daemon=True)
        self._before_s = 0.0

    def __enter__(self) -> Self:
        """Start to count."""
        self._look()
        self._before_s = self._total_s()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self._over.set()
        self._thread.join()
        self._look()

    @property
    def used_s(self) -> float:
        """The CPU seconds until the last sample; all of them after the with block."""
        return self._total_s() - self._before_s

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_S):
            self._look()

    def _total_s(self) -> float:
        return sum(list(self._seen.values())) / _TICKS_PER_S

    def _look(self) -> None:
        left = [self._root]
        while left:
            process = Path("/proc", str(left.pop()))
            try:
                fields = (process / "stat").read_text().rpartition(") ")[2].split()
                # A child is listed with the thread that forked it.
                for children in process.glob("task/*/children"):
                    left += map(int, children.read_text().split())
            except OSError:
                continue  # it has ended; its last sample stays
            self._seen[int(process.name), int(fields[19])] = int(fields[11]) + int(fields[12])


def meter(spark: Any) -> CpuMeter:
    """A meter of a session's JVM and everything below it: PySpark's daemon, workers and planners."""
    return CpuMeter(spark.sparkContext._gateway.proc.pid)
