"""What members are seen to process while they fall behind, by the times of their own commits."""

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


def test_a_growing_backlog_is_suspected_at_once_and_shown_by_the_next_interval():
    world = World()
    world.look(300, 300, 0.5)
    assert not world.look(780, 600, 0.5)
    assert world.seen.suspects == {"a"}
    assert set(world.look(780, 600, 0.5, every_s=2.0)) == {"a"}


def test_commits_that_are_too_near_to_each_other_are_no_interval():
    world = World()
    world.look(780, 600, 0.0)
    assert not world.look(780, 600, 0.0, every_s=1.0)
    assert "a" in world.look(780, 600, 0.0, every_s=1.0)


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


def test_the_clock_of_another_machine_begins_anew():
    world = World()
    world.look(780, 600, 0.0)
    assert not world.look(780, 600, 0.0, clock_s=1e6)
    assert not world.look(780, 600, 0.0, clock_s=1e6)
    assert "a" in world.look(780, 600, 0.0, clock_s=1e6)


def test_a_member_is_known_to_process_what_it_has_processed_for_a_while():
    """One interval may have been the easy part of its records."""
    world = World()
    for _ in range(3):
        world.look(780, 240, 0.5)
    assert world.seen.at_least["a"] == pytest.approx(240, rel=0.1)
    world.look(780, 600, 0.5, every_s=2.0)
    assert world.seen.at_least["a"] < 400
    for _ in range(4):
        world.look(780, 600, 0.5, every_s=2.0)
    assert world.seen.at_least["a"] == pytest.approx(600, rel=0.1)
    assert world.seen.at_least["a"] <= 600
