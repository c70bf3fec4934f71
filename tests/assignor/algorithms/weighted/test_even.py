"""Equal numbers of partitions first: what no shift of the load makes worse than counting partitions does."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.algorithms.sticky import Sticky
from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.model import RECORDS_PER_S, Assignment, GroupSnapshot, Member

CAPACITY = 100.0


def group(load, owner=None, members=3, even_up_to=math.inf, capacity=CAPACITY):
    owned = [{} if owner is None else {"t": [row for row, of in enumerate(owner) if of == m]} for m in range(members)]
    made = GroupSnapshot.of(
        [Member(id=f"m{m}", topics=["t"], owned=owned[m], generation=1) for m in range(members)],
        {"t": len(load)},
        load={"t": load},
        load_unit=RECORDS_PER_S,
    )
    return replace(
        made, capacity=np.full(members, capacity), capacity_known=np.ones(members, bool), even_up_to=even_up_to
    )


def highest(answer: Assignment) -> float:
    return float(np.bincount(answer.owner, answer.group.load).max())


loads = st.lists(st.floats(0, 50), min_size=1, max_size=30).filter(any)
OWNERS = st.none() | st.lists(st.integers(-1, 2), min_size=30, max_size=30)


@given(loads, OWNERS)
def test_numbers_are_those_of_sticky_and_no_member_is_busier(load, owner):
    made = group(load, None if owner is None else owner[: len(load)])
    answer, stock = Weighted().assign(made), Sticky().assign(made)
    assert sorted(answer.counts().tolist()) == sorted(stock.counts().tolist())
    assert highest(answer) <= highest(stock) * (1 + 1e-9)


@given(loads, OWNERS, st.floats(0.1, 1.5))
def test_numbers_are_equal_unless_a_member_would_be_busier_than_it_may(load, owner, up_to):
    made = group(load, None if owner is None else owner[: len(load)], even_up_to=up_to)
    answer = Weighted().assign(made)
    if np.ptp(answer.counts()) > 1:
        even = Weighted().assign(replace(made, even_up_to=math.inf))
        assert highest(even) > up_to * CAPACITY


@pytest.mark.parametrize(
    ("up_to", "counts", "most"),
    [(0.0, [1, 3, 5], 65), (0.7, [1, 3, 5], 65), (0.76, [3, 3, 3], 75), (math.inf, [3, 3, 3], 75)],
)
def test_a_heavy_partition_has_the_lightest_beside_it(up_to, counts, most):
    """With two of the five lightest the heavy one makes 75."""
    answer = Weighted().assign(group([65.0] + [5.0] * 5 + [15.0] * 3, even_up_to=up_to))
    assert sorted(answer.counts().tolist()) == counts
    assert highest(answer) == most


def test_nothing_moves_while_numbers_are_equal_and_members_healthy():
    owner = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    made = group([20.0, 20, 20, 5, 5, 5, 1, 1, 1], owner, even_up_to=0.7)
    assert Weighted().assign(made).owner.tolist() == owner


def test_members_of_a_larger_capacity_get_more():
    made = replace(group([5.0] * 12), capacity=np.array([200.0, 100.0, 100.0]))
    assert Weighted().assign(made).counts().tolist() == [6, 3, 3]
