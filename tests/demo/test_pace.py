import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.demo.pace import TokenBucket


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 200)), max_size=40))
def test_never_more_than_the_rate_and_one_burst(steps: list[tuple[float, int]]) -> None:
    bucket = TokenBucket(rate_per_s=100, burst=20, now_s=0)
    now_s, granted = 0.0, 0
    for pause_s, wanted in steps:
        now_s += pause_s
        take = min(wanted, max(0, bucket.available(now_s)))
        assert take <= 20
        bucket.take(take)
        granted += take
        assert granted <= 100 * now_s + 1e-6


def test_a_steady_taker_gets_the_whole_rate() -> None:
    bucket = TokenBucket(rate_per_s=1000, burst=50, now_s=0)
    granted = 0
    for step in range(1, 1001):
        now = bucket.available(step * 0.02)
        bucket.take(now)
        granted += now
    assert granted == pytest.approx(20_000, abs=2)


def test_waiting_as_told_is_enough_and_what_was_overdrawn_is_waited_for() -> None:
    bucket = TokenBucket(rate_per_s=100, burst=20, now_s=0)
    assert bucket.wait_s(10) == pytest.approx(0.1)
    assert bucket.available(0.1 + 1e-9) == 10
    bucket.take(30)
    assert bucket.wait_s(10) == pytest.approx(0.3)
    assert bucket.wait_s(1000) == pytest.approx(0.4), "never for more than a burst holds"
    bucket.available(10)
    assert bucket.wait_s(20) == 0
