"""Cuts that follow the weight along a partition: exact sums over every offset are what they are checked against."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.planning.density import Density, even
from loadwise.spark_source.planning.plan import plan
from loadwise.spark_source.task import OffsetRange

DENSITIES = st.builds(
    lambda start, parts: Density(
        tuple(accumulate((size for size, _ in parts), initial=start)), tuple(weight for _, weight in parts)
    ),
    st.integers(0, 1000),
    st.lists(st.tuples(st.integers(1, 40), st.sampled_from([0.0, 1.0, 3.0, 50.0])), min_size=1, max_size=8),
).filter(lambda density: density.mean > 0)


def weight_of(density, start, end):
    """By every single offset."""
    parts = list(zip(density.edges, density.edges[1:], density.weights, strict=False))
    return sum(weight for at in range(start, end) for first, last, weight in parts if first <= at < last)


@given(DENSITIES)
def test_the_mean_is_that_of_all_offsets(density):
    assert density.mean * (density.edges[-1] - density.edges[0]) == pytest.approx(
        weight_of(density, density.edges[0], density.edges[-1])
    )


@given(DENSITIES, st.floats(0, 1))
def test_before_a_moved_cut_lies_the_share_of_the_weight_that_was_meant(density, share):
    offset = density.edges[0] + round(share * (density.edges[-1] - density.edges[0]))
    wanted = density.mean * (offset - density.edges[0])
    assert weight_of(density, density.edges[0], density.moved(offset)) == pytest.approx(
        wanted, abs=max(density.weights)
    )


@given(DENSITIES)
def test_cuts_keep_their_order_and_the_edges_stay(density):
    moved = [density.moved(offset) for offset in range(density.edges[0], density.edges[-1] + 1)]
    assert moved == sorted(moved)
    assert (moved[0], moved[-1]) == (density.edges[0], density.edges[-1])


@given(st.lists(DENSITIES, min_size=1, max_size=4), st.integers(1, 6), st.sampled_from(["weighted", "range", "sticky"]))
def test_every_offset_is_still_in_one_task_and_tasks_are_as_even_as_planned(densities, tasks, name):
    ranges = [OffsetRange("t", number, each.edges[0], each.edges[-1]) for number, each in enumerate(densities)]
    by_place = {TopicPartition("t", number): each for number, each in enumerate(densities)}
    sizes = {place: each.mean for place, each in by_place.items()}
    planned = plan(ranges, algorithm(name), num_tasks=tasks, record_bytes=sizes)
    found = even(planned, by_place)
    read = sorted(
        (item.partition, offset)
        for task in found.tasks
        for item in task.ranges
        for offset in range(item.start, item.end)
    )
    assert read == [(item.partition, offset) for item in ranges for offset in range(item.start, item.end)]
    heaviest = max(max(each.weights) for each in densities)
    for before, after in zip(planned.tasks, found.tasks, strict=True):
        weight = sum(weight_of(densities[item.partition], item.start, item.end) for item in after.ranges)
        assert weight == pytest.approx(before.weight, abs=2 * heaviest * len(before.ranges) + 1e-6)
