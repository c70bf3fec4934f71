"""How rarely members commit, learned where the application commits by itself."""

import numpy as np
import pytest

from loadwise.assignor.live.commits import CommitTimes
from loadwise.assignor.live.tuning import CommitTuning

UNKNOWN_S, LEAST_S = CommitTuning().unknown_s, CommitTuning().least_s


class Readings:
    """Readings of members ``a`` and ``b``, one every 5 s: these commit and have records left to commit."""

    def __init__(self, configured_s=None):
        self.commits, self.second = CommitTimes(configured_s, CommitTuning()), 0
        self.commits.watch(["a", "b"], 0)

    def until(self, second, *, a=(), b=(), idle=(), every_s=5):
        for at in range(self.second + every_s, second + 1, every_s):
            went_on, left = np.array([at in a, at in b]), np.array([at not in idle] * 2)
            self.commits.saw(["a", "b"], went_on, left, (at - every_s) * 1000, at * 1000)
        self.second = second
        return self

    @property
    def slack_s(self):
        return self.commits.slack_s("a"), self.commits.slack_s("b")


@pytest.mark.parametrize("seconds", [(), (60,), (60, 120)])
def test_commits_by_hand_may_be_rare_until_two_gaps_between_them_were_seen(seconds):
    assert Readings().until(180, a=seconds).slack_s == (UNKNOWN_S, UNKNOWN_S)


def test_a_configured_interval_is_not_learned():
    assert Readings(6.0).until(200, a=(60, 120, 180)).slack_s == (6, 6)


def test_the_interval_is_the_shorter_of_the_two_newest_gaps():
    assert Readings().until(180, a=(60, 120, 180)).slack_s[0] == LEAST_S + 60
    assert Readings().until(250, a=(60, 120, 250)).slack_s[0] == LEAST_S + 60, "it has paused once"
    assert Readings().until(205, a=(60, 120, 180, 205)).slack_s[0] == LEAST_S + 25


def test_a_member_commits_as_rarely_as_others_until_it_is_known():
    readings = Readings().until(180, a=range(5, 181, 5), b=(60, 120))
    assert readings.slack_s == (LEAST_S, LEAST_S)
    assert readings.until(185, b=(185,)).slack_s == (LEAST_S, LEAST_S + 60)
    readings.commits.watch(["b", "new"], 185_000)
    assert readings.commits.slack_s("new") == readings.commits.longest_s == LEAST_S + 60


@pytest.mark.parametrize("every_s", [2, 5, 30])
def test_commits_that_each_reading_shows_have_no_gap(every_s):
    seconds = range(0, 200, every_s)
    assert Readings().until(200, a=seconds, every_s=every_s).slack_s[0] == LEAST_S


def test_time_without_records_to_commit_is_no_gap():
    """Every ten minutes there are records for 20 s, which are committed at their end."""
    bursts = (600, 1200, 1800, 2400)
    idle = [second for second in range(5, 2401) if second % 600 not in (0, 585, 590, 595)]
    assert Readings().until(2400, a=bursts, idle=idle).slack_s[0] == LEAST_S + 20


def test_intervals_outlast_a_rebalance_whose_own_gap_does_not_count():
    readings = Readings().until(180, a=(60, 120, 180))
    readings.commits.watch(["a", "b"], 181_000)
    assert readings.until(210, a=(185, 210)).slack_s[0] == LEAST_S + 60
    readings.commits.watch(["b"], 211_000)
    readings.commits.watch(["a", "b"], 212_000)
    assert readings.slack_s[0] == UNKNOWN_S, "a member that has left may be another program now"


def test_a_commit_from_before_the_rebalance_begins_no_gap():
    readings = Readings().until(100, b=range(5, 101, 5))
    readings.commits.watch(["a", "b"], 101_000)
    readings.until(160, a=(105, 120, 160))
    assert readings.slack_s[0] == LEAST_S, "unknown, as the others"
    assert readings.until(220, a=(220,)).slack_s[0] == LEAST_S + 40
