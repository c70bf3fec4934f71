"""Our assignors as a `benchmarks.speed.worker`: ``python -m benchmarks.speed.ours``.

It reads orders, and answers each with one line. ``prepare STRATEGY PHASE PARTITIONS MEMBERS TOPICS`` makes an input.
The name of a measure and a number make so many calls and answer the wall time of each, in ns. ``memory`` answers the
highest use of memory during one call, above its input and in all, in bytes. `JavaAssignors.java` understands the same.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.speed.cases import Case, Size
from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.load.source import FixedLoad
from loadwise.assignor.participant import Participant
from loadwise.assignor.subscription import read_joined_members


def prepare(strategy: str, phase: str, size: Size) -> Mapping[str, Callable[[], object]]:
    """``names``: from decoded names to names; ``bare``: the algorithm alone; ``wire``: from bytes to bytes."""
    case = Case.of(strategy, phase, size)
    group = case.snapshot()
    assignor = algorithm(case.strategy.algorithm)
    leader = Participant(strategy, load=None if case.load is None else FixedLoad(load=case.load))
    joined = {member.id: member.subscription.encode() for member in case.joined}
    cluster = _Cluster(case.partitions)

    def wire() -> object:
        return leader.assign(read_joined_members((member, None, said) for member, said in joined.items()), cluster)

    return {"names": case.answer, "bare": lambda: assignor.assign(group), "wire": wire}


class _Cluster:
    def __init__(self, partitions: Mapping[str, int]) -> None:
        self._partitions = partitions

    def partition_count(self, topic: str) -> int | None:
        return self._partitions.get(topic)

    def replica_racks(self, _topic: str) -> Sequence[Sequence[str]]:
        return []


def main() -> None:
    """Read orders from standard input until it ends."""
    calls: Mapping[str, Callable[[], object]] = {}
    for order in sys.stdin:
        name, *arguments = order.split()
        if name == "prepare":
            strategy, phase, *size = arguments
            calls = {}  # frees the last input first
            calls = prepare(strategy, phase, Size(*map(int, size)))
            answer = "ready"
        elif name == "memory":
            answer = " ".join(map(str, _memory(calls["names"])))
        else:
            answer = " ".join(str(_time_ns(calls[name])) for _ in range(int(arguments[0])))
        print(answer, flush=True)


def _time_ns(call: Callable[[], object]) -> int:
    start = time.perf_counter_ns()
    answer = call()
    spent = time.perf_counter_ns() - start
    del answer  # only now: giving memory back is not the call's own time, in no language
    return spent


def _memory(call: Callable[[], object]) -> tuple[int, int]:
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


if __name__ == "__main__":
    main()
