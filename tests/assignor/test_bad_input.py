"""Input that is refused, ignored or guessed: one answer each, the same from every algorithm (`docs/assignors.md`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from loadwise.assignor.algorithms import ALGORITHMS, ON_REQUEST
from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.model import LARGEST, Assignor, GroupSnapshot, Member

EVERY = ALGORITHMS | ON_REQUEST
every_algorithm = pytest.mark.parametrize("assignor", EVERY.values(), ids=list(EVERY))


def answer(assignor: Assignor, members: list[Member], partitions: dict[str, int], **more: Any) -> dict[str, Any]:
    return assignor.assign(GroupSnapshot.of(members, partitions, **more)).by_member()


def given_out(answered: dict[str, Any]) -> list[tuple[str, int]]:
    """Every partition that somebody got, doubled if two did."""
    return sorted((topic, p) for owned in answered.values() for topic, ps in owned.items() for p in ps)


def everything(partitions: dict[str, int]) -> list[tuple[str, int]]:
    return sorted((topic, p) for topic, count in partitions.items() for p in range(count))


@pytest.mark.parametrize("load", [-1.0, -1e-300, math.inf, -math.inf, LARGEST * 2])
def test_a_load_that_cannot_be_is_refused_by_name(load: float) -> None:
    with pytest.raises(BadGroupError, match=r"the load of t-1 is .*; it must be a finite number of 0 or more"):
        GroupSnapshot.of([Member(id="a", topics=["t"])], {"t": 2}, load={"t": [1.0, load]})


@every_algorithm
@pytest.mark.parametrize("load", [math.nan, None])
def test_a_load_that_is_not_known_is_no_obstacle(assignor: Assignor, load: float | None) -> None:
    two = [Member(id="a", topics=["t"]), Member(id="b", topics=["t"], capacity=2.0)]
    for loads in ([load] * 6, [5.0, load, 0.0, load, 1.0, 2.0], [load]):
        assert given_out(answer(assignor, two, {"t": 6}, load={"t": loads})) == everything({"t": 6})


@pytest.mark.parametrize("capacity", [0.0, -1.0, math.nan, math.inf, LARGEST * 2, 1e-100])
def test_a_capacity_that_cannot_be_is_refused_by_name(capacity: float) -> None:
    with pytest.raises(BadGroupError, match=r"member 'a' has capacity .*; it must be a finite number above 0"):
        GroupSnapshot.of([Member(id="a", topics=["t"], capacity=capacity)], {"t": 2})


def test_two_members_of_one_name_are_refused() -> None:
    with pytest.raises(BadGroupError, match="member 'a' is in the group twice"):
        GroupSnapshot.of([Member(id="a", topics=["t"]), Member(id="a", topics=["u"])], {})
    twins = [Member(id=id_, topics=[], instance_id="i") for id_ in "ab"]
    with pytest.raises(BadGroupError, match="members 'a' and 'b' have the same group instance id 'i'"):
        GroupSnapshot.of(twins, {})


@every_algorithm
def test_claims_on_what_is_not_there_are_not_heard(assignor: Assignor) -> None:
    """A topic made again smaller, a topic that is gone, one that the member has left, a number below 0."""
    claims = {"t": [0, 7, -1], "gone": [0], "u": [0]}
    claiming = [Member(id="a", topics=["t"], owned=claims, generation=3), Member(id="b", topics=["t", "u"])]
    plain = [Member(id="a", topics=["t"], owned={"t": [0]}, generation=3), Member(id="b", topics=["t", "u"])]
    load = {"t": [2.0, 1.0], "u": [1.0]}
    heard = answer(assignor, claiming, {"t": 2, "u": 1}, load=load)
    assert heard == answer(assignor, plain, {"t": 2, "u": 1}, load=load)
    assert given_out(heard) == everything({"t": 2, "u": 1})


@every_algorithm
def test_a_claim_or_a_topic_said_twice_counts_once(assignor: Assignor) -> None:
    twice = [Member(id="a", topics=["t", "t"], owned={"t": [1, 1]}, generation=1), Member(id="b", topics=["t"])]
    once = [Member(id="a", topics=["t"], owned={"t": [1]}, generation=1), Member(id="b", topics=["t"])]
    load = {"t": [1.0, 1.0, 1.0]}
    assert answer(assignor, twice, {"t": 3}, load=load) == answer(assignor, once, {"t": 3}, load=load)


@every_algorithm
def test_members_without_topics_get_nothing_and_take_nothing_from_the_others(assignor: Assignor) -> None:
    some = [Member(id="a", topics=[]), Member(id="b", topics=["t"]), Member(id="c", topics=["unknown"])]
    assert answer(assignor, some, {"t": 3}, load={"t": [1.0, 2.0, 3.0]}) == {"a": {}, "b": {"t": [0, 1, 2]}, "c": {}}


@every_algorithm
def test_no_members_no_partitions_nothing_known(assignor: Assignor) -> None:
    nobody = assignor.assign(GroupSnapshot.of([], {"t": 3}, load={"t": [1.0] * 3}))
    assert (nobody.by_member(), len(nobody.owner)) == ({}, 0)
    two = [Member(id="a", topics=["t"], capacity=3.0), Member(id="b", topics=["t", "u"])]
    for partitions in ({"t": 0, "u": 0}, {}, {"other": 5}):
        for load in (None, {"t": []}):
            assert answer(assignor, two, partitions, load=load) == {"a": {}, "b": {}}


@every_algorithm
def test_a_topic_without_metadata_is_left_for_later_and_the_others_are_assigned(assignor: Assignor) -> None:
    two = [Member(id=id_, topics=["new", "t"], owned={"new": [0]}, generation=1) for id_ in "ab"]
    load = {"t": [1.0] * 4, "new": [9.0] * 2}
    assert given_out(answer(assignor, two, {"t": 4}, load=load)) == everything({"t": 4})
    assert given_out(answer(assignor, two, {"t": 4, "new": 2}, load=load)) == everything({"t": 4, "new": 2})


@every_algorithm
def test_loads_and_racks_of_what_is_not_there_are_left_out_and_missing_ones_are_unknown(assignor: Assignor) -> None:
    two = [Member(id="a", topics=["t"], rack="r"), Member(id="b", topics=["t"], rack="elsewhere")]
    more = {
        "load": {"t": [1.0, 2.0, 3.0, 4.0, 5.0], "other": [1.0]},
        "racks": {"t": [["r"], [], ["r", "s"], ["q"], ["r"]], "other": [["r"]]},
    }
    assert given_out(answer(assignor, two, {"t": 3}, **more)) == everything({"t": 3})
    assert given_out(answer(assignor, two, {"t": 9}, **more)) == everything({"t": 9})


def test_a_negative_number_of_partitions_is_refused() -> None:
    with pytest.raises(BadGroupError, match="topic 't' has -1 partitions; the number must be 0 or more"):
        GroupSnapshot.of([Member(id="a", topics=["t"])], {"t": -1})


@every_algorithm
def test_extreme_loads_and_capacities_have_an_answer(assignor: Assignor) -> None:
    few = [Member(id=id_, topics=["t"], capacity=c) for id_, c in (("a", LARGEST), ("b", 1 / LARGEST), ("c", 1.0))]
    loads = np.array([LARGEST, 5e-324, 0.0, 1.0, LARGEST, 1e-60])
    assert given_out(answer(assignor, few, {"t": 6}, load={"t": loads})) == everything({"t": 6})


@every_algorithm
def test_a_giant_and_a_member_that_can_do_next_to_nothing(assignor: Assignor) -> None:
    """All other loads are less than the rounding error of the giant's, the slow capacity than that of the others."""
    few = [Member(id=id_, topics=["t"], capacity=capacity) for id_, capacity in (("a", 1.0), ("b", 1.0), ("c", 1e-20))]
    load = {"t": [1e30, 5.0, 1.0]}
    assert given_out(answer(assignor, few, {"t": 3}, load=load)) == everything({"t": 3})
