"""Which task reads what: offset ranges in, tasks out, by way of an assignor.

A task is a member of a group that exists only here, ``slot-0``, ``slot-1``, …; task i is ``slot-i``. What there is to
read is cut into pieces, the pieces are the partitions of that group, and the assignor (any `Assignor`, the user's own
included) decides which member gets which. Whole partitions (``split=False``) make the very group that consumers of
these topics would be, so the plan is the assignment that they would get.

With ``split=True`` the partitions are first cut into offset ranges that make even tasks, with each range at the task
that it fits into. An assignor that moves nothing without need leaves them there. For others, which count ranges or
deal them in a circle, finer cuts are tried while the tasks come out uneven.

A pure function of its arguments, so a replay plans the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from loadwise.assignor.model import (
    NOBODY,
    Assignment,
    Assignor,
    Floats,
    GroupSnapshot,
    Member,
    TopicPartition,
    utf16_order,
)
from loadwise.spark_source.errors import PlanError
from loadwise.spark_source.task import OffsetRange, Task

EVEN_ENOUGH = 1.05
"""Largest max/mean with which no finer cut is tried."""
FULL_AT_HOME = 1.04
"""How much of a fair share partitions may fill at their home: below what an assignor would move anything for."""
FINENESS = (1, 2, 4, 8, 16)
"""How small pieces get, of a fair share. Largest-first leaves no task above the mean and one such piece: 1 + 1/16."""
MORE_TASKS = 5
"""How often the number of tasks is raised, to no more than double, to keep `max_records`. Pieces are a fair share at
most, so one is mostly enough, and two where the last task comes out 1/16 above it."""
WORTH_A_TASK = 10_000
"""Records that a task has on average at least where `numTasks` is not given. A task in Python
costs as much CPU as reading tens of thousands of small records does, whoever wrote the source (measured with one that
reads nothing), so some records in each of many partitions are read sooner by few tasks.
(Spark itself joins partitions of a shuffle below 1 MB: `spark.sql.adaptive.coalescePartitions.minPartitionSize`.)"""
LONG_TASK = 4_000_000
"""Records that a task has on average at most where the slots are known: seconds of reading, beside which starting one
more task counts for nothing, and not so many that a task that fails has taken the whole query's time."""
FULL_TASK = 250_000
"""Records that make a task worth it even where nothing is done with them: Spark takes 60 ms of CPU to start one."""
ROUND = 8
"""Where the slots are not known, default numbers of tasks above this are its multiples."""
USUAL_BYTES = 200.0
"""What a record weighs (100 bytes, and the work on it) where tasks are worth it by the number of records. Larger ones
are worth more."""
ROUNDING = 1e-9
"""What floating point may have added or lost where a partition weighs just a fair share: it must not fall in two."""


Costs: TypeAlias = Mapping[tuple[str, int], float]
"""By topic and partition, what one of its records weighs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All tasks of a query. Every offset to be read is in exactly one."""

    tasks: tuple[Task, ...]
    assignor: str

    @property
    def filled(self) -> tuple[Task, ...]:
        """The tasks that have something to read, in order."""
        return tuple(task for task in self.tasks if task.ranges)

    @property
    def max_over_mean(self) -> float:
        """Weight of the heaviest task over the mean; 1.0 where there is nothing to read."""
        weights = [task.weight for task in self.tasks]
        total = math.fsum(weights)
        return max(weights) * len(weights) / total if total else 1.0

    def __str__(self) -> str:
        share = ", ".join(f"{task.member} {task.weight:,.10g} in {len(task.ranges)} ranges" for task in self.tasks)
        return f"{self.assignor} plan of {len(self.tasks)} tasks, max/mean {self.max_over_mean:.3f}: {share}"


def plan(
    ranges: Sequence[OffsetRange],
    assignor: Assignor,
    *,
    num_tasks: int | None = None,
    min_tasks: int = 1,
    slots: int | None = None,
    split: bool = True,
    cost_per_record: Mapping[str, float] | None = None,
    record_bytes: Mapping[TopicPartition, float] | None = None,
    max_records: int | None = None,
    sticky: bool = False,
) -> Plan:
    """Share the ranges out to ``num_tasks`` tasks, by default as many as `_default_tasks` finds worth it.

    That goes by ``slots``, how many tasks Spark runs at a time, where it is known; ``min_tasks`` is its lower bound.

    ``ranges`` holds each partition at most once, in any order; empty ones count as partitions of the group when whole
    partitions are asked for. With ``max_records`` there are as many more tasks as it takes for none to have more.

    A record weighs the cost of its topic, 1 if it has none, times what ``record_bytes`` has for its partition if given.
    Where tasks that are even in bytes have more than ``max_records``, bytes do not count: else few heavy records would
    make many times as many tasks.

    ``sticky`` is for plans that follow each other: every partition has a home, by its place in the sorted ``ranges``
    alone, which an assignor that looks at owners leaves it in unless that makes the tasks uneven.

    Raises `PlanError` if the assignor leaves a piece to nobody, answers something else, or piles up more than
    ``max_records`` in a task however many there are.
    """
    ranges = sorted(ranges, key=lambda item: (utf16_order(item.topic), item.partition))
    records = sum(map(len, ranges))
    by_topic, sizes = cost_per_record or {}, record_bytes or {}
    costs = {
        (item.topic, item.partition): by_topic.get(item.topic, 1.0)
        * sizes.get(TopicPartition(item.topic, item.partition), 1.0)
        for item in ranges
    }
    usual = USUAL_BYTES if sizes else 1.0
    tasks = num_tasks or max(min_tasks, _default_tasks(ranges, costs, slots, split=split, usual=usual))
    if max_records is None:
        return _planned(ranges, assignor, tasks, costs, split=split, sticky=sticky)
    for _ in range(MORE_TASKS):
        tasks = max(tasks, math.ceil(records / max_records))
        found = _planned(ranges, assignor, tasks, costs, split=split, sticky=sticky)
        most = max(task.records for task in found.tasks)
        if most > max_records and sizes:
            sizes, costs = {}, {place: by_topic.get(place[0], 1.0) for place in costs}
            found = _planned(ranges, assignor, tasks, costs, split=split, sticky=sticky)
            most = max(task.records for task in found.tasks)
        if most <= max_records:
            return found
        tasks += math.ceil(tasks * min(1.0, most / max_records - 1))
    raise PlanError(
        f"assignor {assignor.name!r} gives a task {most} records, and maxRecordsPerPartition allows {max_records};"
        " use assignor=weighted without costPerRecord, or raise it"
    )


def _default_tasks(ranges: Sequence[OffsetRange], costs: Costs, slots: int | None, *, split: bool, usual: float) -> int:
    """As many tasks as run at a time, but none for less than is `WORTH_A_TASK`; of much there are multiples.

    Where the slots are not known there is a task for each range that has something to read. Above `ROUND` tasks there
    are multiples of that, which the slots of most machines share without a rest, and no more than give each
    `FULL_TASK`. A record counts as its topic's cost: ten that cost 1,000 are worth a task.
    """
    filled = sum(1 for item in ranges if len(item))
    weight = math.fsum(len(item) * costs[item.topic, item.partition] for item in ranges) / usual
    worth = max(1, math.ceil(weight / WORTH_A_TASK))
    if slots is not None:
        tasks = min(worth, slots * math.ceil(max(1.0, weight / slots / LONG_TASK)))
        return tasks if split else max(1, min(filled, tasks))
    tasks = max(1, min(filled, worth))
    if tasks <= ROUND or not split:
        return tasks
    return ROUND * min(math.ceil(tasks / ROUND), max(1, math.ceil(weight / FULL_TASK / ROUND)))


def _planned(
    ranges: Sequence[OffsetRange],
    assignor: Assignor,
    slots: int,
    costs: Costs,
    *,
    split: bool,
    sticky: bool,
) -> Plan:
    homes = {(item.topic, item.partition): index % slots for index, item in enumerate(ranges)} if sticky else {}
    if not split:
        return _assigned(ranges, assignor, slots, costs, _at_home(ranges, homes)).plan(assignor)
    filled = [item for item in ranges if len(item)]
    best: _Shares | None = None
    for pieces, owners in _proposals(filled, slots, costs, homes):
        found = _assigned(pieces, assignor, slots, costs, owners)
        if best is None or found.max_over_mean < best.max_over_mean:
            best = found
        if best.max_over_mean <= EVEN_ENOUGH:
            break
    assert best is not None
    return best.plan(assignor)


@dataclass(frozen=True, slots=True)
class _Shares:
    """What an assignor has answered for one way to cut."""

    pieces: Sequence[OffsetRange]
    owners: Sequence[int]
    """The slot of each piece."""
    weights: Floats
    """Of each slot."""

    @property
    def max_over_mean(self) -> float:
        total = math.fsum(self.weights)
        return float(self.weights.max()) * len(self.weights) / total if total else 1.0

    def plan(self, assignor: Assignor) -> Plan:
        mine: list[list[OffsetRange]] = [[] for _ in self.weights]
        for piece, owner in zip(self.pieces, self.owners, strict=True):
            mine[owner].append(piece)
        weights = self.weights.tolist()
        tasks = (Task(f"slot-{slot}", _joined(mine[slot]), weights[slot]) for slot in range(len(mine)))
        return Plan(tuple(tasks), assignor.name)


def _proposals(
    filled: Sequence[OffsetRange], slots: int, costs: Costs, homes: Mapping[tuple[str, int], int]
) -> Iterator[tuple[list[OffsetRange], list[int]]]:
    """Ways to cut, the best first, and the member that owns each piece before the assignor decides.

    The first is even already, so an assignor that looks at owners and loads has nothing left to do. The others are for
    assignors that look at neither.
    """
    yield _poured(filled, slots, costs, homes)
    if homes:
        yield _poured(filled, slots, costs, {})
    for pieces in _cuts(filled, slots, costs):
        if homes:
            yield pieces, _at_home(pieces, homes)
        yield pieces, [NOBODY] * len(pieces)


def _at_home(pieces: Sequence[OffsetRange], homes: Mapping[tuple[str, int], int]) -> list[int]:
    """The home of the first piece of each partition; the others are cut off so that they may go elsewhere."""
    owners: list[int] = []
    seen: set[tuple[str, int]] = set()
    for piece in pieces:
        place = (piece.topic, piece.partition)
        owners.append(NOBODY if place in seen else homes.get(place, NOBODY))
        seen.add(place)
    return owners


def _poured(
    filled: Sequence[OffsetRange], slots: int, costs: Costs, homes: Mapping[tuple[str, int], int]
) -> tuple[list[OffsetRange], list[int]]:
    """Fill the members one after the other with a fair share each, and cut a range where a member is full.

    A partition with a home stays there with what fits in, up to `FULL_AT_HOME` of a fair share.
    """
    fair = math.fsum(len(item) * costs[item.topic, item.partition] for item in filled) / slots
    weights = [0.0] * slots
    pieces: list[tuple[OffsetRange, int]] = []

    def put(item: OffsetRange, slot: int, most: float) -> OffsetRange:
        cost = costs[item.topic, item.partition]
        room = (most - weights[slot]) / cost
        count = len(item) if room >= len(item) else max(0, round(room))
        if count:
            middle = item.start + count
            pieces.append((OffsetRange(item.topic, item.partition, item.start, middle), slot))
            weights[slot] += count * cost
            return OffsetRange(item.topic, item.partition, middle, item.end)
        return item

    left = [put(item, homes[item.topic, item.partition], fair * FULL_AT_HOME) if homes else item for item in filled]
    before = list(weights)
    level = _level(weights, math.fsum(len(item) * costs[item.topic, item.partition] for item in left))
    slot, owed = 0, 0.0  # what whole records left over or took too much of the members before
    for item in left:
        rest = item
        while len(rest):
            rest = put(rest, slot, max(level + owed, weights[slot]) if slot < slots - 1 else math.inf)
            if len(rest):
                owed += max(0.0, level - before[slot]) - (weights[slot] - before[slot])
                slot += 1
    pieces.sort()
    return [piece for piece, _ in pieces], [slot for _, slot in pieces]


def _level(weights: Sequence[float], more: float) -> float:
    """How high the lower ones get where so much more is poured over all."""
    ordered = sorted(weights)
    total = more
    for count, weight in enumerate(ordered, 1):
        total += weight
        if count == len(ordered) or total / count <= ordered[count]:
            return total / count
    return 0.0


def _cuts(filled: Sequence[OffsetRange], slots: int, costs: Costs) -> Iterator[list[OffsetRange]]:
    """Ways to cut, from coarse to fine, each in two manners.

    Whole fair shares and a remainder make the fewest pieces, for assignors that weigh them. Equal pieces are what those
    that count need: range, round robin, sticky.
    """
    fair = math.fsum(len(item) * costs[item.topic, item.partition] for item in filled) / slots
    for fineness in FINENESS:
        shares: list[OffsetRange] = []
        equal: list[OffsetRange] = []
        for item in filled:
            cost = costs[item.topic, item.partition]
            share = max(1, int(fair / cost + ROUNDING))
            full = item.start + len(item) // share * share
            shares += [OffsetRange(item.topic, item.partition, at, at + share) for at in range(item.start, full, share)]
            shares += _cut(OffsetRange(item.topic, item.partition, full, item.end), fair / fineness / cost)
            equal += _cut(item, fair / fineness / cost)
        yield shares
        if equal != shares:
            yield equal


def _cut(whole: OffsetRange, most: float) -> list[OffsetRange]:
    """Cut a range into the fewest equal pieces of at most ``most`` records (a record is never cut)."""
    size = len(whole)
    if not size:
        return []
    # At least one: what is next to nothing beside a fair share is to be read all the same.
    pieces = max(1, min(size, math.ceil(size / most - ROUNDING)))
    edges = [whole.start + size * index // pieces for index in range(pieces + 1)]
    return [OffsetRange(whole.topic, whole.partition, start, end) for start, end in pairwise(edges)]


def _assigned(
    pieces: Sequence[OffsetRange],
    assignor: Assignor,
    slots: int,
    costs: Costs,
    owners: Sequence[int],
) -> _Shares:
    by_topic: dict[str, list[OffsetRange]] = {}
    owned: list[dict[str, list[int]]] = [{} for _ in range(slots)]
    for piece, owner in zip(pieces, owners, strict=True):
        rows = by_topic.setdefault(piece.topic, [])
        if owner != NOBODY:
            owned[owner].setdefault(piece.topic, []).append(len(rows))
        rows.append(piece)
    weights = {
        topic: np.array([len(piece) * costs[piece.topic, piece.partition] for piece in rows], np.float64)
        for topic, rows in by_topic.items()
    }
    topics = tuple(by_topic)
    group = GroupSnapshot.of(
        [Member(id=f"slot-{slot}", topics=topics, owned=owned[slot]) for slot in range(slots)],
        {topic: len(rows) for topic, rows in by_topic.items()},
        load=weights,
        load_unit="cost" if any(cost != 1.0 for cost in costs.values()) else "records",
    )
    rows = [piece for topic in group.topics for piece in by_topic[topic]]
    found = _owners(assignor, group, rows)
    # Members are in Kafka's order in the group: slot-10 stands before slot-2.
    slot_of = [int(member.removeprefix("slot-")) for member in group.members]
    slot = [slot_of[owner] for owner in found]
    loads = np.concatenate([weights[topic] for topic in group.topics]) if rows else np.empty(0)
    of_slots = np.bincount(np.array(slot, np.int64), weights=loads, minlength=slots)
    return _Shares(rows, slot, of_slots.astype(np.float64, copy=False))


def _owners(assignor: Assignor, group: GroupSnapshot, rows: Sequence[OffsetRange]) -> list[int]:
    """The member of each row, as the assignor answers; checked, since it may be the user's own."""
    if not group.size:
        return []
    try:
        answer: object = assignor.assign(group)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise PlanError(f"option assignor: {assignor.name!r} fails on these ranges: {problem}") from error
    if not isinstance(answer, Assignment) or len(answer.owner) != group.size:
        raise PlanError(f"assignor {assignor.name!r} must answer an Assignment of all {group.size} partitions")
    if not np.issubdtype(answer.owner.dtype, np.integer):
        raise PlanError(f"assignor {assignor.name!r} must answer rows of members, not {answer.owner.dtype} numbers")
    owners: list[int] = answer.owner.tolist()
    for piece, owner in zip(rows, owners, strict=True):
        if not 0 <= owner < len(group.members):
            raise PlanError(f"assignor {assignor.name!r} gives {piece} to no member: its owner is {owner}")
    return owners


def _joined(pieces: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Join neighbours again, so that a task asks once for what is in one piece; drop what is empty."""
    joined: list[OffsetRange] = []
    for piece in sorted(piece for piece in pieces if len(piece)):
        last = joined[-1] if joined else None
        if last and (last.topic, last.partition, last.end) == (piece.topic, piece.partition, piece.start):
            joined[-1] = OffsetRange(last.topic, last.partition, last.start, piece.end)
        else:
            joined.append(piece)
    return tuple(joined)
