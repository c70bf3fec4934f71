"""What a member measures of itself between its polls."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.live.work import BusyTime

SECOND_NS = 1_000_000_000


def measured(rounds, *, records=100, work_s=0.1, idle_s=0.0):
    """What is known after some polls, each giving records that are worked on for so long."""
    busy, now_ns = BusyTime(), 0
    for _ in range(rounds):
        busy.polls(now_ns)
        now_ns += int(idle_s * SECOND_NS)
        busy.given({"t": records}, now_ns)
        now_ns += int(work_s * SECOND_NS)
    busy.polls(now_ns)
    return busy.per_s


def test_records_in_a_busy_second_however_long_it_waits_for_them():
    assert measured(200) == pytest.approx(1000)
    assert measured(400, idle_s=1.0) == pytest.approx(1000)


def test_polls_without_records_are_no_work():
    assert measured(1000, records=0) == 0.0


def test_what_was_long_ago_is_forgotten():
    busy, now_ns = BusyTime(), 0
    for work_s in [0.1] * 300 + [0.2] * 4000:
        busy.polls(now_ns)
        busy.given({"t": 100}, now_ns)
        now_ns += int(work_s * SECOND_NS)
    assert busy.per_s == pytest.approx(500, rel=0.01)


def at_work(sizes, *, per_record_s=0.001, per_poll_s=0.0, noise_s=0.0, seed=0):
    """A member that is given so many records by each poll, at a tenth of its time."""
    draw = random.Random(seed)
    busy, now_ns = BusyTime(), 0
    for records in sizes:
        busy.polls(now_ns)
        work_s = per_poll_s + per_record_s * records + (draw.expovariate(1 / noise_s) if noise_s else 0.0)
        now_ns += int(9 * work_s * SECOND_NS)
        busy.given({"t": records}, now_ns)
        now_ns += int(work_s * SECOND_NS)
    busy.polls(now_ns)
    return busy


@pytest.mark.parametrize("sizes", [[1, 2] * 2000, [10, 30] * 200, [100] * 40])
def test_twins_are_twins_whatever_their_polls_give(sizes):
    """A poll costs as much as three records: a member with polls of one record seems four times slower by the mean."""
    assert at_work(sizes, per_poll_s=0.003, noise_s=0.0005).per_s == pytest.approx(1000, rel=0.1)


def test_polls_of_one_size_tell_what_such_polls_cost():
    assert at_work([15] * 200, per_poll_s=0.003).per_s == pytest.approx(15 / 0.018)


@pytest.mark.parametrize("before", [4, 40, 4000])
def test_a_process_that_stood_still_is_not_slow(before):
    """It claims nothing until the second in which nothing went on is little, and then what it did before."""
    busy = at_work([10, 20] * (before // 2))
    now_ns = busy._sums.at_ns
    busy.given({"t": 10}, now_ns)
    now_ns += SECOND_NS
    busy.polls(now_ns)
    claims = []
    for number, records in enumerate([10, 20] * 5000):
        busy.given({"t": records}, now_ns)
        now_ns += records * SECOND_NS // 1000
        busy.polls(now_ns)
        if number < 100 or number % 10 == 9:
            claims.append(busy.per_s)
    assert claims[-1] == pytest.approx(1000, rel=0.05)
    assert [claim for claim in claims if claim and not 800 <= claim <= 1200] == []


def test_a_slow_member_knows_itself_after_some_full_polls():
    """120 records a second, by polls of 100."""
    busy = at_work([100] * 6, per_record_s=1 / 120, noise_s=0.01)
    assert busy.per_s == pytest.approx(120, rel=0.05)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 10**10), st.integers(0, 10**10)), max_size=40))
def test_it_claims_no_less_than_its_mean(polls):
    """A poll takes no less than no time."""
    busy, now_ns = BusyTime(), 0
    for records, idle_ns, work_ns in polls:
        busy.polls(now_ns)
        now_ns += idle_ns
        busy.given({"t": records}, now_ns)
        now_ns += work_ns
    busy.polls(now_ns)
    claimed = busy.per_s
    if claimed:
        worked = [(each[0], each[2] / SECOND_NS) for each in polls if each[0]]
        assert claimed >= 0.5 * min(records / max(seconds, 1e-9) for records, seconds in worked)


def test_a_program_that_polls_for_each_record_takes_little_memory():
    busy = at_work([1, 2, 3] * 20_000)
    assert len(busy._moment) < 10
    assert busy.per_s == pytest.approx(1000, rel=0.01)


def took(*polls):
    """What is known after polls at one moment, given as (how many, records of each topic, seconds of one)."""
    busy = BusyTime()
    for count, records, seconds in polls:
        for _ in range(count):
            busy.took(records, seconds, 0)
    return busy


@pytest.mark.parametrize(
    ("polls", "seconds", "per_s"),
    [(4, 0.2, 500), (3, 0.2, 0), (4, 0.125, 800), (4, 0.124, 0), (4, 10.0, 10)],
)
def test_four_polls_with_half_a_second_of_work_show_a_speed(polls, seconds, per_s):
    assert took((polls, {"t": 100}, seconds)).per_s == pytest.approx(per_s)


@pytest.mark.parametrize(
    ("polls", "topics"),
    [((10, 10), "ab"), ((9, 10), ""), ((17, 4), "ab"), ((18, 3), "")],
)
def test_twenty_polls_with_three_of_a_topic_show_times_of_topics(polls, topics):
    """One of the first topic comes later, when the others have faded by a little."""
    busy = took((polls[0], {"a": 100}, 0.1), (polls[1], {"b": 100}, 0.2))
    busy.took({"a": 100}, 0.1, SECOND_NS)
    found = busy.each_s
    assert found == pytest.approx({topic: {"a": 0.001, "b": 0.002}[topic] for topic in topics})


@pytest.mark.parametrize(("sizes", "records"), [([10, 30], 100), ([200, 400], 300), ([100, 200], 150)])
def test_a_speed_is_that_in_polls_of_a_hundred_records_or_in_the_larger_ones_that_a_member_gets(sizes, records):
    busy = at_work(sizes * 200, per_poll_s=0.01)
    assert busy.per_s == pytest.approx(records / (0.01 + 0.001 * records), rel=0.003)


@pytest.mark.parametrize("start_ns", [0, 10**18])
@pytest.mark.parametrize(("rounds", "idle_s", "known"), [(10, 3.2, True), (300, 3.9, True), (300, 6.1, False)])
def test_work_in_less_than_a_fiftieth_of_the_time_is_done_elsewhere(rounds, idle_s, known, start_ns):
    """A tenth of a second of work each time, by a clock that may start anywhere."""
    busy, now_ns = BusyTime(), start_ns
    for _ in range(rounds):
        busy.polls(now_ns)
        now_ns += int(idle_s * SECOND_NS)
        busy.given({"t": 100}, now_ns)
        now_ns += SECOND_NS // 10
    busy.polls(now_ns)
    assert busy.per_s == pytest.approx(1000 if known else 0)
