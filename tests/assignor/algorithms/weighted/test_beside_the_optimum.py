"""Small groups beside every assignment that there is: how high the highest level is, and how much is moved for it."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.model import NOBODY, Floats, GroupSnapshot, Ints, Member

NEAR_THE_OPTIMUM = 1.10
NOISE = 1.15
"""Smaller gains may be noise, and move nothing."""


class Case(NamedTuple):
    """Members of unlike speed, partitions of unlike load, and who owns what."""

    capacity: Floats
    load: Floats
    owner: Ints

    def answer(self) -> Ints:
        members = [
            Member(
                id=f"m{number}",
                topics=["t"],
                capacity=float(capacity),
                owned={"t": np.flatnonzero(self.owner == number).tolist()},
                generation=1,
            )
            for number, capacity in enumerate(self.capacity)
        ]
        group = GroupSnapshot.of(members, {"t": len(self.load)}, load={"t": self.load})
        return Weighted().assign(group).owner.astype(np.int64)

    def highest_level(self, owners: Ints) -> Floats:
        """float64[n] for int64[n, P] assignments."""
        members = range(len(self.capacity))
        loads = np.stack([(owners == member) @ self.load for member in members], axis=1)
        highest: Floats = (loads / self.capacity).max(axis=1)
        return highest

    def moved(self, owners: Ints) -> Floats:
        """float64[n]: the load taken from owners, for int64[n, P] assignments."""
        taken: Floats = ((owners != self.owner) & (self.owner != NOBODY)) @ self.load
        return taken


def drawn(seed: int) -> Case:
    """A third of them with equal loads; owners as left by an earlier answer, by a member that went, or at random."""
    rng = np.random.default_rng(seed)
    members = int(rng.integers(2, 5))
    partitions = int(rng.integers(3, 9 if members == 4 else 10))
    capacity = rng.choice([125.0, 250.0, 500.0, 1000.0, 2000.0], members)
    load = (
        np.full(partitions, 300.0),
        np.round(1000 / np.arange(1, partitions + 1) ** rng.uniform(0.5, 1.5)),
        np.round(rng.lognormal(4, 1, partitions)),
    )[rng.integers(3)]
    if seed % 4 == 0:
        return Case(capacity, load, rng.integers(0, members, partitions))
    settled = Case(capacity, load, np.full(partitions, NOBODY)).answer()
    if seed % 4 == 1:
        return Case(capacity, load, np.where(settled == members - 1, NOBODY, settled))
    return Case(capacity, np.round(load * rng.lognormal(0, 0.5, partitions)) + 1, settled)


@cache
def every_assignment(members: int, partitions: int) -> Ints:
    """int64[members ** partitions, partitions]."""
    return np.stack(np.unravel_index(np.arange(members**partitions), (members,) * partitions), axis=1)


@pytest.mark.parametrize("groups", [50, pytest.param(200, marks=pytest.mark.long)])
def test_the_highest_level_is_near_the_lowest_possible_and_hardly_more_moves_than_must(groups: int) -> None:
    moved = least_moved = 0.0
    for seed in range(groups):
        case = drawn(seed)
        answer = case.answer()[np.newaxis]
        every = every_assignment(len(case.capacity), len(case.load))
        level, levels = case.highest_level(answer)[0], case.highest_level(every)
        assert level <= NOISE * levels.min(), f"seed {seed}"
        moved += case.moved(answer)[0]
        least_moved += case.moved(every[levels <= level * (1 + 1e-9)]).min()
    assert moved <= NEAR_THE_OPTIMUM * least_moved
