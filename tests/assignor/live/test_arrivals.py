"""Rates against numpy's random arrivals: a shift is seen within three readings, chance is not."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.live.arrivals import Arrivals, arrived, lasting, prior
from loadwise.assignor.live.tuning import ArrivalsTuning

STEP_MS = 5_000


class Rates:
    """What is known of some partitions, one reading after the other."""

    def __init__(self, partitions):
        self.known = Arrivals().spread(partitions)

    def prior(self, ends, at_ms):
        self.known = prior(self.known, ends, at_ms)

    def update(self, ends, now_ms):
        self.known = arrived(self.known.spread(len(ends)), ends, now_ms, ArrivalsTuning())


def rates_of(counts, *, step_ms=STEP_MS):
    """The estimates after each reading, where float64[n, P] ``counts`` arrived between two of them."""
    rates = Rates(counts.shape[1])
    end = np.zeros(counts.shape[1])
    rates.update(end, 0)
    seen = []
    for number, count in enumerate(counts, 1):
        end = end + count
        rates.update(end, number * step_ms)
        seen.append(rates.known.rate)
    return np.array(seen)


@pytest.mark.parametrize(("rate", "seconds"), [(0.5, 60), (1000.0, 5)])
def test_noise_is_averaged_over_a_minute_or_less_where_much_comes(rate, seconds):
    rng = np.random.default_rng(1)
    seen = rates_of(rng.poisson(rate * 5, (200, 50)))[20:]
    assert seen.std() < 1.3 * math.sqrt(rate / seconds)


@pytest.mark.parametrize(("before", "after"), [(100, 450), (450, 100), (0, 50), (800, 1000)])
def test_a_shift_is_seen_within_fifteen_seconds(before, after):
    rng = np.random.default_rng(2)
    counts = np.concatenate([rng.poisson(before * 5, (30, 40)), rng.poisson(after * 5, (3, 40))])
    newest = rates_of(counts)[-1]
    assert np.abs(newest - after).max() < 0.2 * after


def test_a_shift_in_the_middle_of_an_interval_is_seen_too():
    rng = np.random.default_rng(3)
    halfway = rng.poisson(100 * 2.5, (1, 20)) + rng.poisson(400 * 2.5, (1, 20))
    newest = rates_of(np.concatenate([rng.poisson(500, (20, 20)), halfway, rng.poisson(2000, (2, 20))]))[-1]
    assert np.abs(newest - 400).max() < 60


def test_the_log_of_the_last_minute_stands_in_for_readings():
    rates = Rates(2)
    rates.prior(np.array([1000.0, math.nan]), -60_000)
    rates.update(np.array([7000.0, 50.0]), 0)
    assert rates.known.rate[0] == pytest.approx(100.0)
    assert math.isnan(rates.known.rate[1])
    assert not rates.known.measured


@given(
    st.lists(
        st.lists(st.one_of(st.just(math.nan), st.floats(0, 1e15)), min_size=2, max_size=2), min_size=1, max_size=20
    ),
    st.lists(st.integers(-1000, 20_000), min_size=20, max_size=20),
)
def test_whatever_is_read_rates_are_numbers(readings, steps):
    rates = Rates(2)
    now_ms = 0
    for reading, step_ms in zip(readings, steps, strict=False):
        now_ms += step_ms
        rates.update(np.array(reading), now_ms)
        seen = rates.known.rate
        assert not np.isinf(seen).any()
        assert not (seen < 0).any()


def test_a_partition_that_is_read_later_gets_a_rate_of_its_own():
    rates = Rates(1)
    rates.update(np.array([0.0]), 0)
    rates.update(np.array([50.0, 1_000_000.0]), STEP_MS)
    assert math.isnan(rates.known.rate[1])
    rates.update(np.array([100.0, 1_000_500.0]), 2 * STEP_MS)
    assert rates.known.rate == pytest.approx([10.0, 100.0])


def test_rates_from_before_a_long_pause_do_not_confirm_those_of_now():
    """Somebody else has led the group for hours. Ten times as much arrives now, and the log tells it at once."""
    rates = Rates(2)
    for second in range(0, 60, 5):
        rates.update(np.array([100.0, 100.0]) * second, second * 1000)
    hours_later_ms = 3 * 3_600_000
    rates.prior(np.array([1_000_000.0, math.nan]), hours_later_ms - 60_000)
    rates.update(np.array([1_060_000.0, 1_080_000.0]), hours_later_ms)
    assert rates.known.confirmed[0] == pytest.approx(1000)
    assert rates.known.confirmed[1] == pytest.approx(100), "the log tells nothing of it"


@pytest.mark.parametrize("step_ms", [150_000, 600_000])
def test_rates_are_known_where_readings_come_rarely(step_ms):
    rng = np.random.default_rng(4)
    seen = rates_of(rng.poisson(20 * step_ms / 1000, (4, 50)), step_ms=step_ms)
    assert seen.mean() == pytest.approx(20, rel=0.05)


def read(*readings):
    """What is known after readings given as (seconds, the end of each partition)."""
    rates = Rates(len(readings[0]) - 1)
    for seconds, *ends in readings:
        rates.update(np.array(ends, float), round(seconds * 1000))
    return rates.known


@pytest.mark.parametrize(
    ("readings", "rate"),
    [
        # Fast enough for the newest readings that are 4 s apart:
        ([(0, 0), (5, 1000), (9, 3000)], 500),
        ([(0, 0), (5, 1000), (8.9, 3000)], 3000 / 8.9),
        ([(0, 0), (5, 1000), (5.5, 1500)], 1500 / 5.5),
        ([(0, 0), (0.5, 500)], 1000),
        # ... or for those between which 300 records came, in the mean of the partitions that get some:
        ([(0, 0), (5, 1000), (10, 1300)], 60),
        ([(0, 0), (5, 1000), (10, 1299)], 129.9),
        ([(0, 0, 0), (5, 1000, 50), (10, 1550, 50)], 110),
        ([(0, 0, 0), (5, 1000, 50), (10, 1549, 51)], 154.9),
        ([(0, 0, 0), (5, 1000, 50), (10, 1549, 101)], 109.8),
        # A reading that lacks the partition:
        ([(0, 0), (5, math.nan), (10, 1000), (15, math.nan)], 100),
        ([(0, 0), (5, 1000), (10, math.nan), (15, 3000)], 200),
        # An end that falls counts once it is confirmed:
        ([(0, 0), (5, 1000), (10, 2000), (15, 2000)], 100),
        ([(0, 5000), (5, 6000), (10, 0), (15, 7500)], 150),
        ([(0, 5000), (5, 6000), (10, 0), (15, 0), (20, 0)], 0),
        ([(0, 5000), (5, 6000), (10, 100), (15, 600), (20, 1100)], 100),
        ([(0, 5000), (5, 6000), (10, 600), (15, 100), (20, 600), (25, 1100)], 100),  # the first of them was wrong too
        ([(0, 1000), (5, 2000), (10, 9000), (15, 4000)], 200),
        ([(0, 1000), (5, 2000), (10, 9000), (15, 2000)], 1000 / 15),
        # A reading of the past or of the same time:
        ([(0, 0), (5, 1000), (5, 2000), (4, 3000)], 200),
    ],
)
def test_a_rate_is_the_mean_of_the_newest_readings_that_suffice(readings, rate):
    assert read(*readings).rate[0] == pytest.approx(rate)


@pytest.mark.parametrize(
    ("seconds", "rate"),
    [(60, 10), (65, 600 / 60), (180, 10), (185, 10)],
)
def test_slow_rates_are_those_of_thirteen_readings(seconds, rate):
    """Ten records/s for that long, after one reading that shows a hundred times as many."""
    readings = [(-5, -5000), *((second, 10 * second) for second in range(0, seconds + 1, 5))]
    assert read(*readings).rate[0] == pytest.approx(rate)


@pytest.mark.parametrize(("pause_s", "rate"), [(175, 1000 / 180), (175.1, 0)])
def test_readings_are_kept_for_three_minutes(pause_s, rate):
    assert read((0, 0), (5, 1000), (5 + pause_s, 1000)).rate[0] == pytest.approx(rate)


def test_rates_are_measured_from_the_second_reading_on():
    assert [read(*[(5 * number, 0) for number in range(count)]).measured for count in (1, 2, 3)] == [False, True, True]


@pytest.mark.parametrize(
    ("rises", "confirmed"),
    [
        ([200], 200),  # by a factor of two
        ([201], 100),
        ([199, 900], 199),
        ([900, 900], 900),
        ([900, 100], 100),
    ],
)
def test_a_rate_that_more_than_doubles_is_confirmed_by_the_next_reading(rises, confirmed):
    ends = np.cumsum([0, 1000, *(10 * rate for rate in rises)])
    readings = [(10 * number, end) for number, end in enumerate(ends)]
    assert read(*readings).confirmed[0] == pytest.approx(confirmed)


@pytest.mark.parametrize(
    ("steady", "after_s", "rate", "fell"),
    [
        (100, 2, 40, True),
        (100, 2, 50, False),  # less than half of what the window shows
        (100, 2, 900, False),
        (49, 2, 0, False),  # of 98 records all may be late
        (49, 5, 0, True),
    ],
)
def test_a_rate_lasts_unless_the_newest_interval_shows_less_than_half(steady, after_s, rate, fell):
    end = 30 * steady
    found = read((0, 0), (10, 10 * steady), (20, 20 * steady), (30, end), (30 + after_s, end + after_s * rate))
    assert found.confirmed[0] > rate or rate > steady
    assert lasting(found, ArrivalsTuning())[0] == pytest.approx(rate if fell else found.confirmed[0])


@pytest.mark.parametrize(("at_s", "counts"), [(9, False), (10, False), (11, True)])
def test_ends_from_the_log_count_unless_they_are_older_than_the_last_reading(at_s, counts):
    rates = Rates(1)
    for seconds in (0, 10):
        rates.update(np.array([0.0]), seconds * 1000)
    rates.prior(np.array([5000.0]), at_s * 1000)
    rates.update(np.array([6000.0]), 20_000)
    assert rates.known.measured is not counts
    assert rates.known.rate[0] == pytest.approx(1000 / 9 if counts else 600)
