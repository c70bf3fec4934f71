"""What an assignor is given and what it answers: `Member` at the edges, `GroupSnapshot` and `Assignment` inside.

At the edges there are names. Inside there are rows: partitions are numbered topic by topic, topics in Kafka's string
order, so that an assignment is one integer a partition and a million of them is one numpy array. An `Assignment` can
not give a partition to two members: there is one slot a row.

Kafka's order (``AbstractPartitionAssignor``, ``MemberInfo.compareTo``): static members first, by group instance id,
then dynamic ones by member id; strings compare by UTF-16 code unit, as Java's do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice, repeat
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from loadwise.assignor.errors import BadGroupError
from loadwise.collector import collector_paused

Ints: TypeAlias = NDArray[np.int64]
Owners: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

NOBODY = -1
"""The owner of a partition that no member owns."""

NO_GENERATION = -1
"""The generation of a member that never was in the group, or lost its place (Kafka's ``DEFAULT_GENERATION``)."""


LARGEST = 1e60
"""The largest load and capacity that are taken: quotients of their sums and squares are still numbers."""
SMALLEST_CAPACITY = 1e-60
"""The smallest capacity that is taken, for the same reason."""


class TopicPartition(NamedTuple):
    """A partition by name. Equal to, and as good as, the clients' own ``TopicPartition`` tuples."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of a group as its leader sees it: what it subscribes to, and what it says it owns."""

    id: str
    """Member id, given by the coordinator; unique in the group."""
    topics: Sequence[str]
    """Topics subscribed to. A topic without metadata is tolerated: it is left out of the assignment."""
    owned: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Partitions that the member claims, by topic. Claims may be stale, doubled, or name partitions that are gone."""
    generation: int = NO_GENERATION
    """The generation at which the member was given ``owned``; `NO_GENERATION` if it does not say."""
    instance_id: str | None = None
    """Group instance id of a static member (KIP-345); None for a dynamic one."""
    rack: str | None = None
    """Rack of the member (KIP-881); None if it does not say."""
    capacity: float = 1.0
    """What the member can process relative to the others, or in the unit of the load a second. Finite, above 0."""


class Assignor(Protocol):
    """The one interface of every algorithm: pure, and deterministic to the byte for any order of the input."""

    @property
    def name(self) -> str:
        """The algorithm's name; the name on the wire also says eager or cooperative: `loadwise.assignor.strategy`."""
        ...

    def assign(self, group: GroupSnapshot) -> Assignment:
        """Answer the target: who should own each partition once everything has moved.

        Every partition with a subscriber gets an owner among its subscribers; the others get `NOBODY`. Staging the way
        there (KIP-429) is not the algorithm's business but the caller's: see `loadwise.assignor.staging`.
        """
        ...


def utf16_order(text: str) -> bytes:
    """Sort key that orders strings as Java does, by UTF-16 code unit (U+1F600 comes before U+FF5E)."""
    return text.encode("utf-16-be", "surrogatepass")


def java_sorted(texts: Iterable[str]) -> list[str]:
    """Strings in Java's order; see `utf16_order`."""
    known = list(texts)
    return sorted(known, key=None if all(map(str.isascii, known)) else utf16_order)


def stable_order(numbers: NDArray[np.integer[Any]], limit: int) -> Ints:
    """The order that sorts numbers below ``limit``, or one larger value, equal ones as they come.

    In linear time where 16 bits hold them, which is five times as fast.
    """
    narrow = numbers.astype(np.uint16) if limit <= np.iinfo(np.uint16).max else numbers
    return np.argsort(narrow, kind="stable")


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupSnapshot:
    """A group at one moment, as rows; immutable. Build it with `GroupSnapshot.of`.

    With M members, T topics, P partitions, S distinct subscriptions, R racks and C valid claims:
    """

    members: tuple[str, ...]
    """Member ids in Kafka's order; a member's index in here is its number everywhere below."""
    instance_ids: tuple[str | None, ...]
    """Group instance id of each member, None for dynamic ones."""
    topics: tuple[str, ...]
    """Topics that somebody subscribes to and that have metadata, in Java's string order."""
    topic_start: Ints
    """int64[T+1]: the row of each topic's partition 0; the last entry is P."""
    subscription: Owners
    """int32[M]: which distinct subscription each member has."""
    subscribed: Bools
    """bool[S, T]: which topics each distinct subscription holds."""
    generation: Ints
    """int64[M]: the generation of each member's claims, `NO_GENERATION` if unknown."""
    claim_row: Ints
    """int64[C]: row of each claim on a partition that exists, double and stale ones included; ascending."""
    claim_member: Owners
    """int32[C]: the member that makes each claim."""
    owner: Owners
    """int32[P]: current owner. Of two claims the higher generation wins; of equal ones nobody does. `NOBODY` if none.

    Nobody owns what its rightful claimant no longer subscribes to: an older claim on it is stale all the same.
    """
    capacity: Floats
    """float64[M]: what each member can process, relative to the others; above 0."""
    load: Floats | None = None
    """float64[P]: load of each partition, NaN where unknown; None where nothing is known at all."""
    load_unit: str = ""
    """What `load` counts, for tables and logs: ``records``, ``bytes/s``."""
    racks: tuple[str, ...] = ()
    """Rack names in Java's string order."""
    member_rack: Owners = field(default_factory=lambda: np.empty(0, np.int32))
    """int32[M]: rack of each member, -1 where it does not say."""
    partition_racks: Bools | None = None
    """bool[P, R]: the racks that hold a replica of each partition; None where no topic says."""

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
        """Build a snapshot from names; the order of the input does not matter.

        ``partitions`` is the cluster's metadata, topic to number of partitions; it may lack topics that members
        subscribe to and hold others. ``load`` has one number a partition, None or NaN where unknown; a topic may be
        missing or its list short. ``racks`` has the racks of every partition's replicas.

        Raises `BadGroupError` for a duplicate member id, a capacity that is not above 0, a load that is negative or
        infinite, or a negative number of partitions. O(P + C + M log M).
        """
        ordered = sorted(members, key=_kafka_order)
        _refuse_duplicates(ordered)
        lists, list_of = _lists(ordered)
        topics = _known_topics(lists, partitions)
        counts = [partitions[topic] for topic in topics]
        topic_start = np.zeros(len(topics) + 1, np.int64)
        np.cumsum(counts, out=topic_start[1:])
        number = {topic: index for index, topic in enumerate(topics)}
        subscription, subscribed = _subscriptions(lists, list_of, number)
        generation = np.array([member.generation for member in ordered], np.int64)
        claim_row, claim_member = _claims(ordered, number, topic_start)
        owner = np.full(int(topic_start[-1]), NOBODY, np.int32)
        if len(claim_row):
            claim_topic = np.searchsorted(topic_start, claim_row, side="right") - 1
            live = subscribed[subscription[claim_member], claim_topic]
            _give_to_the_rightful(owner, claim_row, claim_member, generation, live)
        rack_names, member_rack, partition_racks = _racks(ordered, topics, topic_start, racks)
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
            capacity=_capacities(ordered),
            load=None if load is None else _loads(load, topics, topic_start),
            load_unit=load_unit,
            racks=rack_names,
            member_rack=member_rack,
            partition_racks=partition_racks,
        )

    @property
    def size(self) -> int:
        """P, the number of partitions."""
        return int(self.topic_start[-1])

    @property
    def equal_subscriptions(self) -> bool:
        """Whether all members subscribe to the same topics (among those that have metadata)."""
        return len(self.subscribed) <= 1

    @cached_property
    def topic_of(self) -> Owners:
        """int32[P]: the topic of each row."""
        return np.repeat(np.arange(len(self.topics), dtype=np.int32), np.diff(self.topic_start))

    @cached_property
    def partition_of(self) -> Owners:
        """int32[P]: the partition number of each row within its topic."""
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
        """int32[T]: topics with the same subscribers are of one class, numbered from 0."""
        return self._classes[0]

    @property
    def subscribers_of_class(self) -> Bools:
        """bool[K, M]: who subscribes to the topics of each class; at least one member does."""
        return self._classes[1]

    @cached_property
    def class_of(self) -> Owners:
        """int32[P]: the class of each row's topic."""
        return self.class_of_topic[self.topic_of]

    def subscribers(self, topic: int) -> Ints:
        """int64[k]: the members that subscribe to a topic (its index in `topics`), in Kafka's order."""
        return np.flatnonzero(self.subscribed[self.subscription, topic])

    def name_of(self, row: int) -> TopicPartition:
        """The partition that a row stands for."""
        topic = int(np.searchsorted(self.topic_start, row, side="right")) - 1
        return TopicPartition(self.topics[topic], row - int(self.topic_start[topic]))


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """An assignment as what it will be told as: the partitions that one member has of one topic are a cell."""

    count: Ints
    """int64[M]: how many cells each member has; they come member by member, and by topic within."""
    topic: Owners
    """int32[C]: the topic of each cell, by its number in ``group.topics``."""
    start: Ints
    """int64[C]: where the cell's partitions begin in ``partition``."""
    length: Ints
    """int64[C]: how many they are, at least 1."""
    partition: Owners
    """int32[n]: the partition numbers of all cells, ascending in each."""


@dataclass(frozen=True, eq=False, slots=True)
class Assignment:
    """Who owns each partition of a snapshot: the answer of an assignor."""

    group: GroupSnapshot
    owner: Owners
    """int32[P]: the member that owns each row, by its number in ``group.members``; `NOBODY` for none."""

    def counts(self) -> Ints:
        """int64[M]: how many partitions each member has."""
        return np.bincount(self.owner[self.owner >= 0], minlength=len(self.group.members))

    def cells(self) -> Cells:
        """The assignment sorted by member, topic and partition. O(P)."""
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

    def by_member(self) -> dict[str, dict[str, list[int]]]:
        """Member id to topic to its partitions, ascending; every member has an entry. O(P)."""
        cells = self.cells()
        if not len(cells.start):
            return {member: {} for member in self.group.members}
        names = np.array(self.group.topics, object)[cells.topic].tolist()
        numbers = np.arange(cells.partition.max() + 1).astype(object)[cells.partition]
        shortest, longest = int(cells.length.min()), int(cells.length.max())
        with collector_paused():
            if shortest == longest:
                lists: list[list[int]] = numbers.reshape(-1, longest).tolist()
            else:
                by_length = np.empty(len(cells.start), object)
                for length in np.unique(cells.length).tolist():  # lists of one length are made by one call
                    alike = cells.length == length
                    rows = cells.start[alike, np.newaxis] + np.arange(length)
                    by_length[alike] = np.fromiter(numbers[rows].tolist(), object)
                lists = by_length.tolist()
            pairs = zip(names, lists, strict=True)
            return {
                member: dict(islice(pairs, count))
                for member, count in zip(self.group.members, cells.count.tolist(), strict=True)
            }

    def owner_of(self, topic: str, partition: int) -> str | None:
        """The member id that owns a partition, None if nobody does. Raises KeyError for an unknown partition."""
        if topic not in self.group.topics:
            raise KeyError(topic)
        index = self.group.topics.index(topic)
        row = int(self.group.topic_start[index]) + partition
        if partition < 0 or row >= self.group.topic_start[index + 1]:
            raise KeyError(TopicPartition(topic, partition))
        owner = int(self.owner[row])
        return None if owner == NOBODY else self.group.members[owner]


def _kafka_order(member: Member) -> tuple[bool, bytes, bytes]:
    instance = member.instance_id
    return (instance is None, b"" if instance is None else utf16_order(instance), utf16_order(member.id))


def _refuse_duplicates(members: Sequence[Member]) -> None:
    ids: set[str] = set()
    instances: dict[str, str] = {}
    for member in members:
        if member.id in ids:
            raise BadGroupError(f"member {member.id!r} is in the group twice; member ids must be unique")
        ids.add(member.id)
        if member.instance_id is not None:
            twin = instances.setdefault(member.instance_id, member.id)
            if twin != member.id:
                raise BadGroupError(
                    f"members {twin!r} and {member.id!r} have the same group instance id {member.instance_id!r};"
                    " each static member needs its own"
                )


def _lists(members: Sequence[Member]) -> tuple[list[tuple[str, ...]], list[int]]:
    """The distinct lists of topics, and which of them each member has: most name the same ones in the same order."""
    distinct: dict[tuple[str, ...], int] = {}
    seen: dict[int, int] = {}
    for member in members:
        if id(member.topics) not in seen:
            seen[id(member.topics)] = distinct.setdefault(tuple(member.topics), len(distinct))
    return list(distinct), [seen[id(member.topics)] for member in members]


def _known_topics(lists: Iterable[Sequence[str]], partitions: Mapping[str, int]) -> tuple[str, ...]:
    wanted = set[str]().union(*lists)
    known = java_sorted(topic for topic in wanted if partitions.get(topic) is not None)
    for topic in known:
        if partitions[topic] < 0:
            raise BadGroupError(f"topic {topic!r} has {partitions[topic]} partitions; the number must be 0 or more")
    return tuple(known)


def _subscriptions(
    lists: Iterable[Sequence[str]], list_of: Sequence[int], number: Mapping[str, int]
) -> tuple[Owners, Bools]:
    distinct: dict[frozenset[int], int] = {}
    of_list = [
        distinct.setdefault(frozenset(number[topic] for topic in topics if topic in number), len(distinct))
        for topics in lists
    ]
    subscribed = np.zeros((len(distinct), len(number)), bool)
    for topics, index in distinct.items():
        subscribed[index, list(topics)] = True
    return np.array(of_list, np.int32)[list_of], subscribed


def _claims(members: Sequence[Member], number: Mapping[str, int], topic_start: Ints) -> tuple[Ints, Owners]:
    """Rows and members of all claims on partitions that exist, sorted by row, then member; each pair once."""
    owned = [member.owned for member in members]
    entries = np.array([len(topics) for topics in owned])
    size, none = int(topic_start[-1]), len(number)
    if not entries.any():
        return np.empty(0, np.int64), np.empty(0, np.int32)
    # A million entries are looked at without a line of Python for each.
    topic = np.fromiter(map(number.get, chain.from_iterable(owned), repeat(none)), np.int64, entries.sum())
    lists = list(chain.from_iterable(topics.values() for topics in owned))
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    partition = np.fromiter(chain.from_iterable(lists), np.int64, lengths.sum())
    first = np.append(topic_start[:-1], size)[topic]
    count = np.append(np.diff(topic_start), 0)[topic]
    owner = np.repeat(np.repeat(np.arange(len(members), dtype=np.int32), entries), lengths)
    row = np.repeat(first, lengths) + partition
    exists = (partition >= 0) & (partition < np.repeat(count, lengths))
    if not exists.all():
        row, owner = row[exists], owner[exists]
    claimant = np.full(size, NOBODY, np.int32)
    claimant[row] = owner
    claimed = np.flatnonzero(claimant != NOBODY)
    if len(claimed) == len(row):  # nothing is claimed twice: no need to sort
        return claimed, claimant[claimed]
    # One number a claim sorts and deduplicates in one pass.
    pairs = np.unique(row * len(members) + owner)
    return pairs // len(members), (pairs % len(members)).astype(np.int32)


def _give_to_the_rightful(owner: Owners, row: Ints, member: Owners, generation: Ints, live: Bools) -> None:
    """To the only claimant at the highest generation at which a partition is claimed, where that claim is live."""
    rival = row[1:] == row[:-1]  # claims come sorted by row
    if rival.any():
        best = np.full(len(owner), np.iinfo(np.int64).min)
        np.maximum.at(best, row, generation[member])
        wins = generation[member] == best[row]
        row, member, live = row[wins], member[wins], live[wins]
        rival = row[1:] == row[:-1]
    owner[row] = member
    owner[row[1:][rival]] = NOBODY
    owner[row[~live]] = NOBODY


def _capacities(members: Sequence[Member]) -> Floats:
    for member in members:
        if not SMALLEST_CAPACITY <= member.capacity <= LARGEST:
            raise BadGroupError(
                f"member {member.id!r} has capacity {member.capacity}; it must be a finite number above 0"
                f" ({SMALLEST_CAPACITY:g} to {LARGEST:g})"
            )
    return np.array([member.capacity for member in members], np.float64)


def _loads(load: Mapping[str, Sequence[float | None] | Floats], topics: Sequence[str], topic_start: Ints) -> Floats:
    rows = np.full(int(topic_start[-1]), np.nan)
    for index, topic in enumerate(topics):
        given = load.get(topic)
        if given is None:
            continue
        start, stop = int(topic_start[index]), int(topic_start[index + 1])
        values = np.array(given, np.float64)[: stop - start]  # numpy reads None as NaN: unknown
        if ((values < 0) | (values > LARGEST)).any():
            worst = int(np.flatnonzero((values < 0) | (values > LARGEST))[0])
            raise BadGroupError(
                f"the load of {topic}-{worst} is {values[worst]}; it must be a finite number of 0 or more"
                f" (up to {LARGEST:g}), or None where it is unknown"
            )
        rows[start : start + len(values)] = values
    return rows


def _racks(
    members: Sequence[Member],
    topics: Sequence[str],
    topic_start: Ints,
    racks: Mapping[str, Sequence[Sequence[str]]] | None,
) -> tuple[tuple[str, ...], Owners, Bools | None]:
    named = {topic: racks[topic] for topic in topics if topic in racks} if racks else {}
    names = {member.rack for member in members if member.rack}  # Java takes an empty name for none, too
    names.update(rack for replicas in named.values() for partition in replicas for rack in partition)
    ordered = tuple(java_sorted(names))
    number = {rack: index for index, rack in enumerate(ordered)}
    member_rack = np.array([number[m.rack] if m.rack else -1 for m in members], np.int32)
    if not named:
        return ordered, member_rack, None
    held = np.zeros((int(topic_start[-1]), len(ordered)), bool)
    for index, topic in enumerate(topics):
        start, stop = int(topic_start[index]), int(topic_start[index + 1])
        for row, partition in enumerate(named.get(topic, ())[: stop - start], start):
            held[row, [number[rack] for rack in partition]] = True
    return ordered, member_rack, held
