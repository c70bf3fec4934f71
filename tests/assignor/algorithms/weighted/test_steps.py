"""Single steps of the weighted algorithm, whose results it would otherwise mend by other steps."""

from __future__ import annotations

import numpy as np
import pytest

from loadwise.assignor.algorithms.weighted.assignor import _FEW, _FEW_MOVES, _few_moves_do
from loadwise.assignor.algorithms.weighted.transfers import _EJECTED_BY, _eject, give_to_empty, raise_lowest
from loadwise.assignor.algorithms.weighted.working_assignment import WorkingAssignment
from loadwise.assignor.model import Floats, GroupSnapshot, Ints, Member


def working(*loads: list[float]) -> WorkingAssignment:
    """One member for each list of loads, which owns these partitions."""
    ends = np.cumsum([len(each) for each in loads]).tolist()
    members = [
        Member(id=f"m{number}", topics=["t"], owned={"t": range(end - len(each), end)}, generation=1)
        for number, (each, end) in enumerate(zip(loads, ends, strict=True))
    ]
    flat = np.concatenate([np.array(each, float) for each in loads])
    group = GroupSnapshot.of(members, {"t": len(flat)}, load={"t": flat})
    return WorkingAssignment(group, flat, group.owner)


@pytest.mark.parametrize(
    ("loads", "few"),
    [
        ([[1.0] * (10 + _FEW_MOVES)], True),
        ([[1.0] * (11 + _FEW_MOVES)], False),
        ([[30.0, 0.1] * 4 + [1.0] * 9], True),  # 4 of them are enough
        ([[1.0] * 11] * _FEW, True),
        ([[1.0] * 11] * (_FEW + 1), False),  # of members that are too busy there are too many
    ],
)
def test_few_moves_do_where_the_heaviest_partitions_of_few_members_are_enough(
    loads: list[list[float]], few: bool
) -> None:
    made = working(*loads)
    assert _few_moves_do(made, np.full(len(loads), 10.0)) is few


@pytest.mark.parametrize("over", [0, 1])
def test_a_partition_takes_the_place_of_so_many_lighter_ones(over: int) -> None:
    """A member of 20 takes one of 16, or of 17, and may pass on 16 of 1 at the most."""
    most = 2 * _EJECTED_BY
    made = working([float(most + over), 30.0], [1.0] * 20, [])
    plan = _eject(made, 0, 0, 1, ceiling=20.0)
    if over:
        assert plan is None
        return
    assert plan is not None
    assert plan.over == 10.0, "the member that gave it up still has 30"
    assert [(len(rows), member) for rows, member in plan.moves] == [(1, 1), *[(1, 2)] * most]


@pytest.mark.parametrize("loaded", [2, 300])
def test_idle_members_do_not_each_look_at_every_member_with_one_partition(
    loaded: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members without a partition are cheap where no other can give one: work grows with members, not their square."""
    idle = 300
    made = working(*[[1.0]] * loaded, *[[]] * idle)
    looks = 0

    def rows_of(self: WorkingAssignment, member: int) -> Ints:
        nonlocal looks
        looks += 1
        return np.flatnonzero(self.owner == member)

    def level_of(self: WorkingAssignment) -> Floats:
        nonlocal looks
        looks += 1
        level: Floats = self.load / self.capacity
        return level

    monkeypatch.setattr(WorkingAssignment, "rows", rows_of)
    monkeypatch.setattr(WorkingAssignment, "level", property(level_of))

    before = made.owner.copy()
    raise_lowest(made, floor=0.5, ceiling=1.0)
    give_to_empty(made, epsilon=0.05, bearable=0.0)
    np.testing.assert_array_equal(made.owner, before)
    assert looks < loaded + idle


def test_idle_members_get_partitions_of_the_highest_that_stay_above_the_floor() -> None:
    made = working([1.0, 1.0, 4.0], [1.0, 1.0, 1.0, 1.0, 1.0], [2.0], [], [])
    raise_lowest(made, floor=1.0, ceiling=3.0)
    assert made.owner.tolist() == [3, 4, 0, 1, 1, 1, 1, 1, 2]
    assert made.load.tolist() == [4.0, 5.0, 2.0, 1.0, 1.0]
