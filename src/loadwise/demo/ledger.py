"""The books of one run: the owner of each partition, the processed offsets, and the records left for each member.

Members only report their assignments and the offsets that they processed. Everything that the tables and pictures
show follows from that and from the partitions' end offsets. Members and partitions are numbers from 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from loadwise.assignor.model import NO_GENERATION
from loadwise.demo.coverage import Coverage


class Ledger:
    """What the members of one group have reported so far, over a topic whose end offsets are known."""

    def __init__(self, ends: Sequence[int], members: int) -> None:
        """``ends`` has the end offset of every partition (each starts at 0); ``members`` is the most there can be."""
        self.ends = tuple(ends)
        self.records = [0] * members
        """Records that each member processed; one processed by two members counts for both."""
        self._coverage = [Coverage() for _ in ends]
        self._generations = [NO_GENERATION] * members
        self._assigned: list[frozenset[int]] = [frozenset()] * members
        self._owner: list[int | None] = [None] * len(ends)

    def assigned(self, member: int, partitions: Iterable[int]) -> None:
        """Note all that a member owns now. The previous owner of a partition may report later."""
        now = frozenset(partitions)
        for partition in self._assigned[member] - now:
            if self._owner[partition] == member:
                self._owner[partition] = None
        for partition in now:
            self._owner[partition] = member
        self._assigned[member] = now

    def processed(self, member: int, partition: int, start: int, stop: int) -> None:
        """Note that a member has processed the offsets ``start <= offset < stop`` of a partition."""
        self._coverage[partition].add(start, stop)
        self.records[member] += stop - start

    def knows(self, member: int, generation: int) -> None:
        """Note the generation of a member's partitions."""
        self._generations[member] = generation

    @property
    def generation(self) -> int:
        """The latest generation that a member knows of: it rises by one a rebalance."""
        return max(self._generations)

    def settled(self, members: Collection[int]) -> bool:
        """Whether these members are all at the latest generation and own every partition exactly once."""
        return (
            self.generation != NO_GENERATION
            and all(self._generations[member] == self.generation for member in members)
            and sorted(p for member in members for p in self._assigned[member]) == list(range(len(self.ends)))
        )

    def assignment(self, member: int) -> frozenset[int]:
        """What a member owns by its last report."""
        return self._assigned[member]

    @property
    def owners(self) -> tuple[int | None, ...]:
        """The member that owns each partition, or None."""
        return tuple(self._owner)

    @property
    def backlog(self) -> tuple[int, ...]:
        """Records that each member still has to process, in the partitions that it owns now."""
        return sums(self._owner, self.left, len(self.records))

    @property
    def left(self) -> tuple[int, ...]:
        """Unprocessed records of each partition."""
        return tuple(end - min(end, coverage.distinct) for end, coverage in zip(self.ends, self._coverage, strict=True))

    @property
    def done(self) -> int:
        """Records processed at least once."""
        return sum(self.ends) - sum(self.left)

    @property
    def repeated(self) -> int:
        """How often a record was processed again."""
        return sum(coverage.repeated for coverage in self._coverage)


def sums(owners: Sequence[int | None], loads: Sequence[int], members: int) -> tuple[int, ...]:
    """The load of each member: the sum over the partitions that it owns."""
    total = [0] * members
    for owner, load in zip(owners, loads, strict=True):
        if owner is not None:
            total[owner] += load
    return tuple(total)
