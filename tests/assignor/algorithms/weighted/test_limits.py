"""Numbers of any size, and work that is bounded: every leader of a group answers, and answers the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.algorithms.weighted import Weighted, working_assignment
from loadwise.assignor.algorithms.weighted.working_assignment import WorkingAssignment
from loadwise.assignor.model import LARGEST, NOBODY, SMALLEST_CAPACITY, GroupSnapshot, Member

extreme_loads = st.sampled_from([None, 0.0, 5e-324, 2.3e-311, 1e-300, 1e-60, 1.0, 67.0, 1e60])
extreme_capacities = st.sampled_from([SMALLEST_CAPACITY, 1e-30, 1.0, 3.0, 1e30, LARGEST])


@given(data=st.data(), loads=st.lists(extreme_loads, min_size=1, max_size=9))
def test_loads_and_capacities_of_any_unit_are_taken(data: st.DataObject, loads: list[float | None]) -> None:
    """Warnings of numpy, as for a division by zero, are errors in these tests."""
    capacities = data.draw(st.lists(extreme_capacities, min_size=1, max_size=4))
    split = data.draw(st.integers(0, len(loads)))
    members = [
        Member(id=f"m{n}", topics=["t"], capacity=capacity, owned={"t": range(split)} if n == 0 else {}, generation=1)
        for n, capacity in enumerate(capacities)
    ]
    group = GroupSnapshot.of(members, {"t": len(loads)}, load={"t": loads})
    assert (Weighted().assign(group).owner != NOBODY).all()


def test_only_the_proportions_of_loads_and_of_capacities_matter() -> None:
    loads, capacities = np.random.default_rng(3).lognormal(0, 2, 200), (1.0, 2.0, 3.5, 7.0)
    answers = []
    for unit in (1.0, 2.0**-900, 2.0**150):
        members = [
            Member(id=f"m{n}", topics=["t"], capacity=c * 2.0**100 / unit**0.1) for n, c in enumerate(capacities)
        ]
        group = GroupSnapshot.of(members, {"t": 200}, load={"t": loads * unit})
        answers.append(Weighted().assign(group).owner.tolist())
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("tiny", [0.0, 3e-46, 1e-20])
def test_loads_that_no_sum_shows_are_spread_as_idle_partitions_are(tiny: float) -> None:
    """Else an answer with them is not the one that its own assignment gets."""
    capacities = (1.0, 3.0, 1.0, 1.0, 0.5, 0.5)
    members = [Member(id=f"m{n}", topics=["t"], capacity=c) for n, c in enumerate(capacities)]
    loads = [np.nan, 0, 0, 0, 0, 0, 1, tiny, np.nan, tiny, np.nan, np.nan, 0, 0, 1, 0, 0, 0]
    owner = Weighted().assign(GroupSnapshot.of(members, {"t": 18}, load={"t": loads})).owner
    zeros = Weighted().assign(
        GroupSnapshot.of(members, {"t": 18}, load={"t": np.where(np.array(loads) == tiny, 0, loads)})
    )
    assert owner.tolist() == zeros.owner.tolist()


@given(data=st.data(), factor=st.sampled_from([3.7, 1e-6, 1 / 3]), faster=st.sampled_from([1.0, 0.1, 7.3]))
def test_a_group_in_other_units_gets_the_same_answer(data: st.DataObject, factor: float, faster: float) -> None:
    """Loads of which many are equal, and guessed ones that are their mean."""
    loads = np.array(data.draw(st.lists(st.sampled_from([np.nan, 0.0, 0.1, 0.3, 0.7, 1.1]), min_size=1, max_size=8)))
    capacities = np.array(data.draw(st.lists(st.sampled_from([0.1, 0.3, 1.0]), min_size=1, max_size=3)))
    owner = np.array(
        data.draw(st.lists(st.integers(-1, len(capacities) - 1), min_size=len(loads), max_size=len(loads)))
    )
    answers = [
        Weighted()
        .assign(
            GroupSnapshot.of(
                [
                    Member(
                        id=f"m{number}",
                        topics=["t", "u"],
                        capacity=capacity,
                        owned={"t": np.flatnonzero(owner == number).tolist()},
                        generation=1,
                    )
                    for number, capacity in enumerate((capacities * times_capacity).tolist())
                ],
                {"t": len(loads), "u": 2},
                load={"t": loads * times_load},
            )
        )
        .owner.tolist()
        for times_load, times_capacity in ((1.0, 1.0), (factor, faster))
    ]
    assert answers[0] == answers[1]


def drifted(seed: int, capacities: np.ndarray) -> GroupSnapshot:
    """A group whose loads have changed since they were assigned."""
    rng = np.random.default_rng(seed)
    loads = np.floor(rng.lognormal(5, 2, 2000))
    members = [Member(id=f"m{n:03}", topics=["t"], capacity=float(c)) for n, c in enumerate(capacities)]
    group = GroupSnapshot.of(members, {"t": 2000}, load={"t": loads})
    owned = Weighted().assign(group).by_member()
    members = [
        Member(id=member.id, topics=["t"], capacity=member.capacity, owned=owned[member.id], generation=1)
        for member in members
    ]
    return GroupSnapshot.of(members, {"t": 2000}, load={"t": loads * rng.uniform(0.3, 3, 2000)})


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> list[WorkingAssignment]:
    """The working assignments that were made, each with the work that it has counted."""
    made: list[WorkingAssignment] = []
    begin = WorkingAssignment.__init__

    def remember(self: WorkingAssignment, *args: object) -> None:
        begin(self, *args)
        made.append(self)

    monkeypatch.setattr(WorkingAssignment, "__init__", remember)
    return made


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_differing_capacities_take_no_more_work_than_there_may_be(seed: int, spent: list[WorkingAssignment]) -> None:
    capacities = np.random.default_rng(seed).uniform(0.5, 4, 60)
    Weighted().assign(drifted(seed, capacities))
    last_look = 301 * 301 + working_assignment.LOOK
    assert 0 < spent[-1].spent <= working_assignment.WORK_LIMIT + 16 * last_look


def test_when_the_work_is_over_the_best_answer_so_far_is_given(
    monkeypatch: pytest.MonkeyPatch, spent: list[WorkingAssignment]
) -> None:
    group = drifted(0, np.random.default_rng(0).uniform(0.5, 4, 60))
    enough, highest = working_assignment.WORK_LIMIT, []
    for limit in (0, 300_000, enough):
        monkeypatch.setattr(working_assignment, "WORK_LIMIT", limit)
        answer = Weighted().assign(group)
        assert (answer.owner != NOBODY).all()
        assert (Weighted().assign(group).owner == answer.owner).all(), "the work is counted, not timed"
        highest.append((np.bincount(answer.owner, group.load, 60) / group.capacity).max())
        assert spent[-1].exhausted == (limit < enough)
    assert highest[0] >= highest[1] >= highest[2]
    assert highest[0] > highest[2]
