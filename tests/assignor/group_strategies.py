"""Hypothesis strategies for groups: small, and with everything in them that a real group can bring."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from loadwise.assignor.model import Assignment, GroupSnapshot, Member

TOPICS = ("a", "b", "c", "\uff5e", "\U0001f600")
RACKS = ("r0", "r1", "r2")


@dataclass(frozen=True)
class Group:
    """What a snapshot is made of, so that a test can change it and make another one."""

    members: tuple[Member, ...]
    partitions: dict[str, int]
    load: dict[str, list[float | None]] | None = None
    racks: dict[str, list[list[str]]] | None = None

    def snapshot(self) -> GroupSnapshot:
        return GroupSnapshot.of(self.members, self.partitions, load=self.load, racks=self.racks)

    def owning(self, assignment: Assignment, generation: int = 9) -> Group:
        """The same group in the next round: everybody owns what it was assigned."""
        owned = assignment.by_member()
        members = (replace(m, owned=owned[m.id], generation=generation) for m in self.members)
        return replace(self, members=tuple(members))


@st.composite
def groups(
    draw: st.DrawFn, *, equal: bool | None = None, racks: bool = True, load: bool = True, most: int = 6, size: int = 8
) -> Group:
    """A group with claims of every kind: right, stale, doubled, on topics left and on partitions that are gone."""
    known = draw(st.lists(st.sampled_from(TOPICS), unique=True, min_size=1))
    partitions = {topic: draw(st.integers(0, size)) for topic in known}
    ids = draw(
        st.lists(st.sampled_from([f"m{i}" for i in range(9)] + ["\uff5e", "\U0001f600"]), unique=True, max_size=most)
    )
    static = draw(st.sets(st.sampled_from(ids))) if ids else set()
    same = draw(st.booleans()) if equal is None else equal
    subscriptions = st.lists(st.sampled_from(TOPICS), unique=True)
    subscription = draw(subscriptions)
    claims = st.dictionaries(st.sampled_from(TOPICS), st.lists(st.integers(-1, 9), unique=True), max_size=3)
    maybe_rack = st.sampled_from([*RACKS, None]) if racks else st.none()
    members = tuple(
        Member(
            id=id_,
            topics=subscription if same else draw(subscriptions),
            owned=draw(claims),
            generation=draw(st.integers(-1, 3)),
            instance_id=f"i-{id_}" if id_ in static else None,
            rack=draw(maybe_rack),
            capacity=draw(st.sampled_from([1.0, 1.0, 0.5, 3.0])),
        )
        for id_ in ids
    )
    loads = st.one_of(st.none(), st.just(0.0), st.floats(0, 1e6))
    return Group(
        members,
        partitions,
        {t: draw(st.lists(loads, min_size=n, max_size=n)) for t, n in partitions.items()}
        if load and draw(st.booleans())
        else None,
        {
            t: draw(st.lists(st.lists(st.sampled_from(RACKS), unique=True), min_size=n, max_size=n))
            for t, n in partitions.items()
        }
        if racks and draw(st.booleans())
        else None,
    )


def value(assignment: Assignment) -> tuple[int, int, int]:
    """What sticky keeps low, in this order: squared counts, rack mismatches, partitions taken from their owner."""
    group = assignment.group
    misplaced = 0
    for row, owner in enumerate(assignment.owner.tolist()):
        racks = None if group.partition_racks is None else group.partition_racks[row]
        rack = group.member_rack[owner]
        misplaced += racks is not None and racks.any() and rack >= 0 and not racks[rack]
    taken = (group.owner >= 0) & (group.owner != assignment.owner)
    return int((assignment.counts() ** 2).sum()), int(misplaced), int(taken.sum())
