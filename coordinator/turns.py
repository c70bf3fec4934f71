"""Work that may be long, in pieces between which the event loop serves other clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Hashable, Iterable
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Turns: TypeAlias = Generator[Any, None, T]
"""Work that may be long. It yields after each row, and is continued in later turns of the event loop.

Other requests are handled meanwhile, so each row shows the state at its own time. A number counts as so many rows.
"""
ROWS_IN_A_TURN = 250
"""Rows of long work in one turn of the event loop; the slowest APIs take 20 µs for each."""


def advance(turns: Turns[Any]) -> None:
    """Do the rows of one turn. Raises StopIteration with the result if they are the last."""
    rows = 0
    while rows < ROWS_IN_A_TURN:
        rows += next(turns) or 1


def whole(turns: Turns[T]) -> T:
    """Do all work in this turn, which must be short, and return its result."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            result: T = end.value
            return result


def listed(rows: Iterable[T]) -> Turns[list[T]]:
    """Collect rows, with a pause after each."""
    found = []
    for row in rows:
        found.append(row)
        yield
    return found


def one_by_one(works: Iterable[Turns[T]]) -> Turns[list[T]]:
    """Do long work after long work, and collect the results."""
    results = []
    for work in works:
        results.append((yield from work))  # noqa: PERF401  (a comprehension cannot yield)
    return results


K = TypeVar("K", bound=Hashable)


def counted(names: Iterable[K]) -> Turns[Counter[K]]:
    """Count how often each name occurs, with a pause after each."""
    times: Counter[K] = Counter()
    for name in names:
        times[name] += 1
        yield
    return times
