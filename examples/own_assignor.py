"""An assignor of one's own, and its contract test: ``pytest examples/own_assignor.py``."""

from dataclasses import dataclass
from random import Random
from typing import ClassVar

import numpy as np

from loadwise.assignor.model import NOBODY, Assignment, GroupSnapshot, Member, Traits


@dataclass(frozen=True, slots=True)
class Heaviest:
    """The heaviest partition first, each to the subscriber with least load for its capacity."""

    name: ClassVar[str] = "heaviest"
    traits: ClassVar[Traits] = Traits(load=True)

    def assign(self, group: GroupSnapshot) -> Assignment:
        load = np.ones(group.size) if group.load is None else np.nan_to_num(group.load, nan=1.0)
        owner = np.full(group.size, NOBODY)
        taken = np.zeros(len(group.members))
        for row in np.argsort(-load, kind="stable"):
            readers = group.subscribers(group.topic_of[row])
            if len(readers):
                owner[row] = readers[np.argmin((taken[readers] + load[row]) / group.capacity[readers])]
                taken[owner[row]] += load[row]
        return Assignment(group, owner)


def test_the_contract() -> None:
    random = Random(1)
    for _ in range(200):
        partitions = {topic: random.randint(1, 5) for topic in "abc"}
        topics = [random.sample("abc", random.randint(1, 3)) for _ in range(random.randint(1, 4))]
        members = [Member(id=f"m{number}", topics=wanted) for number, wanted in enumerate(topics)]
        answer = Heaviest().assign(GroupSnapshot.of(members, partitions)).by_member()
        wanted = {(topic, number) for each in members for topic in each.topics for number in range(partitions[topic])}
        given = [(topic, number) for owned in answer.values() for topic, numbers in owned.items() for number in numbers]
        assert sorted(given) == sorted(wanted), "each partition once"
        assert all(set(answer[each.id]) <= set(each.topics) for each in members), "to a subscriber"
        assert answer == Heaviest().assign(GroupSnapshot.of(members[::-1], partitions)).by_member(), "in any order"
