"""Convert names to rows for a `GroupSnapshot`, and refuse invalid input.

Partitions are numbered topic by topic, topics in Java's string order, and members in Kafka's. ``topics`` and
``members`` are in that order everywhere here, and ``topic_start`` has the row of each topic's partition 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.member import Member, java_sorted

Ints: TypeAlias = NDArray[np.int64]
Owners: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

NOBODY = -1
"""The owner of a partition without an owner."""

LARGEST = 1e60
"""The largest load and capacity allowed, so that quotients of their sums and squares stay finite."""
SMALLEST_CAPACITY = 1e-60
"""The smallest capacity allowed, for the same reason."""


def refuse_duplicates(members: Sequence[Member]) -> None:
    """Raise `BadGroupError` if two members share a member id or group instance id."""
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


def topic_lists(members: Sequence[Member]) -> tuple[list[tuple[str, ...]], list[int]]:
    """Return the distinct topic lists and the index of each member's list; most members share one."""
    distinct: dict[tuple[str, ...], int] = {}
    seen: dict[int, int] = {}
    for member in members:
        if id(member.topics) not in seen:
            seen[id(member.topics)] = distinct.setdefault(tuple(member.topics), len(distinct))
    return list(distinct), [seen[id(member.topics)] for member in members]


def known_topics(lists: Iterable[Sequence[str]], partitions: Mapping[str, int]) -> tuple[str, ...]:
    """Return subscribed topics with metadata, in order; `BadGroupError` for a negative number of partitions."""
    wanted = dict.fromkeys(chain.from_iterable(lists))  # in their order, since sorted names are sorted soon
    known = java_sorted(topic for topic in wanted if partitions.get(topic) is not None)
    for topic in known:
        if partitions[topic] < 0:
            raise BadGroupError(f"topic {topic!r} has {partitions[topic]} partitions; the number must be 0 or more")
    return tuple(known)


def subscriptions(
    lists: Iterable[Sequence[str]], list_of: Sequence[int], number: Mapping[str, int]
) -> tuple[Owners, Bools]:
    """Return the index of each member's distinct subscription, int32[M], and the topics of each, bool[S, T]."""
    distinct: dict[frozenset[int], int] = {}
    of_list = [
        distinct.setdefault(frozenset(number[topic] for topic in topics if topic in number), len(distinct))
        for topics in lists
    ]
    subscribed = np.zeros((len(distinct), len(number)), bool)
    for topics, index in distinct.items():
        subscribed[index, list(topics)] = True
    return np.array(of_list, np.int32)[list_of], subscribed


def claims(members: Sequence[Member], number: Mapping[str, int], topic_start: Ints) -> tuple[Ints, Owners]:
    """Return rows and members of all claims on existing partitions, by row, then member, without duplicates."""
    owned = [member.owned for member in members]
    entries = np.array([len(topics) for topics in owned])
    size, none = int(topic_start[-1]), len(number)
    if not entries.any():
        return np.empty(0, np.int64), np.empty(0, np.int32)
    # Processes a million entries without a line of Python for each.
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
    if len(claimed) == len(row):  # no claim is repeated: no need to sort
        return claimed, claimant[claimed]
    # With one number for each claim, one pass sorts and deduplicates.
    pairs = np.unique(row * len(members) + owner)
    return pairs // len(members), (pairs % len(members)).astype(np.int32)


def resolve_claims(owner: Owners, row: Ints, member: Owners, generation: Ints, live: Bools) -> None:
    """Set ``owner`` of each partition to the only claimant at the highest generation if its claim is live.

    A claim is live while the claimant subscribes to the topic. Claims must be sorted by row.
    """
    rival = row[1:] == row[:-1]
    if rival.any():
        best = np.full(len(owner), np.iinfo(np.int64).min)
        np.maximum.at(best, row, generation[member])
        wins = generation[member] == best[row]
        row, member, live = row[wins], member[wins], live[wins]
        rival = row[1:] == row[:-1]
    owner[row] = member
    owner[row[1:][rival]] = NOBODY
    owner[row[~live]] = NOBODY


def capacities(members: Sequence[Member]) -> Floats:
    """float64[M]: capacities; raises `BadGroupError` for an invalid one."""
    for member in members:
        if not SMALLEST_CAPACITY <= member.capacity <= LARGEST:
            raise BadGroupError(
                f"member {member.id!r} has capacity {member.capacity}; it must be a finite number above 0"
                f" ({SMALLEST_CAPACITY:g} to {LARGEST:g})"
            )
    return np.array([member.capacity for member in members], np.float64)


def loads(load: Mapping[str, Sequence[float | None] | Floats], topics: Sequence[str], topic_start: Ints) -> Floats:
    """float64[P]: loads, NaN where unknown; raises `BadGroupError` for an invalid one."""
    rows = np.full(int(topic_start[-1]), np.nan)
    for index, topic in enumerate(topics):
        start, stop = int(topic_start[index]), int(topic_start[index + 1])
        if topic in load:
            rows[start:stop] = topic_loads(load, topic, stop - start)
    return rows


def topic_loads(
    load: Mapping[str, Sequence[float | None] | Floats], topic: str, size: int, what: str = "load"
) -> Floats:
    """float64[size]: loads of a topic's first partitions, NaN where unknown; raises `BadGroupError` like `loads`.

    ``what`` is the name of the load in the error.
    """
    row = np.full(size, np.nan)
    if (given := load.get(topic)) is None:
        return row
    values = loads_of(given, topic, what, size)
    row[: len(values)] = values
    return row


def loads_of(given: Sequence[float | None] | Floats, topic: str, what: str = "load", most: int | None = None) -> Floats:
    """float64[]: a topic's loads, up to ``most`` partitions, NaN where unknown; raises `BadGroupError` like `loads`."""
    try:
        values = np.array(given, np.float64)  # numpy reads None as NaN: unknown
    except (TypeError, ValueError):
        values = np.empty(())
    if values.ndim != 1 or isinstance(given, str | bytes):
        raise BadGroupError(
            f"the {what} of {topic} is {given!r}; it must be a list with a number for each partition, or None where it"
            " is unknown"
        )
    values = values[:most]
    impossible = np.flatnonzero((values < 0) | (values > LARGEST))
    if len(impossible):
        first = int(impossible[0])
        raise BadGroupError(
            f"the {what} of {topic}-{first} is {values[first]}; it must be a finite number of 0 or more"
            f" (up to {LARGEST:g}), or None where it is unknown"
        )
    return values


def racks(
    members: Sequence[Member],
    topics: Sequence[str],
    topic_start: Ints,
    racks: Mapping[str, Sequence[Sequence[str]]] | None,
) -> tuple[tuple[str, ...], Owners, Bools | None]:
    """Return rack names, each member's rack, int32[M], and each partition's, bool[P, R], if any is known."""
    named = {topic: racks[topic] for topic in topics if topic in racks} if racks else {}
    names = {member.rack for member in members if member.rack}  # Java treats an empty name as missing, too
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
