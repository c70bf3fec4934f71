"""What every algorithm of the registry must keep to, whatever the group."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from group_strategies import Group, groups
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.algorithms import ALGORITHMS, ON_REQUEST, algorithm
from loadwise.assignor.errors import UnknownAssignorError
from loadwise.assignor.model import NOBODY, Assignor
from loadwise.assignor.staging import stage
from loadwise.assignor.strategy import StrategyName, strategies

EVERY = ALGORITHMS | ON_REQUEST
every_algorithm = pytest.mark.parametrize("assignor", EVERY.values(), ids=list(EVERY))


def test_type_checkers_know_the_name_of_each_strategy() -> None:
    assert set(get_args(StrategyName)) == strategies().keys()


@every_algorithm
@given(group=groups())
def test_each_partition_goes_to_a_subscriber_if_there_is_one(assignor: Assignor, group: Group) -> None:
    snapshot = group.snapshot()
    answer = assignor.assign(snapshot).by_member()
    given_out = [(topic, p) for owned in answer.values() for topic, ps in owned.items() for p in ps]
    wanted = {topic for member in group.members for topic in member.topics}
    assert sorted(given_out) == sorted((t, p) for t, n in group.partitions.items() if t in wanted for p in range(n))
    assert answer.keys() == {member.id for member in group.members}
    for member in group.members:
        assert answer[member.id].keys() <= set(member.topics)


@every_algorithm
@given(group=groups(), data=st.data())
def test_the_order_of_the_input_does_not_matter(assignor: Assignor, group: Group, data: st.DataObject) -> None:
    shuffled = Group(
        tuple(
            replace(
                member,
                topics=data.draw(st.permutations(member.topics)),
                owned={t: member.owned[t] for t in data.draw(st.permutations(list(member.owned)))},
            )
            for member in data.draw(st.permutations(group.members))
        ),
        {t: group.partitions[t] for t in data.draw(st.permutations(list(group.partitions)))},
        group.load,
        group.racks,
    )
    assert assignor.assign(group.snapshot()).by_member() == assignor.assign(shuffled.snapshot()).by_member()


@every_algorithm
@given(group=groups())
def test_its_own_answer_is_what_it_answers_again(assignor: Assignor, group: Group) -> None:
    first = assignor.assign(group.snapshot())
    again = assignor.assign(group.owning(first).snapshot())
    assert first.by_member() == again.by_member()


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "optimal"])
@given(group=groups())
def test_staging_settles_in_two_rounds_and_never_doubles(name: str, group: Group) -> None:
    assignor = algorithm(name)
    for round_ in range(3):
        snapshot = group.snapshot()
        target = assignor.assign(snapshot)
        staged = stage(target)
        withheld = (staged.owner == NOBODY) & (target.owner != NOBODY)
        assert (staged.owner[~withheld] == target.owner[~withheld]).all()
        for row, claimant in zip(snapshot.claim_row.tolist(), snapshot.claim_member.tolist(), strict=True):
            new_owner = staged.owner[row]
            assert new_owner in (NOBODY, claimant, snapshot.owner[row]), "handed on while somebody else claims it"
        if not withheld.any():
            break
        group = group.owning(staged, 9 + round_)
    assert round_ < 2, "the second round had to withhold partitions again"


def test_every_strategy_has_its_algorithm() -> None:
    for strategy in strategies().values():
        assert algorithm(strategy.algorithm).name == strategy.algorithm
    with pytest.raises(UnknownAssignorError, match="'fair'; choose from range, roundrobin, sticky, weighted"):
        algorithm("fair")
