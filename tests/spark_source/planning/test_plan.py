"""The plan: every offset in exactly one task, even where it can be, and just what the assignor says."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.algorithms import ALGORITHMS, algorithm
from loadwise.assignor.model import NOBODY, Assignment, GroupSnapshot, Member, TopicPartition
from loadwise.spark_source.errors import PlanError
from loadwise.spark_source.planning.plan import (
    EVEN_ENOUGH,
    FULL_TASK,
    LONG_TASK,
    ROUND,
    WORTH_A_TASK,
    Plan,
    _cut,
    _cuts,
    plan,
)
from loadwise.spark_source.task import OffsetRange


@st.composite
def backlogs(draw: st.DrawFn) -> list[OffsetRange]:
    """Partitions of a few topics with anything from nothing to a lot to read, in any order."""
    places = draw(st.lists(st.tuples(st.sampled_from(["a", "b", "c\U0001f600", "d"]), st.integers(0, 40)), unique=True))
    sizes = st.one_of(st.just(0), st.integers(1, 20), st.integers(1, 3_000_000))
    starts = st.integers(0, 2**40)
    return [OffsetRange(*place, (start := draw(starts)), start + draw(sizes)) for place in places]


def covered(made: Plan) -> list[OffsetRange]:
    """All ranges of all tasks, neighbours joined, sorted."""
    joined: list[OffsetRange] = []
    for item in sorted(item for task in made.tasks for item in task.ranges):
        last = joined[-1] if joined else None
        if last and (last.topic, last.partition, last.end) == (item.topic, item.partition, item.start):
            joined[-1] = OffsetRange(last.topic, last.partition, last.start, item.end)
        else:
            joined.append(item)
    return joined


@pytest.mark.parametrize("name", ALGORITHMS)
@given(ranges=backlogs(), num_tasks=st.integers(1, 12) | st.none(), split=st.booleans())
def test_every_offset_is_in_exactly_one_task(name: str, ranges: list[OffsetRange], num_tasks: int | None, split: bool):
    made = plan(ranges, algorithm(name), num_tasks=num_tasks, split=split)
    filled = sorted(item for item in ranges if len(item))
    assert covered(made) == filled
    assert sum(len(item) for task in made.tasks for item in task.ranges) == sum(len(item) for item in filled)
    most = len(filled) if not split or len(filled) <= ROUND else -(-len(filled) // ROUND) * ROUND
    assert 1 <= len(made.tasks) <= max(1, most) if num_tasks is None else len(made.tasks) == num_tasks
    assert [task.member for task in made.tasks] == [f"slot-{index}" for index in range(len(made.tasks))]
    for task in made.tasks:
        assert task.weight == sum(len(item) for item in task.ranges)
        assert all(len(item) for item in task.ranges)
        assert list(task.ranges) == sorted(task.ranges)


@given(ranges=backlogs(), num_tasks=st.integers(1, 12), split=st.booleans(), shuffled=st.randoms(use_true_random=False))
def test_the_plan_does_not_depend_on_the_order_of_the_input(ranges, num_tasks, split, shuffled):
    made = plan(ranges, algorithm("weighted"), num_tasks=num_tasks, split=split)
    shuffled.shuffle(ranges)
    assert plan(ranges, algorithm("weighted"), num_tasks=num_tasks, split=split) == made


@given(
    sizes=st.lists(st.integers(0, 10**7), min_size=1, max_size=40),
    num_tasks=st.integers(1, 12),
    cost=st.floats(0.01, 100),
)
def test_split_partitions_make_even_tasks_whatever_the_skew(sizes: list[int], num_tasks: int, cost: float):
    ranges = [OffsetRange("a" if number % 2 else "b", number, 5, 5 + size) for number, size in enumerate(sizes)]
    costs = {"a": cost}
    made = plan(ranges, algorithm("weighted"), num_tasks=num_tasks, cost_per_record=costs)
    mean = sum(task.weight for task in made.tasks) / num_tasks
    one_record = max(1.0, cost)  # no cut is finer than a record
    assert max(task.weight for task in made.tasks) <= mean * (1 + 1 / 16) + one_record


@pytest.mark.parametrize("name", ALGORITHMS)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 5, 10**4, 10**10]), min_size=1, max_size=8),
    exponents=st.lists(st.integers(-9, 9), min_size=2, max_size=2),
    num_tasks=st.integers(1, 8),
)
def test_next_to_nothing_beside_a_lot_is_read_all_the_same(
    name: str, sizes: list[int], exponents: list[int], num_tasks: int
):
    """A range may be a thousand-millionth of a fair share, by its records or by what they cost."""
    costs = {topic: 10.0**exponent for topic, exponent in zip("ab", exponents, strict=True)}
    ranges = [OffsetRange("ab"[number % 2], number, 7, 7 + size) for number, size in enumerate(sizes)]
    made = plan(ranges, algorithm(name), num_tasks=num_tasks, cost_per_record=costs)
    assert covered(made) == sorted(item for item in ranges if len(item))


def test_whole_partitions_stay_whole_and_a_hot_one_holds_up_its_task():
    ranges = [OffsetRange("hot", 0, 0, 700), *(OffsetRange("hot", number, 0, 100) for number in range(1, 4))]
    made = plan(ranges, algorithm("weighted"), num_tasks=2, split=False)
    assert [task.weight for task in made.tasks] == [700, 300]
    assert made.max_over_mean == 1.4
    assert plan(ranges, algorithm("weighted"), num_tasks=2).max_over_mean == 1.0


def test_whole_partitions_are_shared_out_as_the_consumer_group_would():
    """Empty partitions count, or `range` would not be Kafka's: three members of 7 partitions get 3, 2 and 2."""
    ranges = [OffsetRange("t", number, 0, 10 * (number % 2)) for number in range(7)]
    made = plan(ranges, algorithm("range"), num_tasks=3, split=False)
    members = [Member(id=f"slot-{slot}", topics=["t"]) for slot in range(3)]
    group = algorithm("range").assign(GroupSnapshot.of(members, {"t": 7})).by_member()
    for task in made.tasks:
        assert [item.partition for item in task.ranges] == [number for number in group[task.member]["t"] if number % 2]


def test_a_cut_is_as_coarse_as_evenness_allows():
    ranges = [OffsetRange("t", 0, 0, 300), *(OffsetRange("t", number, 0, 100) for number in range(1, 4))]
    made = plan(ranges, algorithm("weighted"), num_tasks=2)
    assert [task.weight for task in made.tasks] == [300, 300]
    assert [len(task.ranges) for task in made.tasks] == [1, 3]


def test_a_record_that_costs_more_weighs_more():
    ranges = [OffsetRange("image", 0, 0, 10), OffsetRange("click", 0, 0, 1000)]
    made = plan(ranges, algorithm("weighted"), num_tasks=2, cost_per_record={"image": 100.0})
    assert [task.weight for task in made.tasks] == [1000, 1000]
    assert [[item.topic for item in task.ranges] for task in made.tasks] == [["click"], ["image"]]


@given(size=st.integers(1, 3000), most=st.floats(0.1, 4000))
def test_a_range_is_cut_into_the_fewest_equal_pieces(size: int, most: float):
    pieces = _cut(OffsetRange("t", 0, 9, 9 + size), most)
    assert [9, *(piece.end for piece in pieces)] == [*(piece.start for piece in pieces), 9 + size]
    assert max(map(len, pieces)) - min(map(len, pieces)) <= 1
    assert len(pieces) == min(size, math.ceil(size / most - 1e-9))


@pytest.mark.parametrize("cost", [1, 7])
def test_ways_to_cut_are_whole_shares_with_a_remainder_and_equal_pieces_ever_finer(cost: float):
    ranges = [OffsetRange("t", 0, 9, 79), OffsetRange("t", 1, 0, 50)]  # of three tasks each has 40
    found = list(_cuts(ranges, 3, {("t", 0): cost, ("t", 1): cost}))
    # Shares of 40 with remainders of 30 and 10, then 70 and 50, in pieces of at most 40, 20, 10, 5 and 2.5 records.
    assert [len(pieces) for pieces in found] == [
        2 + 2,
        2 + 2,
        3 + 2,
        4 + 3,
        4 + 2,
        7 + 5,
        7 + 3,
        14 + 10,
        13 + 5,
        28 + 20,
    ]
    assert {sum(map(len, pieces)) for pieces in found} == {120}


@pytest.mark.parametrize(
    ("sizes", "costs", "whole", "cut"),
    [
        ([1] * 12, {}, 1, 1),
        ([WORTH_A_TASK // 12] * 12, {}, 1, 1),
        ([WORTH_A_TASK // 12 + 1] * 12, {}, 2, 2),
        ([WORTH_A_TASK] * 7, {}, 7, 7),
        ([WORTH_A_TASK] * 12, {}, 12, 8),
        ([12 * WORTH_A_TASK, *[1] * 11], {}, 12, 8),
        ([100 * WORTH_A_TASK, 0, 0], {}, 1, 1),
        ([1] * 12, {"t": WORTH_A_TASK}, 12, 8),
        ([12 * WORTH_A_TASK, *[1] * 11], {"t": 0.25}, 4, 4),
        ([FULL_TASK] * 12, {}, 12, 16),
        ([FULL_TASK * 9 // 100] * 100, {}, 100, 16),
    ],
)
def test_where_nobody_says_how_many_a_task_has_enough_to_do(sizes, costs, whole, cut):
    ranges = [OffsetRange("t", number, 3, 3 + size) for number, size in enumerate(sizes)]
    for split, tasks in ((False, whole), (True, cut)):
        assert len(plan(ranges, algorithm("weighted"), cost_per_record=costs, split=split).tasks) == tasks
    assert len(plan(ranges, algorithm("weighted"), num_tasks=7, cost_per_record=costs).tasks) == 7


@pytest.mark.parametrize(
    ("sizes", "slots", "whole", "cut"),
    [
        ([1] * 12, 8, 1, 1),
        ([WORTH_A_TASK // 12 + 1] * 12, 8, 2, 2),
        ([WORTH_A_TASK] * 12, 8, 8, 8),
        ([WORTH_A_TASK] * 12, 2, 2, 2),
        ([12 * WORTH_A_TASK], 8, 1, 8),
        ([WORTH_A_TASK] * 100, 64, 64, 64),
        ([LONG_TASK] * 2, 2, 2, 2),
        ([LONG_TASK + 1, LONG_TASK], 2, 2, 4),
        ([LONG_TASK] * 12, 5, 12, 15),
        ([], 8, 1, 1),
    ],
)
def test_where_the_slots_are_known_there_is_a_task_for_each_or_a_multiple(sizes, slots, whole, cut):
    ranges = [OffsetRange("t", number, 3, 3 + size) for number, size in enumerate(sizes)]
    for split, tasks in ((False, whole), (True, cut)):
        assert len(plan(ranges, algorithm("weighted"), slots=slots, split=split).tasks) == tasks
    assert len(plan(ranges, algorithm("weighted"), slots=slots, num_tasks=7).tasks) == 7


def test_a_minimum_of_tasks_raises_the_default_and_no_number_that_is_given():
    ranges = [OffsetRange("t", number, 0, WORTH_A_TASK) for number in range(4)]
    for slots in (None, 4):
        counts = [len(plan(ranges, algorithm("weighted"), slots=slots, min_tasks=least).tasks) for least in (1, 3, 24)]
        assert counts == [4, 4, 24]
    assert len(plan(ranges, algorithm("weighted"), num_tasks=2, min_tasks=24).tasks) == 2


def test_members_that_get_nothing_are_no_filled_tasks():
    made = plan([OffsetRange("t", 0, 0, 2), OffsetRange("t", 1, 5, 5)], algorithm("weighted"), num_tasks=6)
    assert len(made.tasks) == 6
    assert [task.records for task in made.filled] == [1, 1]


def test_nothing_to_read_is_one_task_with_nothing():
    for ranges in ([], [OffsetRange("t", 0, 7, 7)]):
        for split in (True, False):
            made = plan(ranges, algorithm("weighted"), split=split)
            assert [(task.member, task.ranges) for task in made.tasks] == [("slot-0", ())]
            assert made.max_over_mean == 1.0


def test_the_plan_as_text_says_the_weight_of_every_task_and_how_even_they_are():
    ranges = [OffsetRange("t", 0, 0, 3000), OffsetRange("t", 1, 0, 1000)]
    made = plan(ranges, algorithm("weighted"), num_tasks=2, split=False)
    assert str(made) == ("weighted plan of 2 tasks, max/mean 1.500: slot-0 3,000 in 1 ranges, slot-1 1,000 in 1 ranges")


@dataclass
class _Answers:
    """An assignor that answers whatever it is told to."""

    answer: object
    name: str = "mine"

    def assign(self, group: GroupSnapshot) -> Assignment:
        return self.answer(group)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda group: Assignment(group, np.full(group.size, NOBODY, np.int32)), "gives t-0.* to no member"),
        (lambda group: Assignment(group, np.full(group.size, 2, np.int32)), "gives t-0.* to no member: its owner is 2"),
        (lambda group: Assignment(group, np.zeros(group.size - 1, np.int32)), "an Assignment of all 2 partitions"),
        (lambda _: {"slot-0": [0, 1]}, "must return an Assignment"),
        (lambda group: Assignment(group, np.zeros(group.size)), "fails on these ranges: TypeError: "),
        (lambda group: group.nothing, "option assignor: .*fails on these ranges: AttributeError: .*nothing"),
    ],
    ids=["nobody", "a stranger", "too short", "something else", "no rows", "an error"],
)
def test_an_answer_that_loses_records_is_refused(answer, problem):
    with pytest.raises(PlanError, match=problem) as refused:
        plan([OffsetRange("t", 0, 0, 10), OffsetRange("t", 1, 0, 10)], _Answers(answer), num_tasks=2)
    assert "'mine'" in str(refused.value)


@given(st.lists(st.integers(0, 900), min_size=1, max_size=6), st.integers(100, 900))
def test_no_task_has_more_records_than_are_allowed(sizes, most):
    made = plan(
        [OffsetRange("t", partition, 0, size) for partition, size in enumerate(sizes)],
        algorithm("weighted"),
        num_tasks=2,
        max_records=most,
    )
    assert max(task.records for task in made.tasks) <= most
    assert sum(task.records for task in made.tasks) == sum(sizes)
    assert len(made.tasks) <= max(2, 1.2 * sum(sizes) / most + 2)


class FirstTakesAll:
    name = "first-takes-all"

    def assign(self, group: GroupSnapshot) -> Assignment:
        return Assignment(group, np.zeros(group.size, np.int32))


def test_an_assignor_that_piles_up_cannot_keep_the_limit():
    with pytest.raises(
        PlanError, match=r"gives a task 100 records, but maxRecordsPerPartition allows 10; use assignor"
    ):
        plan([OffsetRange("t", 0, 0, 100)], FirstTakesAll(), num_tasks=2, max_records=10)


@dataclass
class Few:
    """Gives all to one member in ``of``, and keeps how many were asked for."""

    of: int
    asked: list[int]
    name: str = "few"

    def assign(self, group: GroupSnapshot) -> Assignment:
        self.asked.append(len(group.members))
        return Assignment(group, (np.arange(group.size) % -(-len(group.members) // self.of)).astype(np.int32))


@pytest.mark.parametrize(
    ("of", "most", "asked"),
    [
        (2, 36, [4, 8]),  # 144 records are at least 4 tasks; two of those have 72 each, so there are twice as many
        (2, 48, [3, 5]),  # two of 3 tasks have 72: half as many more
        (4, 36, [4, 8, 16]),  # one has four times too much: never more than twice as many at once
    ],
)
def test_a_limit_of_records_takes_as_many_more_tasks_as_it_needs(of: int, most: int, asked: list[int]):
    assignor = Few(of, [])
    ranges = [OffsetRange("t", partition, 0, 12) for partition in range(12)]
    made = plan(ranges, assignor, num_tasks=2, split=False, max_records=most)
    assert assignor.asked == asked
    assert max(task.records for task in made.tasks) == most


def test_a_limit_of_records_that_is_kept_leaves_tasks_even_in_bytes():
    ranges = [OffsetRange("heavy", 0, 0, 1_000), OffsetRange("light", 0, 0, 1_000)]
    weights = {TopicPartition("heavy", 0): 900.0, TopicPartition("light", 0): 100.0}
    made = plan(ranges, algorithm("weighted"), record_bytes=weights, num_tasks=4)
    assert plan(ranges, algorithm("weighted"), record_bytes=weights, num_tasks=4, max_records=1_900) == made
    assert max(task.records for task in made.tasks) > 1_000


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=12), st.integers(1, 6))
def test_homes_cost_no_evenness(sizes, slots):
    ranges = [OffsetRange("t", partition, 0, size) for partition, size in enumerate(sizes)]
    for name in ("weighted", "sticky"):
        free = plan(ranges, algorithm(name), num_tasks=slots)
        sticky = plan(ranges, algorithm(name), num_tasks=slots, sticky=True)
        assert sticky.max_over_mean <= max(free.max_over_mean, EVEN_ENOUGH) + 1e-9
        assert sticky == plan(ranges[::-1], algorithm(name), num_tasks=slots, sticky=True)


@pytest.mark.parametrize("split", [True, False])
def test_the_assignor_is_told_each_partitions_home(split):
    told = []

    def by_current_owner(group):
        told.append(group.owner.tolist())
        return Assignment(group, group.owner)

    ranges = [OffsetRange("t", number, 0, 100) for number in range(5)]
    made = plan(ranges, _Answers(by_current_owner), num_tasks=5, split=split, sticky=True)
    assert told == [[0, 1, 2, 3, 4]]
    assert [[item.partition for item in task.ranges] for task in made.tasks] == [[0], [1], [2], [3], [4]]


def test_a_cut_partition_goes_on_in_the_next_task():
    ranges = [OffsetRange("t", 0, 0, 300), *(OffsetRange("t", number, 0, 100) for number in range(1, 4))]
    made = plan(ranges, _Answers(lambda group: Assignment(group, group.owner)), num_tasks=3)
    assert [[(item.partition, item.start, item.end) for item in task.ranges] for task in made.tasks] == [
        [(0, 0, 200)],
        [(0, 200, 300), (1, 0, 100)],
        [(2, 0, 100), (3, 0, 100)],
    ]


@pytest.mark.parametrize("sticky", [False, True])
def test_an_assignor_that_stays_uneven_is_asked_once_for_each_cut_and_its_owners(sticky):
    asked = []

    def all_to_the_first(group):
        asked.append((group.load.tolist(), group.owner.tolist()))
        return Assignment(group, np.zeros(group.size, np.int32))

    ranges = [OffsetRange("t", 0, 0, 70), OffsetRange("t", 1, 0, 50)]
    plan(ranges, _Answers(all_to_the_first), num_tasks=3, sticky=sticky)
    cuts = [[float(len(piece)) for piece in pieces] for pieces in _cuts(ranges, 3, {("t", 0): 1.0, ("t", 1): 1.0})]
    free = [(cut, [NOBODY] * len(cut)) for cut in cuts]
    poured = ([40.0, 30.0, 10.0, 40.0], [0, 1, 1, 2])
    if not sticky:
        assert asked == [poured, *free]
        return
    assert asked[1] == poured
    assert asked[3::2] == free
    assert [cut for cut, _ in asked[2::2]] == cuts
    for _, owners in asked[2::2]:  # the first piece of each partition is at home
        assert [owner for owner in owners if owner != NOBODY] == [0, 1]


@pytest.mark.parametrize(("costs", "unit"), [({}, "records"), ({"t": 1.0}, "records"), ({"t": 2.0}, "cost")])
def test_the_assignor_is_told_whether_loads_are_records_or_costs(costs, unit):
    told = []

    def by_current_owner(group):
        told.append(group.load_unit)
        return Assignment(group, group.owner)

    plan([OffsetRange("t", 0, 0, 100)], _Answers(by_current_owner), num_tasks=2, cost_per_record=costs)
    assert told == [unit]


@given(sizes=st.lists(st.integers(1, 10**7), min_size=1, max_size=60), slots=st.integers(1, 60), sticky=st.booleans())
def test_the_first_cut_is_even_so_that_the_assignor_is_asked_once(sizes, slots, sticky):
    """However the partitions differ: 1,000 of them and 1,000 tasks took 13 s where cuts were tried one by one."""
    asked = []

    class Counting:
        name = "counting"

        def assign(self, group):
            asked.append(group)
            return algorithm("weighted").assign(group)

    records = sum(sizes)
    ranges = [OffsetRange("t", number, 3, 3 + size) for number, size in enumerate(sizes)]
    made = plan(ranges, Counting(), num_tasks=slots, sticky=sticky)
    if records >= 1000 * slots:  # a record cannot be cut
        assert len(asked) == 1
        assert made.max_over_mean <= EVEN_ENOUGH
    assert sum(len(task.ranges) for task in made.tasks) <= 2 * (len(sizes) + slots)


@pytest.mark.parametrize("heavy", [130.0, 2_200.0, 5_100.0])
def test_the_most_records_in_a_task_are_kept_where_tasks_are_to_be_even_in_bytes(heavy: float):
    """Tasks that are even in bytes would give the light records to few of them, and there are no more tasks for it."""
    ranges = [OffsetRange("heavy", 0, 0, 1_000_000), OffsetRange("light", 0, 0, 1_000_000)]
    weights = {TopicPartition("heavy", 0): heavy, TopicPartition("light", 0): 120.0}
    made = plan(ranges, algorithm("weighted"), record_bytes=weights, max_records=100_000, slots=8)
    assert covered(made) == ranges
    assert max(task.records for task in made.tasks) <= 100_000
    assert len(made.tasks) == 20


def test_costs_of_topics_count_where_bytes_do_not():
    ranges = [OffsetRange("heavy", 0, 0, 1_000), OffsetRange("light", 0, 0, 1_000)]
    weights = {TopicPartition("heavy", 0): 900.0, TopicPartition("light", 0): 100.0}
    costs = {"heavy": 2.0}
    made = plan(
        ranges, algorithm("weighted"), num_tasks=4, cost_per_record=costs, record_bytes=weights, max_records=1_000
    )
    assert made == plan(ranges, algorithm("weighted"), num_tasks=4, cost_per_record=costs)
    assert sum(task.weight for task in made.tasks) == 3_000
