"""How many members a scaler should give a group: never too few for its partitions, and without flapping."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.live.scaling import MembersWanted, members_that_do
from loadwise.assignor.live.tuning import ScalingTuning

SPEED, HEALTHY = 100.0, 0.7
loads = st.lists(st.sampled_from([0.0, 1.0, 10.0, 35.0, 36.0, 69.0, 70.0]), min_size=1, max_size=5).map(np.array)


def of(count: int) -> np.ndarray:
    return np.full(count, SPEED)


@given(loads=loads, members=st.integers(1, 8))
def test_it_is_at_most_one_more_than_the_fewest_that_can_be(loads: np.ndarray, members: int) -> None:
    """Beside every assignment; largest first is within 4/3 of the lowest, so of five one is spared."""
    wanted = members_that_do(loads, of(members), HEALTHY)
    busy = loads[loads > 0]
    assert 1 <= wanted <= max(len(busy), 1)
    fewest = next(
        count
        for count in range(1, len(loads) + 1)
        if any(
            max(loads[np.array(owner) == member].sum() for member in range(count)) <= HEALTHY * SPEED + 1e-6
            for owner in product(range(count), repeat=len(loads))
        )
    )
    assert fewest <= wanted <= fewest + 1


@pytest.mark.parametrize(
    ("load", "per_s", "wanted"),
    [
        ([], [100.0], 1),
        ([0.0, 0.0], [100.0], 1),
        ([10.0] * 70, of(3), 10),
        ([10.0] * 71, of(3), 11),
        ([500.0, 10.0, 10.0], of(3), 2),  # the heavy one takes a member alone, and falls behind there
        ([36.0] * 4, of(4), 4),  # two of them are too much for one, although the mean is not
        ([35.0] * 4, of(4), 2),
        ([10.0] * 70, [100.0, 100.0, 400.0], 7),  # the fast one stands for four
        ([10.0] * 70, [100.0, 100.0, 50.0], 11),
    ],
)
def test_members_like_the_present_ones_are_counted(load: list[float], per_s: list[float], wanted: int) -> None:
    assert members_that_do(np.array(load), np.array(per_s), HEALTHY) == wanted


def played(loads: list[float], *, members: int = 3, step_s: float = 5.0, follows: bool = False) -> list[int]:
    """What is wanted after each reading of 60 equal partitions; ``follows``: a scaler does what is wanted."""
    wanted, answers = MembersWanted(ScalingTuning()), []
    for number, load in enumerate(loads):
        answers.append(wanted.update(np.full(60, load / 60), of(members), HEALTHY, round(number * step_s * 1000)))
        members = answers[-1] if follows else members
    return answers


def test_more_are_wanted_as_soon_as_a_second_reading_shows_it() -> None:
    assert played([200.0, 500.0, 500.0]) == [3, 3, 8]


def test_a_burst_wants_nothing() -> None:
    assert set(played([200.0] * 10 + [900.0] + [200.0] * 10)) == {3}


def test_fewer_are_wanted_after_five_calm_minutes() -> None:
    answers = played([60.0] * 70)
    assert answers[:60] == [3] * 60
    assert answers[61:] == [1] * 9


def test_what_was_needed_within_five_minutes_is_kept() -> None:
    answers = played([60.0] * 80 + [200.0] + [60.0] * 70)
    assert set(answers[61:80]) == {1}
    assert set(answers[80:140]) == {3}
    assert answers[-1] == 1


def test_near_a_boundary_it_does_not_flap() -> None:
    """Three members do up to 210/s, two up to 140/s, and two would be taken for enough up to 126/s."""
    rng = np.random.default_rng(1)
    assert set(played((140.0 + rng.normal(0, 4, 300)).tolist(), follows=True)[20:]) == {3}


def test_over_a_day_the_group_is_changed_seldom_and_suffices() -> None:
    day = [400 + 350 * math.sin(2 * math.pi * minute / 1440) for minute in range(1440)]
    rng = np.random.default_rng(2)
    answers = np.array(played((day * rng.normal(1, 0.03, 1440)).tolist(), step_s=60.0, follows=True))
    assert np.count_nonzero(np.diff(answers)) <= 26
    assert (answers * SPEED > day)[1:].all()


def test_after_a_long_time_without_readings_it_begins_anew() -> None:
    wanted = MembersWanted(ScalingTuning())
    for number in range(70):
        answer = wanted.update(np.full(60, 1.0), of(3), HEALTHY, number * 5000)
    assert answer == 1
    assert wanted.update(np.full(60, 1.0), of(3), HEALTHY, 1_000_000) == 3
