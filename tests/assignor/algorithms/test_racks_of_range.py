"""Range with racks, beyond what Java's answers in ``tests/golden`` show; the rest of range and round robin is there."""

from __future__ import annotations

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.model import GroupSnapshot, Member


def assign(racks: dict[str, list[list[str]]], **members: str | None) -> dict[str, str]:
    """For members given with their racks, each one's partitions as Kafka's documentation writes them: ``t0p0 t0p1``."""
    readers = [Member(id=id_, topics=["t0", "t1"], rack=rack) for id_, rack in members.items()]
    group = GroupSnapshot.of(readers, {topic: len(each) for topic, each in racks.items()}, racks=racks)
    answer = algorithm("range").assign(group).by_member()
    return {m: " ".join(f"{t}p{p}" for t, ps in owned.items() for p in ps) for m, owned in answer.items()}


def test_members_get_the_partitions_of_their_rack() -> None:
    racks = {"t0": [["y"], ["x"], ["y"], ["x"]]}
    assert assign(racks, a="x", b="y") == {"a": "t0p1 t0p3", "b": "t0p0 t0p2"}
    assert assign(racks, a="x", b=None) == {"a": "t0p1 t0p3", "b": "t0p0 t0p2"}


def test_co_partitioned_topics_are_handed_out_partition_by_partition() -> None:
    """`b` comes first with its second partition, so the one partition more than an even share is its, not a's."""
    racks = {topic: [["y"], ["y"], ["x"], ["x"]] for topic in ("t0", "t1")}
    answer = assign(racks, a="x", b="y", c="z")
    assert answer == {"a": "t0p2 t1p2", "b": "t0p0 t0p1 t1p0 t1p1", "c": "t0p3 t1p3"}
    alone = assign({"t0": racks["t0"]}, a="x", b="y", c="z")
    assert alone == {"a": "t0p2 t0p3", "b": "t0p0", "c": "t0p1"}
