"""Optimal: the aims of `Sticky` as a minimum-cost flow, solved by networkx; exact, slow, for small groups only.

It shares no code with `Sticky` and finds the best assignment. It is the reference in the tests of `Sticky`, and a way
to check an assignment by hand. A partition flows to a member at a price if its owner changes, and at a higher price if
it is read from another rack. Members flow into slots; slot k costs the highest price times 2k + 1. So the sum of
squared counts comes first, rack mismatches second, moves third. Among several best assignments, networkx chooses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from loadwise.assignor.errors import GroupTooLargeError, MissingClientError
from loadwise.assignor.model import NOBODY, Assignment, Bools, GroupSnapshot, Ints, Traits
from loadwise.installation import pip_install

MOST_CELLS = 10_000
"""Limit for partitions times members, at most a second or two of work: 1,000 partitions x 10 members."""


@dataclass(frozen=True, slots=True)
class Optimal:
    """``optimal``: the exact solution of ``sticky``'s aims, for up to `MOST_CELLS` partitions x members."""

    name: ClassVar[str] = "optimal"
    traits: ClassVar[Traits] = Traits(owned=True)

    def assign(self, group: GroupSnapshot) -> Assignment:
        """Return the best assignment.

        Raises `GroupTooLargeError` beyond `MOST_CELLS`, `MissingClientError` without networkx.
        """
        cells = group.size * len(group.members)
        if cells > MOST_CELLS:
            raise GroupTooLargeError(
                f"optimal supports up to {MOST_CELLS:,} partitions x members; this group has {group.size:,} x"
                f" {len(group.members):,}; use sticky, which has the same goals at any size"
            )
        owner = np.full(group.size, NOBODY, np.int32)
        if cells:
            alike = _alike(group)
            for rows, taken in zip(alike, _flows(group, alike), strict=True):
                owner[rows] = np.repeat(np.arange(len(taken)), taken)
        return Assignment(group, owner)


def _alike(group: GroupSnapshot) -> list[Ints]:
    """Return groups of interchangeable rows, ascending: same subscribers, same racks, same owner."""
    traits = [group.class_of, group.owner]
    if group.partition_racks is not None:
        traits += list(group.partition_racks.T.astype(np.int32))
    _, kind = np.unique(np.column_stack(traits), axis=0, return_inverse=True)
    return [np.flatnonzero(kind.reshape(-1) == number) for number in range(int(kind.max()) + 1)]


def _flows(group: GroupSnapshot, alike: list[Ints]) -> list[Ints]:
    """Return how many rows of each kind every member gets, int64[M] for each kind."""
    try:
        import networkx as nx  # noqa: PLC0415 (an optional package, and half a second: only who asks for it pays)
    except ImportError as error:
        raise MissingClientError(
            f"the assignor 'optimal' needs networkx; get it with: {pip_install('optimal')}"
        ) from error
    members = range(len(group.members))
    rack_price = group.size + 1  # above the cost of all moves together
    slot_price = rack_price * (group.size + 1)
    graph = nx.MultiDiGraph()
    graph.add_node("sink", demand=group.size)
    reach = [0] * len(members)
    for kind, rows in enumerate(alike):
        graph.add_node(("kind", kind), demand=-len(rows))
        misplaced, owner = _misplaced(group, int(rows[0])), int(group.owner[rows[0]])
        for member in group.subscribers(int(group.topic_of[rows[0]])).tolist():
            price = rack_price * int(misplaced[member]) + int(owner not in (NOBODY, member))
            graph.add_edge(("kind", kind), ("member", member), capacity=len(rows), weight=price)
            reach[member] += len(rows)
    for member in members:
        for slot in range(reach[member]):
            graph.add_edge(("member", member), "sink", capacity=1, weight=(2 * slot + 1) * slot_price)
    _, flow = nx.network_simplex(graph)
    return [
        np.array([sum(flow["kind", kind].get(("member", member), {}).values()) for member in members], np.int64)
        for kind in range(len(alike))
    ]


def _misplaced(group: GroupSnapshot, row: int) -> Bools:
    """bool[M]: the members that would read this partition from another rack."""
    if group.partition_racks is None:
        return np.zeros(len(group.members), bool)
    misplaced: Bools = group.misplaced(group.partition_racks[[row]])[0]
    return misplaced
