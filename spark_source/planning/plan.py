"""Makes tasks of offset ranges with an assignor. Pure, so a replay makes the same plan.

Task i is the member ``slot-i`` of a group that exists only here. The offsets are cut into pieces, which are the
partitions of that group, and the assignor (any `Assignor`, the user's own too) assigns them. With whole partitions
(``split=False``) the plan is the assignment that consumers of these topics would get.

With ``split=True`` partitions are first cut into ranges that make even tasks, each at the task that it fits into. An
assignor that moves nothing without need leaves them there. For others, which count ranges or deal them out in turn,
finer cuts are tried as long as tasks are uneven.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np

from loadwise.assignor.measure import max_over_mean
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
"""The largest max/mean without finer cuts."""
FULL_AT_HOME = 1.04
"""How far partitions may fill their home task, in fair shares: below the excess that makes an assignor move one."""
FINENESS = (1, 2, 4, 8, 16)
"""The pieces of a fair share. Largest-first leaves no task more than one piece above the mean: 1 + 1/16."""
MORE_TASKS = 5
"""How often to raise the number of tasks, each time at most to double, to keep `max_records`."""
WORTH_A_TASK = 10_000
"""The least mean number of records in a task without `numTasks`. A Python task costs as much CPU as reading tens of
thousands of small records (measured with a source that reads nothing), so few tasks are faster for few records. Spark
too joins small shuffle partitions (`spark.sql.adaptive.coalescePartitions.minPartitionSize`)."""
LONG_TASK = 4_000_000
"""The largest mean number of records in a task if the slots are known: seconds of reading, so that one more task costs
little, and a task that fails costs only a part of the query's time."""
FULL_TASK = 250_000
"""Records that are worth a task even without work on them: Spark takes 60 ms of CPU to start one."""
ROUND = 8
"""If the slots are unknown, larger default numbers of tasks are multiples of this."""
USUAL_BYTES = 200.0
"""The usual weight of a record: 100 bytes, and the work on it."""
ROUNDING = 1e-9
"""Rounding errors of a partition that weighs one fair share: it must not be cut in two."""


Costs: TypeAlias = Mapping[tuple[str, int], float]
"""The weight of a record, by topic and partition."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All tasks of a query. Every offset is in exactly one."""

    tasks: tuple[Task, ...]
    assignor: str

    @property
    def filled(self) -> tuple[Task, ...]:
        """The tasks with records, in order."""
        return tuple(task for task in self.tasks if task.ranges)

    @property
    def max_over_mean(self) -> float:
        """Weight of the heaviest task over the mean; 1.0 without records."""
        return max_over_mean([task.weight for task in self.tasks])

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
    """Share the ranges among ``num_tasks`` tasks, by default as many as `_default_tasks` returns.

    Args:
        ranges: Each partition at most once, in any order. Empty ones count as partitions of the group if partitions
            stay whole.
        assignor: Assigns the pieces.
        num_tasks: The number of tasks.
        min_tasks: The least default number of tasks.
        slots: How many tasks Spark runs at a time, if known.
        split: Whether partitions may be cut.
        cost_per_record: The cost of a topic's record, by default 1.
        record_bytes: The size of a partition's record, which multiplies its cost. It does not count if tasks that are
            even in bytes exceed ``max_records``: few heavy records would make many times as many tasks.
        max_records: The most records in a task; takes as many more tasks as needed.
        sticky: For plans that follow each other. Each partition has a home task, by its place in the sorted ranges; an
            assignor that regards owners leaves it there unless tasks become uneven.

    Raises:
        PlanError: The assignor leaves a piece out, returns something else, or exceeds ``max_records``.

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
        f"assignor {assignor.name!r} gives a task {most} records, but maxRecordsPerPartition allows {max_records};"
        " use assignor=weighted without costPerRecord, or raise it"
    )


def _default_tasks(ranges: Sequence[OffsetRange], costs: Costs, slots: int | None, *, split: bool, usual: float) -> int:
    """Return as many tasks as run at a time, but each with `WORTH_A_TASK`, or a multiple for many records.

    If the slots are unknown, each range with records is a task. More than `ROUND` tasks are rounded up to multiples of
    it, which divide evenly among most machines' slots, but each with `FULL_TASK`. A record counts as its topic's cost.
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
    """An assignor's answer for one way to cut."""

    pieces: Sequence[OffsetRange]
    owners: Sequence[int]
    """The slot of each piece."""
    weights: Floats
    """The weight of each slot."""

    @property
    def max_over_mean(self) -> float:
        return max_over_mean(self.weights.tolist())

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
    """Yield ways to cut, the best first, with the member that owns each piece before the assignor decides.

    The first is even already, so an assignor that regards owners and loads changes nothing. The others are for
    assignors that regard neither.
    """
    yield _poured(filled, slots, costs, homes)
    if homes:
        yield _poured(filled, slots, costs, {})
    for pieces in _cuts(filled, slots, costs):
        if homes:
            yield pieces, _at_home(pieces, homes)
        yield pieces, [NOBODY] * len(pieces)


def _at_home(pieces: Sequence[OffsetRange], homes: Mapping[tuple[str, int], int]) -> list[int]:
    """Return the home of each partition's first piece; the other pieces have none, so that they may move."""
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

    A partition with a home first fills that, up to `FULL_AT_HOME` of a fair share.
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
    slot, owed = 0, 0.0  # what earlier members lack or exceed, because records are whole
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
    """Return the level to which the lower weights rise if ``more`` is added to them."""
    # The mean with one more weight falls as long as that weight is below the level.
    sums = accumulate(sorted(weights), initial=more)
    return min(total / count for count, total in enumerate(sums) if count)


def _cuts(filled: Sequence[OffsetRange], slots: int, costs: Costs) -> Iterator[list[OffsetRange]]:
    """Yield ways to cut, from coarse to fine, two of each.

    Whole fair shares and a remainder make the fewest pieces, for assignors that weigh them. Assignors that count them
    (range, round robin, sticky) need equal pieces.
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
    # At least one: even a range that is tiny beside a fair share must be read.
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
    # Members are in Kafka's order in the group: slot-10 comes before slot-2.
    slot_of = [int(member.removeprefix("slot-")) for member in group.members]
    slot = [slot_of[owner] for owner in found]
    loads = np.concatenate([weights[topic] for topic in group.topics]) if rows else np.empty(0)
    of_slots = np.bincount(np.array(slot, np.int64), weights=loads, minlength=slots)
    return _Shares(rows, slot, of_slots.astype(np.float64, copy=False))


def _owners(assignor: Assignor, group: GroupSnapshot, rows: Sequence[OffsetRange]) -> list[int]:
    """Return the member of each row from the assignor's answer, checked because it may be the user's own."""
    if not group.size:
        return []
    try:
        answer: object = assignor.assign(group)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise PlanError(f"option assignor: {assignor.name!r} fails on these ranges: {problem}") from error
    if not isinstance(answer, Assignment) or len(answer.owner) != group.size:
        raise PlanError(f"assignor {assignor.name!r} must return an Assignment of all {group.size} partitions")
    owners: list[int] = answer.owner.tolist()
    for piece, owner in zip(rows, owners, strict=True):
        if not 0 <= owner < len(group.members):
            raise PlanError(f"assignor {assignor.name!r} gives {piece} to no member: its owner is {owner}")
    return owners


def _joined(pieces: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Join adjacent pieces again, so that a task reads them as one range; drop empty ones."""
    joined: list[OffsetRange] = []
    for piece in sorted(piece for piece in pieces if len(piece)):
        last = joined[-1] if joined else None
        if last and (last.topic, last.partition, last.end) == (piece.topic, piece.partition, piece.start):
            joined[-1] = OffsetRange(last.topic, last.partition, last.start, piece.end)
        else:
            joined.append(piece)
    return tuple(joined)
