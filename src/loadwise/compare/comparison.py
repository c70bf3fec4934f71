"""Asks every assignor for its answer to one situation, and measures each: rows to be shown as a table, page or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.measure import Measurement, measure
from loadwise.assignor.model import NOBODY, Assignment, Assignor, GroupSnapshot
from loadwise.assignor.strategy import strategies
from loadwise.compare.situation import Situation

SPREAD = " + dispatcher"
"""Follows an assignor's name in the rows whose records were spread by a dispatcher."""

_RUNS = 2
"""The fastest of this many runs counts, so that cold caches do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One assignor's answer."""

    assignor: str
    """The name that it was asked for by, with `SPREAD` if producers spread the keys."""
    assignment: Assignment
    """The target: where everything is once it has moved, whether by an eager or a cooperative protocol."""
    measured: Measurement
    elapsed_ms: float
    """Time to decide, without reading the input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All answers to one situation."""

    about: str
    rows: Sequence[Row]
    """In the order asked for; at least one."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """A short name to show for a member id; a member without one is shown by its id."""

    @property
    def group(self) -> GroupSnapshot:
        """The group that was asked about; what its members own, and spread loads, may differ from row to row."""
        return self.rows[0].assignment.group

    @property
    def notes(self) -> list[str]:
        """What a reader must know about the input to read the numbers right."""
        group = self.group
        notes: list[str] = []
        if group.load is None:
            notes.append("No load is known: every partition counts as 1.")
        elif unknown := int(np.isnan(group.load).sum()):
            notes.append(
                f"The load of {unknown} of {group.size} partitions is not known: counted as 0 in the table; weighted"
                " guesses it from the others."
            )
        if all((row.assignment.group.owner == NOBODY).all() for row in self.rows):
            notes.append("No member owns anything yet, so nothing moves.")
        if (group.capacity != group.capacity[0]).any():
            notes.append("Capacities differ: max and mean are load for each unit of capacity.")
        return notes

    def as_json(self) -> dict[str, Any]:
        """The comparison for programs: what ``json.dumps`` takes; loads in ``load_unit``, numbers not rounded."""
        group = self.group
        return {
            "about": self.about,
            "notes": self.notes,
            "load_unit": group.load_unit,
            "partitions": group.size,
            "capacity": dict(zip(group.members, group.capacity.tolist(), strict=True)),
            "labels": dict(self.labels),
            "assignors": [_row_as_json(row) for row in self.rows],
        }


def compare(situation: Situation, names: Iterable[str], clock: Callable[[], float]) -> Comparison:
    """Put a situation to the assignors of these names; ``clock`` gives seconds.

    A name is an algorithm's (``sticky``) or one on the wire (``cooperative-sticky``). Raises `UnknownAssignorError` for
    one that there is not and `BadInputError` where there is nothing to assign.
    """
    cases = {"": situation}
    names = list(names)
    if situation.spread is not None:
        cases[SPREAD] = replace(situation, load=situation.spread)
    rows: list[Row] = []
    for suffix, case in cases.items():
        for name in names:
            assignor = assignor_named(name)
            if case.tuned is not None and case.tuned.name == assignor.name:
                assignor = case.tuned
            assignment, elapsed_s = _timed(assignor, case.under(assignor), clock)
            measured = measure(assignment)
            rows.append(
                Row(assignor=name + suffix, assignment=assignment, measured=measured, elapsed_ms=elapsed_s * 1000)
            )
    return Comparison(about=situation.about, rows=rows, labels=situation.labels)


def assignor_named(name: str) -> Assignor:
    """An algorithm by its own name or by a name on the wire. Raises `UnknownAssignorError`."""
    on_the_wire = strategies().get(name)
    return algorithm(name if on_the_wire is None else on_the_wire.algorithm)


def _timed(assignor: Assignor, group: GroupSnapshot, clock: Callable[[], float]) -> tuple[Assignment, float]:
    """An answer and the seconds that it takes. It is the same each time, but the snapshot keeps what it worked out."""
    runs: list[float] = []
    for _ in range(_RUNS):
        fresh = replace(group)
        begin_s = clock()
        assignment = assignor.assign(fresh)
        runs.append(clock() - begin_s)
    return assignment, min(runs)


def _row_as_json(row: Row) -> dict[str, Any]:
    measured = row.measured
    assigned = row.assignment.by_member()
    return {
        "assignor": row.assignor,
        "max_load": measured.highest,
        "mean_load": measured.mean,
        "max_over_mean": measured.max_over_mean,
        "ideal": measured.bound,
        "max_over_ideal": measured.max_over_bound,
        "moved": measured.moved,
        "moved_load": measured.moved_load,
        "count_spread": measured.spread,
        "elapsed_ms": round(row.elapsed_ms, 3),
        "members": {
            member: {"load": load, "partitions": count, "assignment": assigned[member]}
            for member, load, count in zip(
                row.assignment.group.members, measured.load.tolist(), measured.count.tolist(), strict=True
            )
        },
    }
