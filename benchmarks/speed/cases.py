"""What is measured: groups of some sizes, in two phases, under every strategy.

All members subscribe to all topics. In ``first`` no member owns anything. In ``leave`` each owns what ``first`` gave
it, and the member in the middle has left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadwise.assignor.algorithms import ALGORITHMS, algorithm
from loadwise.assignor.model import Floats, GroupSnapshot
from loadwise.assignor.staging import stage
from loadwise.assignor.strategy import Strategy, strategies, strategy
from loadwise.assignor.subscription import JoinedMember, read_members, write_subscription

STRATEGY_NAMES = tuple(name for name, named in strategies().items() if named.algorithm in ALGORITHMS)
"""What groups of every size can use: not those that are for small ones only."""

PHASES = ("first", "leave")
_GENERATION = 1
_SEED = 5


@dataclass(frozen=True, slots=True)
class Size:
    """How large a group is."""

    partitions: int
    members: int
    topics: int

    @property
    def name(self) -> str:
        """As ``100,000 x 1,000``."""
        return f"{self.partitions:,} x {self.members:,}"


SIZES = (
    Size(1_000, 10, 10),
    Size(10_000, 100, 100),
    Size(100_000, 1_000, 500),
    Size(1_000_000, 2_000, 500),
)
ON_REQUEST = (Size(10_000_000, 10_000, 500),)
"""Sizes that are measured only by name."""


def partition_counts(size: Size) -> dict[str, int]:
    """The cluster's metadata: topics of the same size, as nearly as it goes."""
    share, extra = divmod(size.partitions, size.topics)
    return {f"topic-{number:05d}": share + (number < extra) for number in range(size.topics)}


@dataclass(frozen=True, slots=True)
class Case:
    """One group, as JoinGroup and its client's metadata describe it to the leader."""

    strategy: Strategy
    joined: Sequence[JoinedMember]
    """Subscriptions, decoded but for their user data, which it is the assignor's business to decode (in Java, too)."""
    partitions: Mapping[str, int]
    load: Mapping[str, Floats] | None
    """Load of each partition, for the ``weighted`` strategies: Zipf's 1 / rank in a shuffled order."""

    @classmethod
    def of(cls, name: str, phase: str, size: Size) -> Case:
        """Make the input of one phase; ``leave`` starts from our own answer to ``first``."""
        chosen, partitions = strategy(name), partition_counts(size)
        members = [f"member-{number:06d}" for number in range(size.members)]
        load = _load(partitions) if chosen.traits.load else None
        first = cls(chosen, [_join(chosen, member, partitions) for member in members], partitions, load)
        if phase == "first":
            return first
        owned = first.answer()
        del members[size.members // 2]
        return cls(chosen, [_join(chosen, each, partitions, owned[each]) for each in members], partitions, load)

    def snapshot(self) -> GroupSnapshot:
        """The group as rows, which is what the bare algorithm is given."""
        members = [member for member, _ in read_members(self.strategy, self.joined)]
        return GroupSnapshot.of(members, self.partitions, load=self.load)

    def answer(self) -> Mapping[str, dict[str, list[int]]]:
        """What is measured: from decoded names to lists of names."""
        target = algorithm(self.strategy.algorithm).assign(self.snapshot())
        return (stage(target) if self.strategy.cooperative else target).by_member()


def _join(
    strategy: Strategy, member: str, topics: Collection[str], owned: Mapping[str, Sequence[int]] | None = None
) -> JoinedMember:
    generation = -1 if owned is None else _GENERATION
    said = write_subscription(strategy, topics, owned=owned, generation=generation, capacity=1.0, rack=None)
    return JoinedMember(id=member, subscription=said)


def _load(partitions: Mapping[str, int]) -> dict[str, Floats]:
    total = sum(partitions.values())
    loads = np.random.default_rng(_SEED).permutation(1e6 / np.arange(1, total + 1))
    cuts = np.cumsum(list(partitions.values()))[:-1]
    return dict(zip(partitions, np.split(loads, cuts), strict=True))
