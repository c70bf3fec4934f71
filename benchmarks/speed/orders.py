"""The other end of `benchmarks.speed.worker`: a program that reads orders and answers each with one line.

``prepare STRATEGY PHASE PARTITIONS MEMBERS TOPICS`` makes an input. The name of a measure and a number make so many
calls and answer the wall time of each, in ns. ``memory`` answers the highest use of memory during one call, above its
input and in all, in bytes. `JavaAssignors.java` understands the same.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.speed.cases import Size

Call = Callable[[], object]
Prepare = Callable[[str, str, Size], Mapping[str, Call]]
"""From a strategy, a phase and a size to what can be measured of it, by name; ``names`` is always there."""


def serve(prepare: Prepare) -> None:
    """Read orders from standard input until it ends."""
    calls: Mapping[str, Call] = {}
    for order in sys.stdin:
        name, *arguments = order.split()
        if name == "prepare":
            strategy, phase, *size = arguments
            calls = {}
            calls = prepare(strategy, phase, Size(*map(int, size)))
            answer = "ready"
        elif name == "memory":
            answer = " ".join(map(str, _memory(calls["names"])))
        else:
            answer = " ".join(str(_time_ns(calls[name])) for _ in range(int(arguments[0])))
        print(answer, flush=True)


def _time_ns(call: Call) -> int:
    start = time.perf_counter_ns()
    answer = call()
    spent = time.perf_counter_ns() - start
    del answer  # only now: giving memory back is not the call's own time, in no language
    return spent


def _memory(call: Call) -> tuple[int, int]:
    """Resident memory at its highest during a call: above what it was before, and in all; zeros where not Linux."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0, 0
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _kilobytes(status, "VmRSS")
    answer = call()
    peak = _kilobytes(status, "VmHWM")
    del answer
    return max(0, peak - before) * 1024, peak * 1024


def _kilobytes(status: Path, field: str) -> int:
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(f"{field}:"))
