"""CPU time and memory of processes, of those below them too. Reads ``/proc``, so it is for Linux."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_EVERY_S = 0.1


class CpuMeter:
    """Counts what a process and all below it use within its with block, dead processes included.

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
            process_id = left.pop()
            try:
                started, used = _started_and_used(process_id)
                # A child is listed with the thread that forked it.
                for children in Path(f"/proc/{process_id}").glob("task/*/children"):
                    left += map(int, children.read_text().split())
            except OSError:
                continue  # it has ended; its last sample stays
            self._seen[process_id, started] = used


def cpu_s(process_id: int) -> float:
    """CPU seconds that a process alone has used."""
    return _started_and_used(process_id)[1] / _TICKS_PER_S


def resident_mib(process_id: int, *, peak: bool = False) -> float:
    """Memory that a process holds, or the most that it has held."""
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM" if peak else "VmRSS")) / 1024


def _started_and_used(process_id: int) -> tuple[int, int]:
    """When a process was started, and what it has used, in ticks."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(") ")[2].split()
    return int(fields[19]), int(fields[11]) + int(fields[12])
