"""What the group has processed and what waits, one reading after the other."""

import math

import numpy as np
import pytest

from loadwise.assignor.live.backlog import Backlog, Progress, progressed, waited
from loadwise.assignor.live.reading import Reading


def reading(at_ms, end, lag, *, committed=1.0, age_s=math.inf):
    each = (np.array([value], float) for value in (end, lag, committed, age_s))
    return Reading(at_ms, *each)


def after(*positions):
    """What is known after readings of one partition, given as (end, lag) or as a whole `Reading`."""
    known, went_on = Progress().spread(1), []
    for number, position in enumerate(positions):
        each = position if isinstance(position, Reading) else reading(5000 * number, *position)
        known, more = progressed(known, each)
        went_on.append(float(more[0]))
    return known, went_on


def test_what_is_committed_between_two_readings_was_processed():
    known, went_on = after((100, 20), (150, 10), (200, 60))
    assert went_on == [0.0, 60.0, 0.0]
    assert known.processed[0] == 60.0
    assert known.went_on_ms[0] == 5000


def test_a_position_that_falls_is_believed_when_the_next_reading_has_it_too():
    known, went_on = after((1000, 0), (0, 0), (1100, 0))
    assert went_on == [0.0, 0.0, 100.0], "one reading was wrong"
    known, went_on = after((1000, 0), (50, 0), (70, 0), (100, 0))
    assert known.position[0] == 100.0, "the topic was made again"
    assert went_on == [0.0, 0.0, 0.0, 30.0]


def test_who_stands_beyond_where_it_stood_has_gone_on_from_there():
    _, went_on = after((1000, 0), (0, 0), (0, 0), (1010, 0))
    assert went_on == [0.0, 0.0, 0.0, 10.0]


def test_a_partition_that_is_not_read_keeps_what_is_known_of_it():
    known, _ = after((100, 20), (math.nan, math.nan))
    assert known.position[0] == 80.0


def test_the_first_commit_is_no_progress():
    _, went_on = after(reading(0, 100, 100, committed=0.0), reading(5000, 100, 10), reading(10_000, 100, 4))
    assert went_on == [0.0, 0.0, 6.0]


def test_lag_that_a_commit_explains_is_no_backlog_and_of_two_readings_the_smaller_one_counts():
    rate = np.array([10.0])
    known = Backlog().spread(1)
    for lag, waiting in ((50, 0.0), (160, 0.0), (110, 50.0), (1e6, 50.0), (60, 0.0)):
        known = waited(known, reading(0, 1e7, lag), rate, 6.0)
        assert known.waiting[0] == pytest.approx(waiting)
    assert known.lag[0] == 60.0
