"""The lag that is kept: what counts, how old it is, and what is not forgotten."""

import math

import pytest

from loadwise.assignor.load.lag import LagLoad, PartitionOffsets, lag_of


@pytest.mark.parametrize(
    ("offsets", "from_beginning", "lag"),
    [
        (PartitionOffsets(0, 10, 4), False, 6),
        (PartitionOffsets(5, 10, None), True, 5),
        (PartitionOffsets(5, 10, None), False, 0),
        (PartitionOffsets(7, 10, 4), True, 3),  # retention has removed what was committed
        (PartitionOffsets(0, 10, 12), True, 0),  # the topic was made again
        (PartitionOffsets(0, 0, None), True, 0),
    ],
)
def test_lag(offsets, from_beginning, lag):
    assert lag_of(offsets, from_beginning=from_beginning) == lag


def test_the_newest_reading_its_age_and_what_it_lacks():
    now = 100.0
    load = LagLoad(["t"], auto_offset_reset="earliest", interval_s=10.0, clock=lambda: now)
    assert load.snapshot(["t"]) is None

    load.update({("t", 0): PartitionOffsets(0, 10, None), ("t", 2): PartitionOffsets(0, 7, 0)})
    first = load.snapshot(["t"]).load["t"]
    assert (first[0], math.isnan(first[1]), first[2]) == (10, True, 7)

    now = 105.0
    load.update({("t", 1): PartitionOffsets(0, 5, 0), ("t", 3): PartitionOffsets(0, 1, 0)})
    now = 112.0
    seen = load.snapshot(["t"])
    assert list(seen.load["t"]) == [10, 5, 7, 1], "a partition that could not be read keeps what it had"
    assert (seen.unit, seen.age_s, seen.stale) == ("records", 7.0, False)
    assert math.isnan(first[1]), "a snapshot that was handed out does not change"

    now = 105.0 + 60.0
    assert not load.snapshot(["t"]).stale
    now += 0.1
    assert load.snapshot(["t"]).stale


def test_topics_that_the_group_reads_are_read_from_then_on():
    load = LagLoad(["a"])
    load.snapshot(["a", "b"])
    assert load.topics == {"a", "b"}


def test_consumers_start_at_the_end_unless_told_otherwise():
    load = LagLoad(["t"])
    load.update({("t", 0): PartitionOffsets(0, 10, None)})
    assert list(load.snapshot(["t"]).load["t"]) == [0]
