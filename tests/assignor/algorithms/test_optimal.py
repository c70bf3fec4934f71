"""Optimal against every assignment that there is."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from group_strategies import Group, groups, value
from hypothesis import assume, given

from loadwise.assignor.algorithms import ALGORITHMS, algorithm
from loadwise.assignor.algorithms.optimal import MOST_CELLS, Optimal
from loadwise.assignor.errors import GroupTooLargeError
from loadwise.assignor.model import NOBODY, Assignment, GroupSnapshot, Member
from loadwise.cli.assign import answer
from loadwise.installation import pip_install


@given(group=groups(most=4, size=3))
def test_no_assignment_is_better(group: Group) -> None:
    snapshot = group.snapshot()
    readers = [snapshot.subscribers(int(topic)).tolist() for topic in snapshot.topic_of]
    assume(np.prod([len(who) for who in readers]) <= 3000)
    best = min(value(Assignment(snapshot, np.array(owner, np.int32))) for owner in product(*readers))
    assert value(Optimal().assign(snapshot)) == best


@pytest.mark.parametrize("name", ["optimal", "sticky"])
def test_a_partition_on_its_members_rack_is_worth_moving_all_others(name: str) -> None:
    """All that may move are the two that are swapped."""
    members = [
        Member(id="a", topics=["t"], rack="r0", owned={"t": [0]}, generation=1),
        Member(id="b", topics=["t"], rack="r1", owned={"t": [1]}, generation=1),
    ]
    group = GroupSnapshot.of(members, {"t": 2}, racks={"t": [["r1"], ["r0", "r1"]]})
    assert algorithm(name).assign(group).owner.tolist() == [1, 0]


def test_it_is_for_small_groups_and_only_for_those_who_ask() -> None:
    group = GroupSnapshot.of([Member(id="a", topics=["t"])], {"t": MOST_CELLS})
    assert (Optimal().assign(group).owner != NOBODY).all()
    group = GroupSnapshot.of([Member(id="a", topics=["t"])], {"t": MOST_CELLS + 1})
    with pytest.raises(GroupTooLargeError, match="this group has 10,001 x 1; use sticky"):
        Optimal().assign(group)
    assert "optimal" not in ALGORITHMS
    assert algorithm("optimal") == Optimal()


def test_the_command_answers_by_it_and_says_when_it_cannot() -> None:
    case = b'{"strategy": "optimal", "topics": {"t": {"partitions": %d}}, "members": [{"id": "a", "topics": ["t"]}]}'
    assert answer(case % 2)["members"] == {"a": [("t", 0), ("t", 1)]}
    assert "optimal supports up to 10,000" in answer(case % 10_001)["error"]


def test_without_networkx_it_names_the_extra() -> None:
    code = """
import sys
sys.modules["networkx"] = None
from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.model import GroupSnapshot, Member
algorithm("optimal").assign(GroupSnapshot.of([Member(id="a", topics=["t"])], {"t": 1}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert pip_install("optimal") in done.stderr.splitlines()[-1]
