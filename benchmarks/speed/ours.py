"""Our assignors as a `benchmarks.speed.worker`: ``python -m benchmarks.speed.ours``.

It reads orders, and answers each with one line. ``prepare STRATEGY PHASE PARTITIONS MEMBERS TOPICS`` makes an input.
The name of a measure and a number make so many calls and answer the wall time of each, in ns. `JavaAssignors.java`
understands the same.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence

from benchmarks.speed.cases import Case, Size
from loadwise.assignor.load.source import FixedLoad
from loadwise.assignor.participant import Participant
from loadwise.assignor.subscription import read_joined_members


def prepare(strategy: str, phase: str, size: Size) -> Mapping[str, Callable[[], object]]:
    """``names``: from decoded names to names; ``wire``: from bytes to bytes."""
    case = Case.of(strategy, phase, size)
    leader = Participant(strategy, load=None if case.load is None else FixedLoad(load=case.load))
    joined = {member.id: member.subscription.encode() for member in case.joined}
    cluster = _Cluster(case.partitions)

    def wire() -> object:
        return leader.assign(read_joined_members((member, None, said) for member, said in joined.items()), cluster)

    return {"names": case.answer, "wire": wire}


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
        else:
            answer = " ".join(str(_time_ns(calls[name])) for _ in range(int(arguments[0])))
        print(answer, flush=True)


def _time_ns(call: Callable[[], object]) -> int:
    start = time.perf_counter_ns()
    answer = call()
    spent = time.perf_counter_ns() - start
    del answer  # only now: giving memory back is not the call's own time, in no language
    return spent


if __name__ == "__main__":
    main()
