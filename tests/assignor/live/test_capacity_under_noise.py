"""What is learned about members where commits come in steps, measurements are noisy, and work may be done elsewhere."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loadwise.assignor.live.evidence import CapacityEstimates
from loadwise.assignor.live.work import BusyTime

STEP_MS = 5_000
SPEED = 1000.0
SECOND_NS = 1_000_000_000

commits = st.lists(st.tuples(st.floats(0.2, 6.0), st.floats(0, 1)), min_size=2, max_size=8)
"""For each member the seconds between two commits, and the part of them that has passed when it is watched."""


def committed(interval_s, phase, speed, now_ms):
    """What a busy member has committed of what it has processed, since it was watched."""
    first = -phase * interval_s
    steps = np.floor((now_ms / 1000 - first) / interval_s)
    return max(first + steps * interval_s, 0.0) * speed


@given(commits, st.integers(1, 40))
def test_identical_machines_with_a_backlog_come_out_as_identical_however_they_commit(members, readings):
    names = tuple(f"m{number}" for number in range(len(members)))
    estimates = CapacityEstimates(slack_s=6.0)
    estimates.watch(names, 0)
    for number in range(readings):
        now_ms = (1 + number) * STEP_MS
        processed = np.array([committed(*member, SPEED, now_ms) for member in members])
        estimates.update(processed, np.ones(len(names), bool), now_ms)
        capacities = estimates.of(dict.fromkeys(names, 0.0), now_ms)
        assert len(set(capacities.per_s.tolist())) == 1


@given(
    commits,
    st.lists(st.floats(0.9, 1.1), min_size=8, max_size=8),
    st.lists(st.booleans(), min_size=8, max_size=8),
    st.floats(0.1, 0.97),
)
@example(
    [(6.0, 0.0), *[(1.0, 0.0)] * 4],
    [1.0, 1.0, 0.9375, 1.0, 0.9375, 1.0, 1.0, 1.0],
    [False, False, True, False, True, False, False, False],
    0.6,
)
@example(
    [(4.375, 0.0), (1.0, 0.0), (4.375, 0.0)],
    [1.0, 1.09765625, *[1.0] * 6],
    [False, True, *[False] * 6],
    0.5,
)
def test_identical_machines_of_which_some_have_measured_themselves_come_out_as_identical(members, noise, told, used):
    """A standard error of a twentieth; some have a backlog, and others are used to some part of what they can do."""
    names = tuple(f"m{number}" for number in range(len(members)))
    lagging = np.array([number % 2 == 0 for number in range(len(members))])
    estimates = CapacityEstimates(slack_s=6.0)
    estimates.watch(names, 0)
    for number in range(20):
        now_ms = (1 + number) * STEP_MS
        busy = np.where(lagging, SPEED, used * SPEED)
        each = zip(members, busy.tolist(), strict=True)
        processed = np.array([committed(*member, speed, now_ms) for member, speed in each])
        for name, factor, tells in zip(names, noise, told, strict=False):
            if tells:
                estimates.measured(name, SPEED * factor, now_ms)
        estimates.update(processed, lagging, now_ms)
        assert len(set(estimates.of(dict.fromkeys(names, 0.0), now_ms).per_s.tolist())) == 1


@given(
    st.lists(st.tuples(st.floats(0, 1000), st.booleans()), min_size=1, max_size=40),
    st.lists(st.floats(0, 10), min_size=40, max_size=40),
)
def test_a_member_that_never_had_a_backlog_is_never_taken_for_slower_than_the_median(others, starved):
    """It gets next to nothing, whatever the others do, and so it must not get less."""
    names = ("a", "b", "starved")
    estimates = CapacityEstimates()
    estimates.watch(names, 0)
    processed = np.zeros(3)
    for number, (speed, lags) in enumerate(others):
        processed += 5 * np.array([speed, 0.8 * speed, starved[number]])
        estimates.update(processed.copy(), np.array([lags, lags, False]), number * STEP_MS)
        per_s = estimates.of(dict.fromkeys(names, 0.0), number * STEP_MS).per_s
        assert per_s[2] >= np.median(per_s)


@given(
    st.lists(st.integers(1, 500), min_size=30, max_size=200),
    st.floats(1e-6, 0.02),
    st.floats(0.001, 2.0),
    st.integers(1, 16),
)
def test_a_member_that_hands_its_records_to_threads_claims_to_be_no_slower_than_it_is(polls, each_s, pause_s, threads):
    """The poll comes back at once, or waits where the queue of the threads is full."""
    busy, now_s, free_s = BusyTime(), 0.0, 0.0
    for records in polls:
        busy.polls(round(now_s * SECOND_NS))
        now_s += pause_s
        busy.given({"t": records}, round(now_s * SECOND_NS))
        free_s = max(free_s, now_s) + records * each_s / threads
        now_s = max(now_s, free_s - 1.0)  # a second of work fits into the queue
    busy.polls(round(now_s * SECOND_NS))
    assert busy.per_s == 0 or busy.per_s >= 0.9 * threads / each_s
    assert all(each <= 1.1 * each_s for each in busy.each_s.values())


@pytest.mark.parametrize("threads", [0, 8])
def test_a_member_without_a_claim_is_as_fast_as_the_median_of_those_who_have_one(threads):
    estimates = CapacityEstimates()
    estimates.watch(("threads", "b", "c"), 0)
    estimates.measured("b", 900.0, 0)
    estimates.measured("c", 900.0 * (1 + threads), 0)
    per_s = estimates.of(dict.fromkeys(("threads", "b", "c"), 0.0), 0).per_s
    assert per_s[0] == pytest.approx(900.0 * (1 + threads / 2))


@pytest.mark.parametrize("interval_s", [1.0, 5.0, 30.0, 60.0])
def test_a_slow_member_is_found_by_its_commits_however_rarely_it_commits(interval_s):
    """It is a sixth as fast as the others, and tells nothing of itself."""
    names = ("a", "slow", "c")
    estimates = CapacityEstimates(slack_s=interval_s + 1)
    estimates.watch(names, 0)
    for now_ms in range(STEP_MS, round(5000 * interval_s) + 60_000, STEP_MS):
        each = zip((0.1, 0.5, 0.8), (SPEED, SPEED / 6, SPEED), strict=True)
        processed = np.array([committed(interval_s, phase, speed, now_ms) for phase, speed in each])
        estimates.update(processed, np.ones(3, bool), now_ms)
    per_s = estimates.of(dict.fromkeys(names, 0.0), now_ms).per_s
    assert per_s[0] == per_s[2]
    assert per_s[1] == pytest.approx(per_s[0] / 6, rel=0.5)
