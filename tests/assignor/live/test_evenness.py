"""Numbers of partitions become equal again once the load that made them differ is over."""

from dataclasses import replace

import numpy as np
import pytest

from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.live.capacity import Capacities
from loadwise.assignor.live.evenness import Evenness
from loadwise.assignor.live.judgement import compare
from loadwise.assignor.live.tuning import EvennessTuning
from loadwise.assignor.model import RECORDS_PER_S, GroupSnapshot, Member

LOPSIDED = [0, 0, 0, 0, 0, 2, 2, 2, 1, 2, 2, 0]


def judged(load, owner=LOPSIDED, capacity=(100.0, 100.0, 100.0)):
    owned = {f"m{member}": {"t": [row for row, of in enumerate(owner) if of == member]} for member in range(3)}
    members = [Member(id=name, topics=["t"], owned=rows, generation=1) for name, rows in owned.items()]
    group = GroupSnapshot.of(members, {"t": 12}, load={"t": load}, load_unit=RECORDS_PER_S)
    group = replace(group, capacity=np.array(capacity), capacity_known=np.ones(3, bool))
    known = np.ones(3, bool)
    return compare(group, group.owner, Capacities(group.capacity, known=True, proven=known, reliable=known))


def first(*loads, every_s=5, **group):
    """The second at which numbers are made equal; each load lasts a minute."""
    evenness = Evenness(EvennessTuning())
    for second in range(0, 60 * len(loads), every_s):
        if evenness.restores(judged(loads[second // 60], **group), Weighted(), 0.7, second * 1000):
            return second
    return None


EVEN = [5.0] * 12
HEAVY = [5.0] * 8 + [65.0] + [5.0] * 3  # with three others beside it a member has 80 %


@pytest.mark.parametrize(
    ("loads", "owner", "second"),
    [
        ([EVEN] * 4, LOPSIDED, 120),
        ([EVEN] * 4, [0, 1, 2] * 4, None),
        ([EVEN] * 4, [0] * 5 + [1] * 4 + [2] * 3, 120),
        ([HEAVY] * 4, LOPSIDED, None),  # the load needs it
        ([HEAVY, EVEN, EVEN, EVEN], LOPSIDED, 180),
        ([EVEN, HEAVY, EVEN, EVEN, EVEN], LOPSIDED, 240),
        ([[14.0] * 12, EVEN, EVEN, EVEN], LOPSIDED, 180),  # a member at 84 % is another matter
    ],
)
def test_numbers_become_equal_after_two_calm_minutes(loads, owner, second):
    assert first(*loads, owner=owner) == second


def test_numbers_that_fit_the_capacities_are_left_alone():
    assert first(*[EVEN] * 4, owner=[0] * 6 + [1] * 3 + [2] * 3, capacity=(200.0, 100.0, 100.0)) is None
