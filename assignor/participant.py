"""One member's part in its group, without its client: what it joins with, and what it answers as the leader.

Every client's adapter is a thin layer over a `Participant`, so that the same group gets the same answer, to the byte,
whichever client happens to lead it. Kafka's counterpart is ``ConsumerPartitionAssignor`` with the state that
``AbstractStickyAssignor`` keeps between rebalances.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.answer import encode
from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.load.source import LoadSnapshot, LoadSource
from loadwise.assignor.model import LARGEST, NO_GENERATION, SMALLEST_CAPACITY, Assignor, GroupSnapshot, Member
from loadwise.assignor.staging import stage
from loadwise.assignor.strategy import strategy as strategy_named
from loadwise.assignor.subscription import JoinedMember, read_members, write_subscription

log = logging.getLogger(__name__)

_LOAD_AWARE = frozenset({"weighted"})


class Cluster(Protocol):
    """What the leader knows of the cluster: its client's metadata."""

    def partition_count(self, topic: str) -> int | None:
        """How many partitions a topic has; None while there is no metadata of it."""
        ...

    def replica_racks(self, topic: str) -> Sequence[Sequence[str]]:
        """Racks of the replicas of each partition; empty where the brokers have none."""
        ...


class Participant:
    """The state and the decisions of one member. Not thread-safe: its client calls it from one thread.

    ``assignor`` is a name on the wire, or one of our algorithms with parameters of its own; ``cooperative`` asks for
    its cooperative form, which ``"cooperative-weighted"`` is of ``"weighted"``. ``capacity`` and ``load`` matter to the
    ``weighted`` ones. Raises `UnknownStrategyError`, and `BadGroupError` for a capacity that is not above 0.
    """

    def __init__(
        self,
        assignor: str | Assignor,
        *,
        cooperative: bool = False,
        capacity: float = 1.0,
        rack: str | None = None,
        load: LoadSource | None = None,
    ) -> None:
        name = assignor if isinstance(assignor, str) else assignor.name
        self.strategy = strategy_named(f"cooperative-{name.removeprefix('cooperative-')}" if cooperative else name)
        if not SMALLEST_CAPACITY <= capacity <= LARGEST:
            raise BadGroupError(
                f"the capacity of a member must be a finite number above 0, not {capacity}"
                f" ({SMALLEST_CAPACITY:g} to {LARGEST:g})"
            )
        self.capacity = capacity
        self.rack = rack or None
        self.load = load
        self.led = 0
        """How many rebalances this member has led."""
        self.fallbacks = 0
        """How many of these had to do without the load: it was missing, stale or impossible."""
        self._algorithm = algorithm(self.strategy.algorithm) if isinstance(assignor, str) else assignor
        self._owned: Mapping[str, Sequence[int]] | None = None
        self.generation = NO_GENERATION
        """The generation of the newest assignment; `NO_GENERATION` before the first, or where the client tells none."""
        self._warned = False

    @property
    def load_aware(self) -> bool:
        """Whether the strategy has a use for loads."""
        return self.strategy.algorithm in _LOAD_AWARE

    def subscription(self, topics: Iterable[str], *, owned: Mapping[str, Sequence[int]] | None = None) -> bytes:
        """The bytes to join with. ``owned`` is what the client still holds, None where it cannot tell."""
        joining = write_subscription(
            self.strategy,
            frozenset(topics),
            owned=self._owned if owned is None else owned,
            generation=self.generation,
            capacity=self.capacity,
            rack=self.rack,
        )
        return joining.encode()

    def assigned(self, partitions: Mapping[str, Sequence[int]], generation: int) -> None:
        """Remember what the leader gave, and when; ``generation`` is `NO_GENERATION` where the client does not tell."""
        self._owned = {topic: list(numbers) for topic, numbers in partitions.items()}
        self.generation = generation

    def assign(self, joined: Iterable[JoinedMember], cluster: Cluster) -> dict[str, bytes]:
        """Answer, as the leader, every member's assignment bytes. Topics without metadata are left for later."""
        members = read_members(self.strategy, joined)
        topics = set().union(*{id(member.topics): member.topics for member in members}.values())
        counts = {topic: count for topic in topics if (count := cluster.partition_count(topic)) is not None}
        racks = None
        if any(member.rack is not None for member in members):
            racks = {topic: replicas for topic in counts if (replicas := cluster.replica_racks(topic))}
        target = self._algorithm.assign(self._snapshot(members, counts, racks))
        answer = encode(stage(target) if self.strategy.cooperative else target)
        self.led += 1
        return answer

    def _snapshot(
        self,
        members: Sequence[Member],
        counts: Mapping[str, int],
        racks: Mapping[str, Sequence[Sequence[str]]] | None,
    ) -> GroupSnapshot:
        """The group, with its load where there is one that can be used."""
        if not (self.load_aware and counts):
            return GroupSnapshot.of(members, counts, racks=racks)
        seen: LoadSnapshot | None = None
        try:
            seen = None if self.load is None else self.load.snapshot(counts.keys())
            reason = _unusable(seen)
        except BadGroupError as error:
            reason = str(error)
        if seen is not None and reason is None:
            try:
                group = GroupSnapshot.of(members, counts, load=seen.load, load_unit=seen.unit, racks=racks)
            except BadGroupError as error:
                reason = str(error)
            else:
                if group.load is None or not np.isnan(group.load).all():
                    self._warned = False
                    return group
                reason = "none of these partitions was read yet"
        self.fallbacks += 1
        if not self._warned:
            self._warned = True
            log.warning("No load to assign by (%s): partitions are balanced by number, and kept where they are", reason)
        return GroupSnapshot.of(members, counts, racks=racks)


def _unusable(seen: LoadSnapshot | None) -> str | None:
    if seen is None:
        return "none was read yet"
    if seen.stale:
        return f"the newest is {seen.age_s:.0f} s old, {seen.max_age_s:.0f} s at most"
    return None
