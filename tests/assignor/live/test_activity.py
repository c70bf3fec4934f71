"""Who stands still, and who may."""

import numpy as np
import pytest

from loadwise.assignor.live.activity import Activity
from loadwise.assignor.live.commits import CommitTimes
from loadwise.assignor.live.tuning import ActivityTuning, CommitTuning

MEMBERS = ("works", "silent")
COMMIT_S, MAX_POLL_S = 2.0, 300.0


def reading(activity, now_ms, *, silent_goes_on=False):
    """Both have a backlog."""
    went_on, lagging = np.array([True, silent_goes_on]), np.array([True, True])
    activity.saw(MEMBERS, went_on, lagging, now_ms - 1000, now_ms)
    return activity.refusal(now_ms)


def watched(*, slack_s=COMMIT_S, max_poll_s=MAX_POLL_S):
    activity = Activity(CommitTimes(slack_s, CommitTuning()), max_poll_s, ActivityTuning())
    activity.watch(MEMBERS, 100_000, 100)
    return activity


@pytest.mark.parametrize(
    ("slack_s", "second", "waiting"),
    [(2.0, 4.999, False), (2.0, 5.0, True), (4.0, 7.999, False), (4.0, 8.0, True)],
)
def test_a_member_stands_still_after_a_while_that_is_longer_if_it_commits_rarely(slack_s, second, waiting):
    activity, now_ms = watched(slack_s=slack_s), round(100_000 + second * 1000)
    refusal = reading(activity, now_ms)
    assert refusal.waiting is waiting
    assert refusal.soon is not waiting
    assert refusal.reason.endswith(f": silent for {second:.0f} s" if waiting else "go on: silent")
    assert activity.silent_ms(now_ms) == ({"silent": now_ms - 100_000} if waiting else {})


@pytest.mark.parametrize(("second", "unsure"), [(1.999, False), (2.0, True)])
def test_a_member_may_stand_still_once_a_commit_is_due(second, unsure):
    assert bool(reading(watched(), round(100_000 + second * 1000))) is unsure


@pytest.mark.parametrize(("second", "waiting"), [(300.0, True), (300.001, False)])
def test_a_member_that_stays_in_the_group_for_longer_than_its_poll_interval_polls(second, waiting):
    assert bool(reading(watched(), round(100_000 + second * 1000))) is waiting


def test_a_report_shows_that_a_member_goes_on():
    activity = watched()
    activity.heard("silent", 106_000)
    assert reading(activity, 107_000) is None


def test_a_member_without_a_backlog_does_not_stand_still():
    activity = watched()
    activity.saw(MEMBERS, np.array([False, False]), np.array([True, False]), 105_000, 106_000)
    assert activity.silent_ms(106_000) == {"works": 6000}


def rebalanced(*, took_ms=1000, began_after_ms=1000):
    """A member has stood still for 10 s at the last reading before a rebalance; return the end of the rebalance too."""
    activity = watched()
    assert reading(activity, 110_000).waiting
    ended_ms = 110_000 + began_after_ms + took_ms
    activity.watch(MEMBERS, ended_ms, took_ms)
    return activity, ended_ms


@pytest.mark.parametrize(
    ("took_ms", "began_after_ms", "joins"),
    [(1000, 1000, True), (5000, 5000, True), (5001, 1000, False), (1000, 5001, False)],
)
def test_a_member_that_stood_still_and_joined_at_once_is_not_waited_for(took_ms, began_after_ms, joins):
    activity, ended_ms = rebalanced(took_ms=took_ms, began_after_ms=began_after_ms)
    assert (reading(activity, ended_ms + 10_000) is None) is joins


@pytest.mark.parametrize(("after_ms", "waiting"), [(999, False), (1000, True)])
def test_a_member_that_has_gone_on_since_a_rebalance_may_stand_still_again(after_ms, waiting):
    """What it has committed since the reading before may be the work of another member if the rebalance was later."""
    activity, ended_ms = rebalanced()
    reading(activity, ended_ms + after_ms, silent_goes_on=True)
    assert bool(reading(activity, ended_ms + 20_000)) is waiting


def test_a_member_that_joins_again_has_to_show_again_that_it_joins_at_once():
    activity, ended_ms = rebalanced()
    for members, later_ms in ((("works",), 1000), (MEMBERS, 20_000)):
        activity.watch(members, ended_ms + later_ms, 10_000)
    assert reading(activity, ended_ms + 30_000).waiting


@pytest.mark.parametrize(
    ("committed", "reason"),
    [
        ((), "silent for 195 s"),
        ((100,), "whether they go on: silent"),
        ((60, 120, 180), None),
        ((20, 25, 30), "silent for 165 s"),
    ],
)
def test_a_member_that_commits_by_hand_stands_still_after_the_time_of_two_of_its_own_commits(committed, reason):
    commits, has_left = CommitTimes(None, CommitTuning()), np.array([True, True])
    activity = Activity(commits, MAX_POLL_S, ActivityTuning())
    activity.watch(MEMBERS, 0, 100)
    commits.watch(MEMBERS, 0)
    for second in range(5, 200, 5):
        went_on = np.array([second >= 185, second in committed])
        since_ms, now_ms = (second - 5) * 1000, second * 1000
        commits.saw(("other", MEMBERS[1]), went_on & [False, True], has_left, since_ms, now_ms)
        activity.saw(MEMBERS, went_on, has_left, since_ms, now_ms)
    last = max(committed, default=0)
    assert activity.uncommitted_s([MEMBERS[1]], 195_000) == min(195 - last, commits.slack_s(MEMBERS[1]))
    refusal = activity.refusal(195_000)
    assert (refusal is None) == (reason is None)
    assert reason is None or refusal.reason.endswith(reason)
