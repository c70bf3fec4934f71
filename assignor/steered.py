"""What the assignor ``loadwise`` of a broker does with a steering note (KIP-848); `assignor/broker` is its Java twin.

docs/steering-note.md specifies both: they answer alike, whatever the note.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from loadwise.protocol.steering_note import UNOWNED, Plan, name_hash, newest_plan

ROUNDS = 10
"""The most rounds of step 3: a broker cannot wait for long. Nearly all groups need fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeredMember:
    """A member as the broker shows it to an assignor."""

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    topics: Collection[bytes] = ()
    """The ids of its topics that exist."""
    owned: Mapping[bytes, Collection[int]] = field(default_factory=dict)
    """Topic id to its partitions now."""


def steered(members: Iterable[SteeredMember], partitions: Mapping[bytes, int]) -> dict[str, dict[bytes, list[int]]]:
    """Return member id to topic id to partitions; ``partitions`` has the number of each topic that exists."""
    everyone = sorted(members, key=lambda member: member.id.encode())
    readers = [member for member in everyone if any(topic in partitions for topic in member.topics)]
    topics = sorted({topic for member in readers for topic in member.topics if topic in partitions})
    plan = newest_plan(member.rack_id for member in everyone if member.rack_id is not None)
    hashes = [name_hash(member.id, member.instance_id) for member in readers]
    if plan is not None and len(set(hashes)) < len(hashes):
        plan = None
    work = _Work(readers, topics, {topic: partitions[topic] for topic in topics})
    if plan is None:
        newcomers = [number for number, held in enumerate(work.counts()) if not held]
        planned: Mapping[int, int] = {}
    else:
        planned = work.weigh(plan, hashes)
        newcomers = sorted(set(range(len(readers))) - set(planned.values()))
        work.follow(planned, newcomers)
    work.place()
    work.settle(newcomers, planned)
    return {member.id: {} for member in everyone} | work.by_member()


class _Work:
    """Owners, levels and what is known of the load. Members and partitions are numbered."""

    def __init__(self, readers: Sequence[SteeredMember], topics: Sequence[bytes], sizes: Mapping[bytes, int]) -> None:
        self._readers, self._topics, self._sizes = readers, topics, sizes
        self._reads = [frozenset(member.topics) for member in readers]
        self._of = [topic for topic in topics for _ in range(sizes[topic])]  # the topic of each partition
        self._start = dict(zip(topics, accumulate((sizes[topic] for topic in topics), initial=0), strict=False))
        self._owner = [UNOWNED] * len(self._of)
        for number, member in reversed(list(enumerate(readers))):
            for topic, held in member.owned.items():
                if topic in self._reads[number] and topic in sizes:
                    for partition in held:
                        if 0 <= partition < sizes[topic]:
                            self._owner[self._start[topic] + partition] = number
        self._weight = [1] * len(self._of)
        self._capacity = [1] * len(readers)

    def counts(self) -> list[int]:
        """Return how many partitions each member owns."""
        return self._sums([1] * len(self._owner))

    def weigh(self, plan: Plan, hashes: Sequence[int]) -> dict[int, int]:
        """Take weights and capacities from a plan; return the owners that it names, if they read the partition."""
        usual = max(sum(plan.capacities.values()) // max(len(plan.capacities), 1), 1)
        self._capacity = [plan.capacities.get(name, usual) for name in hashes]
        self._weight = [max(sum(plan.weights) // max(len(plan.weights), 1), 1)] * len(self._of)
        number = {name: each for each, name in enumerate(hashes)}
        member = [number.get(name, UNOWNED) for name in plan.capacities]
        planned = {}
        at = 0
        for topic, size in plan.partitions.items():
            for partition in range(min(size, self._sizes.get(topic, 0))):
                here = self._start[topic] + partition
                self._weight[here] = plan.weights[at + partition]
                place = plan.owners[at + partition]
                owner = UNOWNED if place == UNOWNED else member[place]
                if owner != UNOWNED and topic in self._reads[owner]:
                    planned[here] = owner
            at += size
        return planned

    def follow(self, planned: Mapping[int, int], newcomers: Collection[int]) -> None:
        """Give partitions to their planned owners, but those that newcomers have now."""
        keeps = set(newcomers)
        for here, owner in planned.items():
            if self._owner[here] not in keeps:
                self._owner[here] = owner

    def place(self) -> None:
        """Give partitions without an owner to the members with the lowest levels."""
        load, counts = self._loads(), self.counts()
        levels = [(float(load[each]) / self._capacity[each], counts[each], each) for each in range(len(self._readers))]
        heapq.heapify(levels)
        left = [each for each, owner in enumerate(self._owner) if owner == UNOWNED]
        for here in sorted(left, key=lambda each: -self._weight[each]):
            passed = []
            while self._of[here] not in self._reads[levels[0][2]]:
                passed.append(heapq.heappop(levels))
            _, count, owner = levels[0]
            self._owner[here] = owner
            load[owner] += self._weight[here]
            heapq.heapreplace(levels, (float(load[owner]) / self._capacity[owner], count + 1, owner))
            for each in passed:
                heapq.heappush(levels, each)

    def settle(self, newcomers: Sequence[int], planned: Mapping[int, int]) -> None:
        """Let newcomers return what others were to have, and take their share, until nothing moves."""
        self._load = self._loads()
        heaviest_first = {here: planned[here] for here in sorted(planned, key=lambda each: (-self._weight[each], each))}
        for _ in range(ROUNDS if newcomers else 0):
            returned = self._return(newcomers, heaviest_first)
            if not (self._take(newcomers) or returned):
                break

    def _return(self, newcomers: Sequence[int], planned: Mapping[int, int]) -> bool:
        """Return partitions to their planned owners if those stay below the newcomer that has them."""
        keeps = set(newcomers)
        moved = False
        for here, owner in planned.items():
            now = self._owner[here]
            if now in keeps and self._level(owner, with_=here) < self._level(now):
                self._move(here, owner)
                moved = True
        return moved

    def _take(self, newcomers: Sequence[int]) -> bool:
        """Let each newcomer below the mean take from the members with the highest levels."""
        mean = float(sum(self._load)) / float(sum(self._capacity))
        held: list[list[int]] = [[] for _ in self._readers]
        for here in sorted(range(len(self._owner)), key=lambda each: -self._weight[each]):
            held[self._owner[here]].append(here)
        moved = False
        for new in newcomers:
            if self._level(new) >= mean:
                continue
            above = [(-self._level(giver), giver) for giver in range(len(self._readers))]
            heapq.heapify(above)
            while self._level(new) < mean and -above[0][0] > self._level(new):
                _, giver = heapq.heappop(above)
                taken = self._heaviest(held[giver], giver, new)
                if taken is not None:
                    held[giver].remove(taken)
                    self._move(taken, new)
                    moved = True
                    heapq.heappush(above, (-self._level(giver), giver))
        return moved

    def _heaviest(self, held: Sequence[int], giver: int, new: int) -> int | None:
        """Return the heaviest of a member's partitions with which a newcomer that reads it stays below that member."""
        level = self._level(giver)
        light = bisect_left(held, True, key=lambda here: self._level(new, with_=here) < level)
        return next((here for here in held[light:] if self._of[here] in self._reads[new]), None)

    def _level(self, member: int, *, with_: int | None = None) -> float:
        return float(self._load[member] + (0 if with_ is None else self._weight[with_])) / self._capacity[member]

    def _move(self, here: int, owner: int) -> None:
        self._load[self._owner[here]] -= self._weight[here]
        self._owner[here] = owner
        self._load[owner] += self._weight[here]

    def _loads(self) -> list[int]:
        return self._sums(self._weight)

    def _sums(self, values: Iterable[int]) -> list[int]:
        """Return the sum of partitions' values over each member's partitions."""
        sums = [0] * len(self._readers)
        for owner, value in zip(self._owner, values, strict=True):
            if owner != UNOWNED:
                sums[owner] += value
        return sums

    def by_member(self) -> dict[str, dict[bytes, list[int]]]:
        """Return the owners as `steered` does."""
        answer: dict[str, dict[bytes, list[int]]] = {member.id: {} for member in self._readers}
        for topic in self._topics:
            start = self._start[topic]
            for partition in range(self._sizes[topic]):
                answer[self._readers[self._owner[start + partition]].id].setdefault(topic, []).append(partition)
        return answer
