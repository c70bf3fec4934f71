"""Who stands still, and who may."""

import numpy as np

from loadwise.assignor.live.activity import Activity
from loadwise.assignor.live.tuning import ActivityTuning

MEMBERS = ("works", "silent")
COMMIT_S, MAX_POLL_S = 2.0, 300.0


def reading(activity, now_ms, *, silent_goes_on=False):
    """Both have a backlog."""
    went_on, lagging = np.array([True, silent_goes_on]), np.array([True, True])
    activity.saw(MEMBERS, went_on, lagging, now_ms - 1000, now_ms)
    return activity.refusal(now_ms)


def test_who_has_shown_nothing_for_longer_than_a_commit_takes_may_stand_still():
    activity = Activity(COMMIT_S, MAX_POLL_S, ActivityTuning())
    activity.watch(MEMBERS, 0, 100)
    assert reading(activity, 1000) is None
    may = reading(activity, 2000)
    assert may.unsure
    assert may.reason.endswith("go on: silent")
    stands = reading(activity, 5000)
    assert stands.waiting
    assert stands.reason.endswith("silent for 5 s")
    assert reading(activity, 6000, silent_goes_on=True) is None


def test_who_has_not_polled_for_too_long_is_not_waited_for():
    activity = Activity(COMMIT_S, MAX_POLL_S, ActivityTuning())
    activity.watch(MEMBERS, 0, 100)
    assert reading(activity, 301_000) is None
    assert activity.silent_ms(301_000) == {"silent": 301_000}
