"""What is next for a batch, for all that may be found of its partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.balance.errors import SurpriseError, UnfitClusterError
from loadwise.balance.following import (
    Found,
    Seen,
    Step,
    Work,
    check_brokers,
    check_space,
    read_steps,
    throttled_replicas,
    work_of,
)

NAME = ("t", 0)
MOVE = Step(replicas={NAME: (3, 2)}, elected=(NAME,))


def _seen(**fields: object) -> Seen:
    found = {"replicas": (1, 2), "leader": 1, "in_sync": frozenset({1, 2}), **fields}
    target: Any = found.pop("target", None)
    targets = {} if target is None else {NAME: target}
    partitions = {NAME: Found(**found)}  # type: ignore[arg-type]
    return Seen(brokers=frozenset({1, 2, 3}), partitions=partitions, targets=targets)


def _work(start: bool = False, waiting: bool = False, elect: bool = False) -> Work:
    return Work(start=(NAME,) * start, waiting=(NAME,) * waiting, elect=(NAME,) * elect)


@pytest.mark.parametrize(
    ("found", "is_started", "left"),
    [
        ({}, False, _work(start=True)),
        ({"replicas": (3, 2, 1), "target": (3, 2)}, False, _work(waiting=True)),
        ({"replicas": (3, 2, 1), "target": (3, 2)}, True, _work(waiting=True)),
        ({"replicas": (3, 2), "leader": 2, "in_sync": {2}}, True, _work(waiting=True)),
        ({"replicas": (3, 2), "leader": 2, "in_sync": {2, 3}}, True, _work(elect=True)),
        ({"replicas": (3, 2), "leader": 2, "in_sync": {2, 3}}, False, _work(elect=True)),
        ({"replicas": (3, 2), "leader": 3, "in_sync": {2, 3}}, False, _work()),
    ],
)
def test_a_batch_goes_on_from_what_is_found(found: dict[str, object], is_started: bool, left: Work) -> None:
    assert work_of(MOVE, _seen(**found), is_started=is_started) == left
    assert left.is_done == (left == _work())


@pytest.mark.parametrize(
    ("found", "is_started", "surprise"),
    [
        ({"in_sync": {1}}, False, "the replicas of partition t-0 on brokers 2 are not in sync"),
        ({"replicas": (3, 2), "in_sync": {2}}, False, "the replicas of partition t-0 on brokers 3 are not in sync"),
        ({"leader": -1}, True, "partition t-0 has no leader"),
        ({"offline": {2}}, True, "the replica of partition t-0 on broker 2 is offline"),
        ({"target": (2, 1)}, False, "partition t-0 is being reassigned to 2, 1, but the plan says 3, 2; plan again"),
        ({}, True, "the reassignment of partition t-0 ended with replicas 1, 2, but the plan says 3, 2"),
    ],
)
def test_what_the_plan_does_not_expect_is_a_surprise(found: dict[str, object], is_started: bool, surprise: str) -> None:
    with pytest.raises(SurpriseError, match=surprise):
        work_of(MOVE, _seen(**found), is_started=is_started)


def test_brokers_and_partitions_that_are_missing_are_surprises() -> None:
    seen = _seen()
    with pytest.raises(SurpriseError, match="broker 3, which has a replica of t-0, is not up"):
        work_of(MOVE, Seen(brokers=frozenset({1, 2}), partitions=seen.partitions), is_started=False)
    with pytest.raises(SurpriseError, match="partition t-0 no longer exists"):
        work_of(MOVE, Seen(brokers=seen.brokers, partitions={}), is_started=False)
    with pytest.raises(SurpriseError, match="broker 4 is no longer up"):
        check_brokers(frozenset({3, 4}), seen)


def test_a_reassignment_of_somebody_else_is_a_surprise() -> None:
    seen = replace(_seen(), targets={("u", 4): (1,)})
    with pytest.raises(SurpriseError, match="partition u-4 is being reassigned outside this batch"):
        work_of(MOVE, seen, is_started=False)


@given(st.permutations([1, 2, 3, 4]), st.permutations([1, 2, 3, 4]), st.integers(1, 3), st.booleans())
def test_a_batch_that_is_executed_ends(before: list[int], planned: list[int], count: int, elects: bool) -> None:
    """Kafka copies, then drops the old replicas, and a replica that stays leads until the election."""
    was, then = tuple(before[:count]), tuple(planned[:count])
    step = Step(replicas={NAME: then}, elected=(NAME,) if elects else ())
    brokers = frozenset({1, 2, 3, 4})

    def left(found: Found, *, target: tuple[int, ...] | None = None, is_started: bool = True) -> Work:
        targets = {} if target is None else {NAME: target}
        return work_of(step, Seen(brokers=brokers, partitions={NAME: found}, targets=targets), is_started=is_started)

    found = Found(replicas=was, leader=was[0], in_sync=frozenset(was))
    if was != then:
        assert left(found, is_started=False).start == (NAME,)
        union = (*then, *(each for each in was if each not in then))
        assert left(Found(replicas=union, leader=was[0], in_sync=frozenset(was)), target=then).waiting == (NAME,)
        leader = was[0] if was[0] in then else then[-1]
        found = Found(replicas=then, leader=leader, in_sync=frozenset(then))
    if elects and found.leader != then[0]:
        assert left(found).elect == (NAME,)
        found = Found(replicas=then, leader=then[0], in_sync=frozenset(then))
    assert left(found).is_done


def test_a_disk_that_has_grown_since_the_plan_is_a_surprise() -> None:
    sizes = {(NAME, 1): 40, (NAME, 2): 40, (("u", 0), 3): 50}
    check_space(MOVE, _seen(), [NAME], sizes, {3: 90.0, 1: 10.0})
    with pytest.raises(SurpriseError, match="broker 3 has no space for partition t-0: its disk would hold 90 bytes"):
        check_space(MOVE, _seen(), [NAME], sizes, {3: 89.0})


def test_throttles_name_the_replicas_that_send_and_those_that_receive() -> None:
    assert throttled_replicas(MOVE, _seen(), [NAME]) == {"t": ("0:1,0:2", "0:3")}
    reordered = Step(replicas={NAME: (2, 1)})
    assert throttled_replicas(reordered, _seen(), [NAME]) == {}


def test_the_files_of_a_plan_are_read_as_batches() -> None:
    files = {
        "batch-02-leaders.json": '{"partitions": [{"topic": "t", "partition": 0}]}',
        "batch-02.json": '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [3, 2]}]}',
        "batch-01-leaders.json": '{"partitions": [{"topic": "u", "partition": 7}]}',
    }
    assert read_steps(files) == [Step(replicas={}, elected=(("u", 7),)), MOVE]
    with pytest.raises(UnfitClusterError, match=r"batch-01.json is not a batch of a plan"):
        read_steps({"batch-01.json": '{"partitions": 4}'})
