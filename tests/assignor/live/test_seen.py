"""What members are seen to process while they fall behind, by the times of their own commits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.live.seen import Seen
from loadwise.assignor.live.tuning import SeenTuning

READ_S = 5.0


class World:
    """Two members with two partitions each; the first one is looked at."""

    def __init__(self, seed=0):
        self.seen = Seen(SeenTuning())
        self.seen.begin(("a", "b"), np.array([0, 0, 1, 1], np.int32))
        self.end, self.done = np.zeros(4), np.zeros(4)
        self.read_s, self.noted_s = 0.0, 0.0
        self.rng = np.random.default_rng(seed)
        self.look(0.0, 0.0, 0.0, every_s=0.0)

    def look(self, arriving, processing, age_s, every_s=READ_S, *, clock_s=0.0, wrong=0.0):
        """A reading; so long ago ``a`` has committed and written a note."""
        self.read_s += every_s
        worked_s = self.read_s - age_s - self.noted_s
        self.noted_s += worked_s
        self.end[:2] += self.rng.poisson(arriving * every_s / 2, 2)
        self.done[:2] += processing * worked_s / 2
        end = self.end + np.array([wrong, 0, 0, 0])
        rate = np.full(4, arriving / 2)
        noted = {"a": round((self.noted_s + clock_s) * 1000)}
        return self.seen.saw(noted, end=end, done=self.done, rate=rate, now_ms=round(self.read_s * 1000))


@given(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=8), st.integers(0, 99))
def test_a_member_that_falls_behind_is_seen_exactly_however_old_its_commits_are(ages, seed):
    world = World(seed)
    found = [world.look(780, 600, age).get("a") for age in ages]
    assert found[0] is None, "one interval alone may be a pause"
    assert found[-1].per_s == pytest.approx(600, rel=0.01)
    assert found[-1].least_per_s < 600 < found[-1].most_per_s


@given(st.floats(100, 580), st.lists(st.floats(0.0, 1.0), min_size=4, max_size=8), st.integers(0, 99))
def test_a_member_that_keeps_up_shows_nothing(arriving, ages, seed):
    world = World(seed)
    assert not any(world.look(arriving, arriving, age) for age in ages)


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_a_pause_of_three_seconds_shows_nothing(part):
    """It lies in one interval, by the times of commits, and in the next one the member catches up."""
    world = World()
    for processing in (300, 300, 300 * (1 - 3 * part / READ_S), 600, 300, 300):
        assert not world.look(300, processing, 0.1)


def test_an_end_that_is_wrong_once_shows_nothing():
    world = World()
    for wrong in (0, 0, 50_000, 0, 0, -50_000, 0, 0):
        assert not world.look(300, 300, 0.3, wrong=wrong)


def test_a_partition_that_stands_while_its_member_goes_on_shows_nothing():
    """One record is tried again and again: that tells nothing of how fast the member is."""
    world = World()
    for _ in range(6):
        stands = world.done[0]
        assert not world.look(300, 300, 0.2)
        world.done[0] = stands


class Notes:
    """Readings without noise of member ``a`` with two partitions; ``b`` has none."""

    def __init__(self):
        self.seen = Seen(SeenTuning())
        self.seen.begin(("a", "b"), np.array([0, 0], np.int32))
        self.now_s = 0.0

    def read(self, noted_s, ends, done, *, after_s=5.0, rate=math.inf):
        """A reading ``after_s`` the last one; the time of the note is by the member's clock. Return its pace."""
        self.now_s += after_s
        arrays = {"end": np.array(ends, float), "done": np.array(done, float), "rate": np.full(2, rate)}
        noted = {"unknown": 1, "a": round(noted_s * 1000)}
        return self.seen.saw(noted, **arrays, now_ms=round(self.now_s * 1000)).get("a")

    def steps(self, *intervals, every_s=5.0, rate=math.inf):
        """Intervals in which so many records arrive in t-0 and so many are processed; return the pace after each."""
        arrived, processed = np.cumsum([(0, 0), *intervals], axis=0).T
        readings = enumerate(zip(arrived, processed, strict=True))
        return [
            self.read(every_s * number, (end, 0), (done, 0), after_s=every_s, rate=rate)
            for number, (end, done) in readings
        ][1:]


@pytest.mark.parametrize(
    ("arrived", "processed", "behind"),
    [
        (500, 433, False),  # three standard deviations are 67.1
        (500, 432, True),
        (10_000, 9500, False),  # a twentieth is 500
        (10_000, 9499, True),
        (50, 1, True),
        (50, 0, False),  # it stands still: nothing tells how fast it is
    ],
)
def test_a_member_falls_behind_if_clearly_more_arrives_in_two_intervals_than_it_processes(arrived, processed, behind):
    notes = Notes()
    first, second = notes.steps((arrived, processed), (arrived, processed))
    assert first is None
    assert (second is not None) is behind
    assert notes.seen.suspects == ({"a"} if behind else set())


@pytest.mark.parametrize(
    ("processed", "per_s", "error"),
    [(400, 80, 12), (10_000, 2000, 120), (4, 0.8, 1.2)],  # three standard deviations, or 0.3 s of records in hand
)
def test_a_pace_has_bounds(processed, per_s, error):
    pace = Notes().steps((20_000, processed), (20_000, processed))[-1]
    assert pace == pytest.approx((per_s, max(per_s - error, 0), per_s + error, 2))


def test_the_pace_is_that_of_all_intervals_in_which_the_backlog_grows_but_the_oldest():
    _, second, third, fourth, fifth = Notes().steps((900, 100), (900, 500), (900, 600), (100, 100), (900, 500))
    assert second.per_s == 100
    assert third.per_s == 110
    assert (second.intervals, third.intervals) == (2, 3)
    assert fourth is None, "it keeps up"
    assert fifth is None, "one interval may be a pause"


def test_a_rise_that_only_the_ends_show_is_suspected():
    notes = Notes()
    notes.steps((500, 500))
    assert notes.read(10, (1500, 0), (1000, 0), rate=100.0) is None
    assert notes.seen.suspects == {"a"}
    assert notes.read(15, (2000, 0), (1500, 0), rate=100.0) is None
    assert notes.seen.suspects == set()


def test_arrivals_are_those_between_readings_for_the_time_between_notes():
    """250 records/s: 125 in the half second between two readings, 500 in the 2 s between two notes."""
    notes = Notes()
    for number in range(3):
        pace = notes.read(2 * number, (125 * number, 0), (430 * number, 0), after_s=0.5)
    assert pace.per_s == 215


def test_partitions_that_are_not_read_do_not_count():
    notes = Notes()
    for number in range(3):
        pace = notes.read(5 * number, (900 * number, math.nan), (450 * number, 9000 * number))
    assert pace.per_s == 90


@pytest.mark.parametrize(("every_s", "found"), [(1.499, False), (1.5, True)])
def test_commits_within_a_second_and_a_half_are_one(every_s, found):
    assert (Notes().steps((900, 100), (900, 100), every_s=every_s)[-1] is not None) is found


def test_a_note_that_is_read_twice_is_one():
    notes = Notes()
    notes.steps((900, 100))
    assert notes.read(5, (1800, 0), (100, 0)) is None
    assert notes.seen.suspects == set()
    assert notes.read(10, (2700, 0), (200, 0)).per_s == 20


@pytest.mark.parametrize(
    ("noted_s", "at_least"),
    [(8.0, 1000 - 0.3 * 1000 / 8), (7.999, 0), (20.0, 400 - 3 * math.sqrt(8000) / 20), (20.001, 0), (-0.001, 0)],
)
def test_a_member_that_exceeds_a_rate_for_eight_seconds_of_its_clock_has_at_least_that_capacity(noted_s, at_least):
    """Unless the clock of the note is another one: it differs by more than 15 s from the leader's."""
    notes = Notes()
    notes.read(100, (0, 0), (0, 0))
    notes.read(100 + noted_s, (9000, 0), (6400, 1600))
    assert notes.seen.at_least["a"] == pytest.approx(at_least)
    notes.read(100 + noted_s, (9000, 0), (9000, 0))
    assert notes.seen.at_least == {}, "there is no new note"


def test_a_backlog_that_grew_counts_as_growing_for_six_seconds():
    notes = Notes()
    notes.steps((900, 100))
    grew_ms = round(notes.now_s * 1000)
    assert notes.seen.grew(["a", "b"], grew_ms + 5999).tolist() == [True, False]
    assert notes.seen.grew(["a", "b"], grew_ms + 6000).tolist() == [False, False]


def test_marks_in_another_unit_of_cost_do_not_count():
    notes = Notes()
    notes.steps((900, 100), (900, 100))
    notes.seen.begin_anew()
    assert notes.read(15, (2700, 0), (300, 0)) is None
    assert notes.read(20, (3600, 0), (400, 0)) is None
    assert notes.read(25, (4500, 0), (500, 0)).per_s == 20
