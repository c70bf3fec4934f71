"""Our assignors behind `benchmarks.speed.orders`: ``python -m benchmarks.speed.ours``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.speed.cases import Case, Size
from benchmarks.speed.orders import Call, serve
from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.load.source import FixedLoad
from loadwise.assignor.participant import Participant
from loadwise.assignor.subscription import read_joined_members


def prepare(strategy: str, phase: str, size: Size) -> Mapping[str, Call]:
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


if __name__ == "__main__":
    serve(prepare)
