"""The numbers of the table, from what came of the runs; `DEFINITIONS` explains each one."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from loadwise.assignor.measure import max_over_mean
from loadwise.demo.group import Outcome
from loadwise.demo.ledger import sums

DEFINITIONS: tuple[tuple[str, str], ...] = (
    ("records", "What each member processed; together at least what was published."),
    (
        "max/mean, 3 members",
        "Records in the partitions first assigned to each of the three: the largest share over the mean. 1.00 is"
        " perfect; 3.00 means that one member has everything.",
    ),
    (
        "max/mean, 4 members",
        "The same for the records that were left when the fourth member had its partitions.",
    ),
    (
        "largest first",
        "The same if each partition, the largest first, went to the member with the least: near the optimum. One member"
        " reads a partition, so a partition with most of the remaining records cannot be shared.",
    ),
    (
        "drained",
        "Seconds from the moment the three began to process until the last record was processed. The pause of the"
        " rebalance counts; starting up and the last commit do not.",
    ),
    (
        "ideal",
        "The same if no member is ever idle: three members for the first half of the records, four for the second.",
    ),
    (
        "keeps up to",
        "The highest arrival rate at which none of the three falls behind: what they process together over max/mean.",
    ),
    ("rebalances", "Since processing began, by the group's generation: all are due to the fourth member's arrival."),
    ("moved", "Partitions that had another owner once the fourth member had its own, of all."),
)

SLOW = 0.85
"""A member that had work all the time and did less than this part of what its rate allows was held up."""
LEAST_RATE_PER_S = 500.0
"""The demo lowers its rate no further: the drain would take too long."""
_LEAST_MEASURED_S = 2.0
"""A pace over less time does not measure the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One row of the table."""

    assignor: str
    records: tuple[int, ...]
    """Records that each member processed."""
    max_mean_first: float
    greedy_first: float
    """``max_mean_first`` if partitions are placed largest first, regardless of their owners."""
    max_mean_last: float
    greedy_last: float
    """``max_mean_last`` in the same way."""
    drained_s: float
    ideal_s: float
    keeps_up_per_s: float
    rebalances: int
    moved: int
    partitions: int
    repeated: int
    pace: float
    """The part of its rate that the busiest member reached before the fourth joined; below 1 something held it up."""

    @property
    def against_ideal(self) -> float:
        """How many times the ideal the drain took."""
        return self.drained_s / self.ideal_s


def figures(outcome: Outcome) -> Figures:
    """The numbers of one run."""
    plan = outcome.plan
    first = sums(outcome.first_owners, outcome.ends, plan.late)
    last = sums(outcome.last_owners, outcome.left, plan.late + 1)
    return Figures(
        assignor=plan.assignor,
        records=outcome.records,
        max_mean_first=max_over_mean(first),
        greedy_first=max_over_mean(largest_first(outcome.ends, plan.late)),
        max_mean_last=max_over_mean(last),
        greedy_last=max_over_mean(largest_first(outcome.left, plan.late + 1)),
        drained_s=outcome.drained_s,
        ideal_s=plan.ideal_s(sum(outcome.ends)),
        keeps_up_per_s=plan.rate_per_s * plan.late / max_over_mean(first),
        rebalances=outcome.rebalances,
        moved=moved(outcome.first_owners, outcome.last_owners),
        partitions=len(outcome.ends),
        repeated=outcome.repeated,
        pace=_pace(outcome),
    )


def largest_first(loads: Sequence[float], members: int) -> list[float]:
    """Load of each member when every partition, the heaviest first, goes to the member with the least."""
    heap = [0.0] * members
    for load in sorted(loads, reverse=True):
        heapq.heapreplace(heap, heap[0] + load)
    return heap


def moved(before: Sequence[int | None], after: Sequence[int | None]) -> int:
    """How many partitions have another owner than before."""
    return sum(old != new for old, new in zip(before, after, strict=True))


def _pace(outcome: Outcome) -> float:
    at_join = [sample for sample in outcome.samples if sample.at_s <= outcome.joined_s][-1]
    return max(at_join.records) / (outcome.plan.rate_per_s * at_join.at_s) if at_join.at_s else 1.0


def slow_machine(rows: Sequence[Figures]) -> str | None:
    """A warning where the machine and not the members' rate was the limit: the times mean little then."""
    slow = [f"{row.assignor} ({row.pace:.0%})" for row in rows if row.pace < SLOW]
    if not slow:
        return None
    return (
        "This machine was too slow or too busy for the rate: no member reached it under"
        f" {', '.join(slow)}. Compare the times with care, or choose a lower --rate."
    )


def lower_rate(rate_per_s: float, pace: float, measured_s: float) -> float | None:
    """The rate to go on with where members reached only this part of theirs; None where they reached it.

    A fourth member is to come, so the new rate is lower than the pace, in round hundreds.
    """
    if pace >= SLOW or measured_s < _LEAST_MEASURED_S:
        return None
    lower = max(round(0.75 * rate_per_s * pace, -2), LEAST_RATE_PER_S)
    return lower if lower < rate_per_s else None


def in_short(rows: Sequence[Figures]) -> str:
    """The first act in a sentence, the fastest first."""
    told = [
        f"{row.assignor} {row.drained_s:.1f} s ({row.against_ideal:.2f} times the ideal)"
        for row in sorted(rows, key=lambda row: row.against_ideal)
    ]
    return f"Time to drain the topic: {', '.join(told)}."
