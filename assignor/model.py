"""The input and output of an assignor: `Member` at the edges, `GroupSnapshot` and `Assignment` inside.

The edges use names, the inside uses rows. Partitions are numbered topic by topic, with topics in Kafka's string order.
An assignment is then one integer a partition, and a million of them are one numpy array. An `Assignment` cannot give a
partition to two members because each row has one slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from loadwise.assignor import rows as to_rows
from loadwise.assignor.by_member import ByMember
from loadwise.assignor.member import NO_GENERATION, Member, TopicPartition, kafka_order, utf16_order
from loadwise.assignor.rows import LARGEST, NOBODY, SMALLEST_CAPACITY, Bools, Floats, Ints, Owners

__all__ = [  # one place to import from, for both sides of the edge
    "LARGEST",
    "NOBODY",
    "NO_GENERATION",
    "RECORDS_PER_S",
    "SMALLEST_CAPACITY",
    "Assignment",
    "Assignor",
    "Bools",
    "Cells",
    "Floats",
    "GroupSnapshot",
    "Ints",
    "Member",
    "Owners",
    "TopicPartition",
    "Traits",
    "stable_order",
    "utf16_order",
]

RECORDS_PER_S = "records/s"
"""The unit of demands, and of capacities where they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The inputs that an algorithm needs and the protocol that it supports."""

    owned: bool = False
    """Whether it reads owned partitions. Members then send them when they join."""
    load: bool = False
    """Whether it reads loads and capacities. The leader then reads loads, and members send their capacity."""
    cooperative: bool = False
    """Whether it supports the cooperative protocol (KIP-429), which needs ``owned``."""

    def __post_init__(self) -> None:
        if self.cooperative and not self.owned:
            raise ValueError("cooperative needs owned: the protocol moves partitions in two steps between owners")


class Assignor(Protocol):
    """The interface of every algorithm: pure, and the same result to the byte for any order of the input."""

    @property
    def name(self) -> str:
        """The algorithm's name, also on the wire; `loadwise.assignor.strategy` has its cooperative form."""
        ...

    @property
    def traits(self) -> Traits:
        """The inputs that it needs."""
        ...

    def assign(self, group: GroupSnapshot) -> Assignment:
        """Return the target: the owner of each partition once everything has moved.

        Every partition with a subscriber gets an owner among its subscribers; the others get `NOBODY`. The caller
        stages the way there (KIP-429): see `loadwise.assignor.staging`.
        """
        ...


def stable_order(numbers: NDArray[np.integer[Any]], limit: int) -> Ints:
    """Return the stable sort order of numbers below ``limit``, or one larger value.

    If 16 bits hold them, it takes linear time and is five times as fast.
    """
    narrow = numbers.astype(np.uint16) if limit <= np.iinfo(np.uint16).max else numbers
    return np.argsort(narrow, kind="stable")


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupSnapshot:
    """A group at one moment as rows; immutable. Build it with `GroupSnapshot.of`.

    With M members, T topics, P partitions, S distinct subscriptions, R racks and C valid claims:
    """

    members: tuple[str, ...]
    """Member ids in Kafka's order; the index of a member in it is its number everywhere below."""
    instance_ids: tuple[str | None, ...]
    """Group instance id of each member; None for dynamic ones."""
    topics: tuple[str, ...]
    """Topics with a subscriber and metadata, in Java's string order."""
    topic_start: Ints
    """int64[T+1]: the row of each topic's partition 0; the last entry is P."""
    subscription: Owners
    """int32[M]: the index of each member's distinct subscription."""
    subscribed: Bools
    """bool[S, T]: the topics of each distinct subscription."""
    generation: Ints
    """int64[M]: the generation of each member's claims, `NO_GENERATION` if unknown."""
    claim_row: Ints
    """int64[C]: row of each claim on an existing partition, with repeated and stale ones; ascending."""
    claim_member: Owners
    """int32[C]: the member of each claim."""
    owner: Owners
    """int32[P]: current owner. Of two claims the higher generation wins; equal ones cancel out. `NOBODY` if none.

    A partition has no owner if its rightful claimant no longer subscribes; an older claim on it stays stale.
    """
    capacity: Floats
    """float64[M]: the capacity of each member relative to the others; above 0."""
    capacity_known: Bools
    """bool[M]: whether each capacity was set or measured rather than assumed."""
    load: Floats | None = None
    """float64[P]: load of each partition, NaN where unknown; None if no load is known."""
    load_unit: str = ""
    """The unit of `load`, for tables and logs: ``records``, ``bytes/s``."""
    racks: tuple[str, ...] = ()
    """Rack names in Java's string order."""
    member_rack: Owners = field(default_factory=lambda: np.empty(0, np.int32))
    """int32[M]: rack of each member, -1 where unknown."""
    partition_racks: Bools | None = None
    """bool[P, R]: the racks with a replica of each partition; None if no topic has racks."""
    even_up_to: float = 0.0
    """The utilisation up to which equal numbers of partitions come before equal loads; infinity: always.

    They are safe for shifts of the load that are not foreseen. 0: equal loads alone.
    """
    listed: Ints | None = None
    """int64[M]: the place of each member in the JoinGroup answer to the leader; None without one.

    Only ``sticky`` depends on it, and only where Java's does: see `hash_map_order`.
    """

    @classmethod
    def of(
        cls,
        members: Iterable[Member],
        partitions: Mapping[str, int],
        *,
        load: Mapping[str, Sequence[float | None] | Floats] | None = None,
        load_unit: str = "",
        racks: Mapping[str, Sequence[Sequence[str]]] | None = None,
    ) -> GroupSnapshot:
        """Build a snapshot from names; the order of the input does not matter, but see `listed`.

        ``partitions`` is the cluster's metadata, topic to number of partitions. Its topics may differ from those that
        members subscribe to. ``load`` has one number a partition, None or NaN where unknown; a topic may be missing or
        its list short. ``racks`` has the racks of every partition's replicas.

        Raises `BadGroupError` for a duplicate member id, a capacity that is not above 0, a negative or infinite load,
        or a negative number of partitions. O(P + C + M log M).
        """
        given = list(members)
        order = sorted(range(len(given)), key=[kafka_order(member) for member in given].__getitem__)
        ordered = [given[place] for place in order]
        to_rows.refuse_duplicates(ordered)
        lists, list_of = to_rows.topic_lists(ordered)
        topics = to_rows.known_topics(lists, partitions)
        counts = [partitions[topic] for topic in topics]
        topic_start = np.zeros(len(topics) + 1, np.int64)
        np.cumsum(counts, out=topic_start[1:])
        number = {topic: index for index, topic in enumerate(topics)}
        subscription, subscribed = to_rows.subscriptions(lists, list_of, number)
        generation = np.array([member.generation for member in ordered], np.int64)
        claim_row, claim_member = to_rows.claims(ordered, number, topic_start)
        owner = np.full(int(topic_start[-1]), NOBODY, np.int32)
        if len(claim_row):
            claim_topic = np.searchsorted(topic_start, claim_row, side="right") - 1
            live = subscribed[subscription[claim_member], claim_topic]
            to_rows.resolve_claims(owner, claim_row, claim_member, generation, live)
        rack_names, member_rack, partition_racks = to_rows.racks(ordered, topics, topic_start, racks)
        return cls(
            members=tuple(member.id for member in ordered),
            instance_ids=tuple(member.instance_id for member in ordered),
            topics=topics,
            topic_start=topic_start,
            subscription=subscription,
            subscribed=subscribed,
            generation=generation,
            claim_row=claim_row,
            claim_member=claim_member,
            owner=owner,
            capacity=to_rows.capacities(ordered),
            capacity_known=np.array([member.capacity_known for member in ordered], bool),
            load=None if load is None else to_rows.loads(load, topics, topic_start),
            load_unit=load_unit,
            racks=rack_names,
            member_rack=member_rack,
            partition_racks=partition_racks,
            listed=np.array(order, np.int64),
        )

    @property
    def size(self) -> int:
        """P, the number of partitions."""
        return int(self.topic_start[-1])

    @property
    def equal_subscriptions(self) -> bool:
        """Whether all members subscribe to the same topics, of those with metadata."""
        return len(self.subscribed) <= 1

    def same_partitions(self, other: GroupSnapshot) -> bool:
        """Whether the rows of both are the same partitions, with the same subscribers."""
        return (
            self.topics == other.topics
            and np.array_equal(self.topic_start, other.topic_start)
            and np.array_equal(self.subscription, other.subscription)
            and np.array_equal(self.subscribed, other.subscribed)
        )

    @cached_property
    def topic_of(self) -> Owners:
        """int32[P]: the topic of each row."""
        return np.repeat(np.arange(len(self.topics), dtype=np.int32), np.diff(self.topic_start))

    @cached_property
    def partition_of(self) -> Owners:
        """int32[P]: the partition number of each row in its topic."""
        return (np.arange(self.size) - np.repeat(self.topic_start[:-1], np.diff(self.topic_start))).astype(np.int32)

    @cached_property
    def _classes(self) -> tuple[Owners, Bools]:
        if not self.topics:
            return np.empty(0, np.int32), np.empty((0, len(self.members)), bool)
        if self.equal_subscriptions:
            return np.zeros(len(self.topics), np.int32), np.ones((1, len(self.members)), bool)
        distinct, class_of_topic = np.unique(self.subscribed.T, axis=0, return_inverse=True)
        return class_of_topic.reshape(-1).astype(np.int32), distinct[:, self.subscription]

    @property
    def class_of_topic(self) -> Owners:
        """int32[T]: the class of each topic, from 0. Topics with the same subscribers share a class."""
        return self._classes[0]

    @property
    def subscribers_of_class(self) -> Bools:
        """bool[K, M]: the subscribers of each class, at least one."""
        return self._classes[1]

    @cached_property
    def class_of(self) -> Owners:
        """int32[P]: the class of each row's topic."""
        return self.class_of_topic[self.topic_of]

    @cached_property
    def racks_known(self) -> bool:
        """Whether the racks of some replicas and some member are known. Otherwise racks are ignored."""
        return self.partition_racks is not None and bool((self.member_rack >= 0).any())

    def misplaced(self, replica_racks: Bools) -> Bools:
        """bool[n, M]: whether each member would read each partition from another rack (KIP-881).

        ``replica_racks`` is bool[n, R], the racks with a replica of each partition. A partition without racks and a
        member without a rack are never misplaced.
        """
        if not self.racks_known:
            return np.zeros((len(replica_racks), len(self.members)), bool)
        elsewhere: Bools = ~replica_racks[:, self.member_rack] & (self.member_rack >= 0)
        return elsewhere & replica_racks.any(axis=1, keepdims=True)

    def subscribers(self, topic: int) -> Ints:
        """int64[k]: the subscribers of a topic (its index in `topics`), in Kafka's order."""
        return np.flatnonzero(self.subscribed[self.subscription, topic])

    def name_of(self, row: int) -> TopicPartition:
        """Return the partition of a row."""
        topic = int(np.searchsorted(self.topic_start, row, side="right")) - 1
        return TopicPartition(self.topics[topic], row - int(self.topic_start[topic]))


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """An assignment grouped for the wire: a cell holds the partitions that one member has of one topic."""

    count: Ints
    """int64[M]: the number of cells of each member; cells are ordered by member, then topic."""
    topic: Owners
    """int32[C]: the topic of each cell, as an index of ``group.topics``."""
    start: Ints
    """int64[C]: where the partitions of each cell begin in ``partition``."""
    length: Ints
    """int64[C]: the number of partitions of each cell, at least 1."""
    partition: Owners
    """int32[n]: the partition numbers of all cells, ascending in each cell."""


@dataclass(frozen=True, eq=False, slots=True)
class Assignment:
    """The owner of each partition of a snapshot: the result of an assignor."""

    group: GroupSnapshot
    owner: Owners
    """int32[P]: the owner of each row, as an index of ``group.members``; `NOBODY` for none."""

    def __post_init__(self) -> None:
        # numpy's own whole numbers are int64, and an algorithm of a user's may well answer with these.
        object.__setattr__(self, "owner", self.owner.astype(np.int32, casting="same_kind", copy=False))

    def counts(self) -> Ints:
        """int64[M]: the number of partitions of each member."""
        return np.bincount(self.owner[self.owner >= 0], minlength=len(self.group.members))

    def cells(self) -> Cells:
        """Return the assignment sorted by member, topic and partition. O(P)."""
        group = self.group
        held = int(np.count_nonzero(self.owner != NOBODY))
        rows = stable_order(self.owner.view(np.uint32), len(group.members))[:held]  # NOBODY is the largest
        owner, topic = self.owner[rows], group.topic_of[rows]
        edge = np.ones(held + 1, bool)
        np.not_equal(owner[1:], owner[:-1], out=edge[1:-1])
        edge[1:-1] |= topic[1:] != topic[:-1]
        edges = np.flatnonzero(edge)
        start = edges[:-1] if held else edges[:0]
        return Cells(
            count=np.bincount(owner[start], minlength=len(group.members)),
            topic=topic[start],
            start=start,
            length=np.diff(edges),
            partition=(rows - group.topic_start[topic]).astype(np.int32),
        )

    def by_member(self) -> ByMember:
        """Map each member id to its partitions by topic, ascending; every member has an entry. O(P).

        A member's dictionary and lists are built when it is read.
        """
        cells = self.cells()
        return ByMember(
            self.group.members,
            self.group.topics,
            count=cells.count,
            topic=cells.topic,
            start=cells.start,
            partition=cells.partition,
        )

    def pairs(self) -> dict[str, list[tuple[str, int]]]:
        """Map each member id to its partitions as (topic, partition), ascending; every member has an entry. O(P)."""
        group, count = self.group, self.counts()
        stop = np.cumsum(count)
        rows = stable_order(self.owner.view(np.uint32), len(group.members))[: count.sum()]  # NOBODY is the largest
        topic_of = group.topic_of[rows]
        # Names and numbers come from tables, so that no object is made for a row but its pair.
        topic = np.array(group.topics, object)[topic_of]
        most = int(np.diff(group.topic_start).max(initial=0))
        partition = np.arange(most).astype(object)[rows - group.topic_start[topic_of]]
        spans = zip(group.members, (stop - count).tolist(), stop.tolist(), strict=True)
        return {m: list(zip(topic[a:b].tolist(), partition[a:b].tolist(), strict=True)) for m, a, b in spans}

    def owner_of(self, topic: str, partition: int) -> str | None:
        """Return the owner's member id, None without an owner. Raises KeyError for an unknown partition."""
        if topic not in self.group.topics:
            raise KeyError(topic)
        index = self.group.topics.index(topic)
        row = int(self.group.topic_start[index]) + partition
        if partition < 0 or row >= self.group.topic_start[index + 1]:
            raise KeyError(TopicPartition(topic, partition))
        owner = int(self.owner[row])
        return None if owner == NOBODY else self.group.members[owner]
