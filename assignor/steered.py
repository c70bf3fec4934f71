"""What the assignor ``loadwise`` of a broker does with a steering note (KIP-848); `assignor/broker` is its Java twin.

docs/steering-note.md specifies both: they answer alike, whatever the note.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from loadwise.protocol.steering_note import UNOWNED, Plan, name_hash, newest_plan


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
    else:
        work.weigh(plan, hashes)
        newcomers = [number for number, name in enumerate(hashes) if name not in plan.capacities]
    work.place()
    work.relieve(newcomers)
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

    def weigh(self, plan: Plan, hashes: Sequence[int]) -> None:
        """Take owners, weights and capacities from a plan."""
        usual = max(sum(plan.capacities.values()) // max(len(plan.capacities), 1), 1)
        self._capacity = [plan.capacities.get(name, usual) for name in hashes]
        self._weight = [max(sum(plan.weights) // max(len(plan.weights), 1), 1)] * len(self._of)
        number = {name: each for each, name in enumerate(hashes)}
        planned = [number.get(name, UNOWNED) for name in plan.capacities]
        known = [name in plan.capacities for name in hashes]
        at = 0
        for topic, size in plan.partitions.items():
            for partition in range(min(size, self._sizes.get(topic, 0))):
                here = self._start[topic] + partition
                self._weight[here] = plan.weights[at + partition]
                now, place = self._owner[here], plan.owners[at + partition]
                owner = UNOWNED if place == UNOWNED else planned[place]
                if owner != UNOWNED and topic in self._reads[owner] and (now == UNOWNED or known[now]):
                    self._owner[here] = owner
            at += size

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

    def relieve(self, newcomers: Collection[int]) -> None:
        """Let newcomers take their share from the members with the highest levels."""
        load, capacity = self._loads(), self._capacity
        if not newcomers:
            return
        mean = float(sum(load)) / float(sum(capacity))
        held: list[list[int]] = [[] for _ in self._readers]
        for here, owner in enumerate(self._owner):
            held[owner].append(here)
        for each in held:
            each.sort(key=lambda here: -self._weight[here])
        givers = set(range(len(self._readers))) - set(newcomers)
        for new in newcomers:
            above = [(-float(load[giver]) / capacity[giver], giver) for giver in givers]
            heapq.heapify(above)
            while above and float(load[new]) / capacity[new] < mean and -above[0][0] > mean:
                level, giver = heapq.heappop(above)
                taken = next(
                    (
                        here
                        for here in held[giver]
                        if self._of[here] in self._reads[new]
                        and float(load[new] + self._weight[here]) / capacity[new] < -level
                    ),
                    None,
                )
                if taken is not None:
                    held[giver].remove(taken)
                    self._owner[taken] = new
                    load[giver] -= self._weight[taken]
                    load[new] += self._weight[taken]
                    heapq.heappush(above, (-float(load[giver]) / capacity[giver], giver))

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
