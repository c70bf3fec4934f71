"""The columns of the table, on the screen as on the page: their names, their meanings, and their values for a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadwise.compare.comparison import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column; the lower its number the better."""

    name: str
    meaning: str
    number: Callable[[Row], float]
    text: Callable[[float], str]
    ranked: bool = True
    """Whether the best are worth pointing out; not where the number does not depend on the assignor."""


def amount(load: float) -> str:
    """A load in few characters: whole numbers from 100 on, three digits below."""
    return f"{load:,.0f}" if load >= 100 or load == int(load) else f"{load:.3g}"


def best(column: Column, rows: Sequence[Row]) -> set[int]:
    """Indexes of the rows that show the column's best; empty where all show the same."""
    if not column.ranked:
        return set()
    shown = [column.text(column.number(row)) for row in rows]
    lowest = column.text(min(column.number(row) for row in rows))
    winners = {index for index, text in enumerate(shown) if text == lowest}
    return winners if len(winners) < len(rows) else set()


COLUMNS: tuple[Column, ...] = (
    Column(
        name="max load",
        meaning="The load of the busiest member relative to its capacity; this member finishes last.",
        number=lambda row: row.measured.highest,
        text=amount,
    ),
    Column(
        name="mean",
        meaning="The load that each member would have if partitions could be divided.",
        number=lambda row: row.measured.mean,
        text=amount,
        ranked=False,
    ),
    Column(
        name="ideal",
        meaning=(
            "The red line: no assignment has a lower max load. It is above the mean if a single partition is heavier"
            " than that, or if not all members subscribe to all topics."
        ),
        number=lambda row: row.measured.bound,
        text=amount,
        ranked=False,
    ),
    Column(
        name="max/mean",
        meaning="The max load divided by the mean. 1.00 is perfect; N for N members means that one has everything.",
        number=lambda row: row.measured.max_over_mean,
        text=lambda ratio: f"{ratio:.2f}",
    ),
    Column(
        name="moved",
        meaning="Partitions that change their owner although it is still in the group. Each pauses for a moment.",
        number=lambda row: row.measured.moved,
        text=lambda count: f"{count:,.0f}",
    ),
    Column(
        name="moved load",
        meaning="The load of these partitions.",
        number=lambda row: row.measured.moved_load,
        text=amount,
    ),
    Column(
        name="spread",
        meaning="The largest number of partitions of a member minus the smallest; 0 or 1 is even.",
        number=lambda row: row.measured.spread,
        text=lambda count: f"{count:,.0f}",
    ),
    Column(
        name="ms",
        meaning="The time for the decision, in milliseconds.",
        number=lambda row: row.elapsed_ms,
        text=lambda ms: f"{ms:,.1f}",
        ranked=False,
    ),
)
