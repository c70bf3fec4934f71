"""What a member measures of itself between its polls."""

import pytest

from loadwise.assignor.live.busy import BusyTime

SECOND_NS = 1_000_000_000


def measured(rounds, *, records=100, work_s=0.1, idle_s=0.0):
    """What is known after some polls, each giving records that are worked on for so long."""
    busy, now_ns = BusyTime(), 0
    for _ in range(rounds):
        busy.polls(now_ns)
        now_ns += int(idle_s * SECOND_NS)
        busy.given(records, now_ns)
        now_ns += int(work_s * SECOND_NS)
    busy.polls(now_ns)
    return busy.per_s


def test_records_in_a_busy_second_however_long_it_waits_for_them():
    assert measured(200) == pytest.approx(1000)
    assert measured(400, idle_s=1.0) == pytest.approx(1000)


def test_a_moment_says_nothing():
    assert measured(2) == 0.0


def test_work_that_is_done_elsewhere_says_nothing():
    """The application hands records to a pool and polls again at once."""
    assert measured(10_000, work_s=0.0005, idle_s=0.1) == 0.0


def test_polls_without_records_are_no_work():
    assert measured(1000, records=0) == 0.0


def test_what_was_long_ago_is_forgotten():
    busy, now_ns = BusyTime(), 0
    for work_s in [0.1] * 300 + [0.2] * 4000:
        busy.polls(now_ns)
        busy.given(100, now_ns)
        now_ns += int(work_s * SECOND_NS)
    assert busy.per_s == pytest.approx(500, rel=0.01)
