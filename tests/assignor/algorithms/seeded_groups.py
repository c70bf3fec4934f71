"""Groups of many kinds, each the same for its seed; loads and capacities are such that sums and quotients are exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.measure import measure
from loadwise.assignor.model import Assignment, GroupSnapshot, Member

RACKS = ("r0", "r1", "r2")
KINDS = {
    "weighted": ("fresh", "shifted", "joined", "left", "subscriptions", "racks", "guessed", "full"),
    "sticky": ("joined", "left", "subscriptions", "racks"),
    "optimal": ("subscriptions", "racks"),
}
"""What the groups of each algorithm have been through, or have that others have not."""


@dataclass(frozen=True)
class Seeded:
    """A group, and the algorithm that is to assign it."""

    kind: str
    seed: int
    algorithm: str

    def quality(self) -> str:
        """Return how good the algorithm's answer is: the highest load by its bound, what moved, racks missed."""
        group = self.snapshot()
        answer = algorithm(self.algorithm).assign(group)
        found = measure(answer)
        return (
            f"{self.algorithm} {self.kind} {self.seed}: {found.max_over_bound:.3f} over the bound,"
            f" {found.moved} moved, {found.moved_load:g} of load, {found.spread} apart, {_misplaced(answer)} misplaced"
        )

    def snapshot(self) -> GroupSnapshot:
        """Return the group."""
        random = Random(f"{self.kind} {self.seed}")
        count = random.choice([2, 3, 5, 8, 13, 24])
        topics = {f"t{index}": random.choice([1, 3, 8, 20, 45]) for index in range(random.randint(1, 4))}
        racks = self.kind == "racks"
        members = [
            Member(
                id=f"m{index:02}",
                instance_id=f"i{index:02}" if random.random() < 0.3 else None,
                topics=[topic for topic in topics if self.kind != "subscriptions" or random.random() < 0.6],
                capacity=random.choice([1.0, 1.0, 2.0, 0.5]) if random.random() < 0.7 else 1.0,
                rack=random.choice([*RACKS, None]) if racks else None,
            )
            for index in range(count)
        ]
        loads: dict[str, list[float | None]] = {t: [_load(random) for _ in range(n)] for t, n in topics.items()}
        places = {t: [random.sample(RACKS, random.randint(1, 2)) for _ in range(n)] for t, n in topics.items()}
        if self.kind != "fresh":
            before = members[: max(1, count * 2 // 3)] if self.kind == "joined" else members
            assigned = GroupSnapshot.of(
                before, topics, load=loads, racks=places if racks and random.random() < 0.5 else None
            )
            owned = algorithm(random.choice(["weighted", "range", "sticky"])).assign(assigned).by_member()
            members = [
                Member(
                    id=member.id,
                    instance_id=member.instance_id,
                    topics=member.topics,
                    capacity=member.capacity,
                    rack=member.rack,
                    owned=owned.get(member.id, {}),
                    generation=1,
                )
                for member in members
            ]
            if self.kind == "left":
                members = random.sample(members, max(1, count * 3 // 4))
            loads = {t: [x if random.random() < 0.7 else _load(random) for x in of] for t, of in loads.items()}
        if self.kind == "guessed":
            loads = {t: [x if random.random() < 0.6 else None for x in of] for t, of in loads.items()}
        unit = "records/s" if self.kind == "full" else ""
        return GroupSnapshot.of(members, topics, load=loads, load_unit=unit, racks=places if racks else None)


def seeded(each: int = 20) -> Iterator[Seeded]:
    """Yield so many groups of each kind for each algorithm."""
    for name, kinds in KINDS.items():
        for kind in kinds:
            for seed in range(each):
                yield Seeded(kind, seed, name)


def _load(random: Random) -> float:
    return float(random.choice([0, 1, 1, 2, 3, 5, 8, 13, 40, random.randint(1, 300)]))


def _misplaced(answer: Assignment) -> int:
    group = answer.group
    if group.partition_racks is None or not group.racks_known:
        return 0
    misplaced = group.misplaced(group.partition_racks)
    return sum(bool(misplaced[row, owner]) for row, owner in enumerate(answer.owner.tolist()) if owner >= 0)


if __name__ == "__main__":
    print(*(each.quality() for each in seeded()), sep="\n")
