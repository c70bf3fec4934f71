"""Range and round robin, on the examples of Kafka's own documentation and where the Python clients go wrong."""

from __future__ import annotations

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.model import GroupSnapshot, Member


def assign(
    name: str, members: list[Member], racks: dict[str, list[list[str]]] | None = None, **partitions: int
) -> dict[str, str]:
    """Each member's partitions as Kafka's documentation writes them: ``t0p0 t0p1``."""
    group = GroupSnapshot.of(members, partitions, racks=racks)
    answer = algorithm(name).assign(group).by_member()
    return {m: " ".join(f"{t}p{p}" for t, ps in owned.items() for p in ps) for m, owned in answer.items()}


def all_of(*ids: str, topics: tuple[str, ...] = ("t0", "t1")) -> list[Member]:
    return [Member(id=id_, topics=topics) for id_ in ids]


def test_range_as_in_the_javadoc_of_range_assignor() -> None:
    assert assign("range", all_of("C0", "C1"), t0=3, t1=3) == {"C0": "t0p0 t0p1 t1p0 t1p1", "C1": "t0p2 t1p2"}


def test_range_with_static_members_as_in_the_javadoc() -> None:
    members = [Member(id=f"C{n}", topics=["t0", "t1"], instance_id=f"I{i}") for n, i in ((3, 1), (2, 2), (1, 3))]
    assert assign("range", members, t0=3, t1=3) == {"C3": "t0p0 t1p0", "C2": "t0p1 t1p1", "C1": "t0p2 t1p2"}


def test_range_with_more_members_than_partitions() -> None:
    assert assign("range", all_of("a", "b", "c"), t0=2) == {"a": "t0p0", "b": "t0p1", "c": ""}


def test_range_with_differing_subscriptions() -> None:
    members = [*all_of("a"), *all_of("b", topics=("t1", "gone")), *all_of("c", topics=())]
    assert assign("range", members, t0=2, t1=3) == {"a": "t0p0 t0p1 t1p0 t1p1", "b": "t1p2", "c": ""}


def test_round_robin_as_in_the_javadoc_of_round_robin_assignor() -> None:
    assert assign("roundrobin", all_of("C0", "C1"), t0=3, t1=3) == {"C0": "t0p0 t0p2 t1p1", "C1": "t0p1 t1p0 t1p2"}
    members = [Member(id=f"C{i}", topics=[f"t{j}" for j in range(i + 1)]) for i in range(3)]
    assert assign("roundrobin", members, t0=1, t1=2, t2=3) == {"C0": "t0p0", "C1": "t1p0", "C2": "t1p1 t2p0 t2p1 t2p2"}


def test_round_robin_with_static_and_dynamic_members_interleaved() -> None:
    members = [Member(id=f"m{i}", topics=["t0"], instance_id=f"i{9 - i}" if i % 2 else None) for i in range(4)]
    assert assign("roundrobin", members, t0=4) == {"m3": "t0p0", "m1": "t0p1", "m0": "t0p2", "m2": "t0p3"}


def racked(**racks: str | None) -> list[Member]:
    return [Member(id=id_, topics=["t0", "t1"], rack=rack) for id_, rack in racks.items()]


def test_range_gives_members_the_partitions_of_their_rack() -> None:
    racks = {"t0": [["y"], ["x"], ["y"], ["x"]]}
    assert assign("range", racked(a="x", b="y"), racks, t0=4) == {"a": "t0p1 t0p3", "b": "t0p0 t0p2"}
    assert assign("range", racked(a="x", b=None), racks, t0=4) == {"a": "t0p1 t0p3", "b": "t0p0 t0p2"}


def test_range_keeps_topics_co_partitioned_over_racks() -> None:
    racks = {"t0": [["y"], ["x"], ["y"]], "t1": [["y", "x"], ["x"], ["x", "y"]]}
    assert assign("range", racked(a="x", b="y"), racks, t0=3, t1=3) == {"a": "t0p1 t1p1", "b": "t0p0 t0p2 t1p0 t1p2"}


def test_range_hands_co_partitioned_topics_out_partition_by_partition() -> None:
    """`b` comes first with its second partition, so the one partition more than an even share is its, not a's."""
    racks = {topic: [["y"], ["y"], ["x"], ["x"]] for topic in ("t0", "t1")}
    answer = assign("range", racked(a="x", b="y", c="z"), racks, t0=4, t1=4)
    assert answer == {"a": "t0p2 t1p2", "b": "t0p0 t0p1 t1p0 t1p1", "c": "t0p3 t1p3"}
    alone = assign("range", racked(a="x", b="y", c="z"), {"t0": racks["t0"]}, t0=4)
    assert alone == {"a": "t0p2 t0p3", "b": "t0p0", "c": "t0p1"}


def test_range_ignores_racks_that_do_not_help() -> None:
    plain = {"a": "t0p0 t0p1", "b": "t0p2"}
    assert assign("range", racked(a="elsewhere", b="nowhere"), {"t0": [["y"], ["x"], ["y"]]}, t0=3) == plain
    assert assign("range", racked(a="y", b="x"), {"t0": [["x", "y"]] * 3}, t0=3) == plain
