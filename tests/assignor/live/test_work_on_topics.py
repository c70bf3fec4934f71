"""How long a member works on a record of each topic."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.live.work import BusyTime

SECOND_NS = 1_000_000_000


def measured(polls, each_s, *, poll_s=0.0, uneven=0.0, pause_s=1.0, seed=0):
    """What is known after polls of so many records a topic, of which each takes so long."""
    draw = random.Random(seed)
    times, now_ns = BusyTime(), 0
    for counts in polls:
        work_s = poll_s + sum(count * each_s[topic] for topic, count in counts.items())
        now_ns += int(pause_s * SECOND_NS)
        times.took(counts, work_s * draw.uniform(1 - uneven, 1 + uneven), now_ns)
    return times.each_s


def drawn(polls, means, *, seed=0):
    draw = random.Random(seed)
    return [{topic: draw.randint(1, 2 * mean - 1) for topic, mean in means.items()} for _ in range(polls)]


@pytest.mark.parametrize("poll_s", [0.0, 0.02])
def test_each_topic_has_its_own_time_whatever_a_poll_costs(poll_s):
    polls = drawn(300, {"cheap": 100, "costly": 10, "rare": 2})
    each_s = {"cheap": 0.001, "costly": 0.01, "rare": 0.05}
    known = measured(polls, each_s, poll_s=poll_s, uneven=0.1)
    assert known == pytest.approx(each_s, rel=0.25)
    assert next(iter(known)) in {"cheap", "costly", "rare"}


def test_a_topic_in_a_poll_of_its_own_is_told_at_once():
    polls = [{"cheap": 50}, {"costly": 5}, {"cheap": 10}, {"costly": 20}] * 10
    assert measured(polls, {"cheap": 0.001, "costly": 0.01}) == pytest.approx({"cheap": 0.001, "costly": 0.01})


def test_polls_of_one_record_tell_what_such_a_poll_takes():
    polls = [{"cheap": 1}, {"costly": 1}] * 50
    known = measured(polls, {"cheap": 0.001, "costly": 0.01}, poll_s=0.0005, pause_s=0.05)
    assert known == pytest.approx({"cheap": 0.0015, "costly": 0.0105})


def test_what_has_taken_most_of_the_time_comes_first():
    polls = [{"cheap": 50}, {"costly": 50}, {"cheap": 10}, {"costly": 20}] * 10
    assert list(measured(polls, {"cheap": 0.001, "costly": 0.01})) == ["costly", "cheap"]


def test_topics_that_come_in_one_proportion_are_not_told_apart():
    assert measured([{"a": 10 * each, "b": each} for each in range(1, 200)], {"a": 0.001, "b": 0.01}) == {}


def test_a_single_topic_and_a_moment_tell_nothing():
    assert measured([{"a": 10}, {"a": 20}] * 100, {"a": 0.001}) == {}
    assert measured(drawn(10, {"a": 10, "b": 10}), {"a": 0.001, "b": 0.01}) == {}


def test_what_is_not_precise_is_not_claimed():
    """The rare topic is a hundredth of the work, and the time of a poll varies by half."""
    polls = drawn(60, {"a": 1000, "rare": 2})
    assert "rare" not in measured(polls, {"a": 0.001, "rare": 0.005}, uneven=0.5)


def test_what_was_hours_ago_is_forgotten():
    polls = drawn(200, {"a": 50, "b": 20})
    times = BusyTime()
    for start, cost in ((0, 0.01), (36_000, 0.001), (10_000_000, 0.005)):  # the last is after a pause of months
        for number, counts in enumerate(polls):
            times.took(counts, counts["a"] * 0.001 + counts["b"] * cost, (start + number) * SECOND_NS)
        assert times.each_s == pytest.approx({"a": 0.001, "b": cost}, rel=0.05)


def test_only_so_many_topics_are_measured():
    polls = [{f"t{number}": 1 + (number + turn) % 7} for turn in range(20) for number in range(60)]
    assert len(measured(polls, {f"t{number}": 0.01 for number in range(60)}, pause_s=0.05)) == 32


counts = st.dictionaries(st.sampled_from("abc"), st.integers(1, 500), min_size=1)


@given(st.lists(st.tuples(counts, st.floats(0, 1e4)), min_size=20, max_size=60))
def test_whatever_is_measured_times_are_above_0(polls):
    times = BusyTime()
    for number, (given_, busy_s) in enumerate(polls):
        times.took(given_, busy_s, number * SECOND_NS)
    assert all(0 < each < 1e6 for each in times.each_s.values())


@given(st.lists(counts, min_size=60, max_size=120), st.integers(0, 9))
def test_topics_of_one_cost_are_never_told_from_each_other_by_much(polls, seed):
    known = measured(polls, dict.fromkeys("abc", 0.001), uneven=0.1, seed=seed)
    assert all(each == pytest.approx(0.001, rel=0.5) for each in known.values())


@pytest.mark.parametrize("elsewhere", [False, True])
def test_work_that_is_done_elsewhere_says_nothing(elsewhere):
    """The application hands records to a pool and polls again at once."""
    busy, now_ns = BusyTime(), 0
    for records in drawn(400, {"cheap": 100, "costly": 10}):
        busy.polls(now_ns)
        now_ns += SECOND_NS // 10
        busy.given(records, now_ns)
        work_ns = records["cheap"] * 1_000_000 + records["costly"] * 10_000_000
        now_ns += work_ns // 1000 if elsewhere else work_ns
    busy.polls(now_ns)
    assert busy.each_s == ({} if elsewhere else pytest.approx({"cheap": 0.001, "costly": 0.01}, rel=0.01))


def test_topics_that_came_long_ago_make_room_for_new_ones():
    """As those of a pattern with a date in their names do."""
    times, now_ns = BusyTime(), 0
    for day in range(40):
        now_ns += 80_000 * SECOND_NS
        for poll in range(200):
            now_ns += SECOND_NS
            count = 5 + poll % 7
            counts = {f"clicks-{day}": count} if poll % 2 else {f"invoices-{day}": count}
            times.took(counts, count * (0.001 if poll % 2 else 0.01), now_ns)
    assert times.each_s == pytest.approx({"clicks-39": 0.001, "invoices-39": 0.01})


def test_more_topics_than_there_are_places_for_take_no_place_from_each_other():
    times, draw = BusyTime(), random.Random(1)
    for poll in range(2000):
        first, second = draw.randrange(32), draw.randrange(40)
        counts = {f"t{each}": draw.randint(1, 50) for each in {first, second}}
        times.took(counts, sum(count * 0.001 for count in counts.values()), poll * SECOND_NS // 8)
    assert len(times.each_s) == 32


STALLS = st.lists(st.tuples(st.integers(0, 299), st.floats(0.1, 3600)), min_size=1, max_size=4)


@given(STALLS, st.integers(0, 9), st.integers(1, 20))
def test_calls_that_stall_are_no_cost_of_records(stalls, seed, mean):
    """A broken connection, a lock or a pause of the machine; four of 300 polls, the first one among them or not."""
    each_s = {"cheap": 0.001, "costly": 0.01}
    stalled, draw, times, now_ns = dict(stalls), random.Random(seed), BusyTime(), 0
    for number, counts in enumerate(drawn(300, {"cheap": 5 * mean, "costly": mean}, seed=seed)):
        work_s = sum(count * each_s[topic] for topic, count in counts.items()) * draw.uniform(0.9, 1.1)
        now_ns += SECOND_NS // 4
        times.took(counts, work_s + stalled.get(number, 0.0), now_ns)
    known = times.each_s
    assert known == {topic: pytest.approx(each_s[topic], rel=1.0) for topic in known}


def test_a_stall_of_an_hour_does_not_even_end_the_measuring_for_the_time_being():
    times, draw = BusyTime(), random.Random(1)
    for number, counts in enumerate(drawn(400, {"cheap": 100, "costly": 10})):
        work_s = (counts["cheap"] * 0.001 + counts["costly"] * 0.01) * draw.uniform(0.9, 1.1)
        times.took(counts, work_s + 3600 * (number == 300), number * SECOND_NS)
        if number > 100:
            assert times.each_s == pytest.approx({"cheap": 0.001, "costly": 0.01}, rel=0.2)


@pytest.mark.parametrize("every", [2, 10, 40])
def test_records_that_have_come_to_cost_ten_times_as_much_are_no_stall(every):
    """However rarely the topic comes: what it has cost before is some minutes ago."""
    times, draw, cost, now_ns = BusyTime(), random.Random(1), 0.001, 0
    for number in range(600 * every):
        if number == 200 * every:
            cost = 0.01
        now_ns += SECOND_NS // every
        counts = {"usual": draw.randint(1, 40), **({"changing": draw.randint(1, 20)} if number % every == 0 else {})}
        work_s = counts["usual"] * 0.001 + counts.get("changing", 0) * cost
        times.took(counts, work_s * draw.uniform(0.9, 1.1), now_ns)
    assert times.each_s["changing"] == pytest.approx(0.01, rel=0.2)
    assert times.each_s["usual"] == pytest.approx(0.001, rel=0.1)


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_records_of_which_some_cost_much_more_count_by_their_mean(share):
    """Five at a time; one of them may take fifty times as long as another."""
    times, draw = BusyTime(), random.Random(2)
    for number in range(1500):
        counts = {"a" if number % 2 else "b": 5}
        slow = sum(draw.random() < share for _ in range(5)) if number % 2 == 0 else 0
        times.took(counts, 0.005 + slow * 0.05, number * SECOND_NS)
    assert times.each_s["b"] == pytest.approx(0.001 + share * 0.05, rel=0.35)


@pytest.mark.parametrize("seed", range(6))
def test_what_large_polls_take_is_known_although_what_a_poll_itself_takes_is_not(seed):
    rng = np.random.default_rng(seed)
    times = BusyTime()
    for second in range(120):
        cheap, costly = rng.poisson((330, 33)).tolist()
        busy_s = (0.001 * cheap + 0.01 * costly) * rng.uniform(0.9, 1.1)
        times.took({"cheap": cheap, "costly": costly}, busy_s, second * SECOND_NS)
    found = times.each_s
    assert 330 * found["cheap"] + 33 * found["costly"] == pytest.approx(0.66, rel=0.02)
    assert found["costly"] / found["cheap"] == pytest.approx(10, rel=0.25)


@pytest.mark.parametrize("seed", range(8))
def test_the_usual_topic_is_known_although_polls_are_of_one_size(seed):
    """A call for at most 100 records gives such polls: the usual topic's records tell little that the poll does not."""
    rng = np.random.default_rng(seed)
    times = BusyTime()
    for number in range(150):
        records, costly = rng.integers(95, 101), rng.poisson(17)
        busy_s = 0.0005 * (records - costly) + 0.005 * costly + rng.exponential(0.01)
        times.took({"usual": int(records - costly), "costly": int(costly)}, busy_s, number * SECOND_NS // 4)
    found = times.each_s
    assert found["costly"] / found["usual"] == pytest.approx(8.3, rel=0.3), "the usual topic has the time of the poll"


@pytest.mark.parametrize("seed", range(8))
def test_a_topic_whose_records_cost_next_to_nothing_is_known(seed):
    """Its time is negative in every other run: a record of a large poll takes a hundredth of the poll's own time."""
    rng = np.random.default_rng(seed)
    times = BusyTime()
    for number in range(150):
        cheap, costly = int(rng.poisson(80)), int(rng.poisson(17))
        busy_s = 0.02 + 1e-6 * cheap + 0.005 * costly + rng.exponential(0.001)
        times.took({"cheap": cheap, "costly": costly}, busy_s, number * SECOND_NS // 4)
    assert times.each_s == pytest.approx({"cheap": 0.0002, "costly": 0.0052}, rel=0.15)


@pytest.mark.parametrize("seed", range(8))
def test_two_topics_in_nearly_one_proportion_are_not_told_apart_by_a_third(seed):
    """The time of one of them is negative by chance. The other does not take the time of both therefore."""
    rng = np.random.default_rng(seed)
    times = BusyTime()
    for number in range(150):
        a, c = int(rng.poisson(40)) + 1, int(rng.poisson(17))
        busy_s = 0.001 * 3 * a + 0.005 * c + rng.exponential(0.01)
        times.took({"a": a, "b": 2 * a + int(rng.integers(2)), "c": c}, busy_s, number * SECOND_NS // 4)
    assert times.each_s.keys() <= {"c"}
