"""What counts as a member's capacity, of its own reports, its commits, and what an earlier leader has learned."""

import math

import numpy as np
import pytest

from loadwise.assignor.live.evidence import CapacityEstimates
from loadwise.assignor.live.seen import Pace


def pace(per_s, least_per_s, most_per_s, intervals=3):
    return Pace(per_s, least_per_s, most_per_s, intervals)


SLOW = pace(240.0, 230.0, 255.0)


def after(*steps):
    """The evidence after steps given as (second, what, arguments of the method)."""
    estimates = CapacityEstimates(slack_s=1.0)
    for second, what, *given in steps:
        now_ms = round(second * 1000)
        if what == "told":
            estimates.measured(given[1] if len(given) > 1 else "a", given[0], now_ms)
        elif what == "seen":
            estimates.seen(given[1] if len(given) > 1 else "a", given[0], now_ms)
        elif what == "outdid":
            estimates.outdid("a", *given)
        elif what == "watch":
            estimates.watch(given[0], now_ms)
        elif what == "rescale":
            estimates.rescale(given[0], now_ms)
        else:
            estimates.recalled("a", given[0], now_ms, instead=what == "recalled instead")
    return estimates


def known(*steps, member="a"):
    return after(*steps).known_of([member])[member]


@pytest.mark.parametrize(("per_s", "counts"), [(0.5, 0.5), (0.0, 0.0), (-1.0, 0.0)])
def test_reports_and_memories_count_if_they_are_positive(per_s, counts):
    assert known((0, "told", per_s)) == counts
    assert known((0, "recalled", per_s)) == counts


@pytest.mark.parametrize(
    ("steps", "per_s"),
    [
        ([(0, "recalled", 500), (0, "recalled", 400)], 500),
        ([(0, "recalled", 500), (0, "recalled instead", 400)], 400),
        ([(0, "told", 500), (0, "recalled", 400)], 500),
        ([(0, "recalled", 500), (0, "told", 400)], 400),
        ([(70, "recalled", 500), (10, "told", 400)], 400),
        ([(70.001, "recalled", 500), (10, "told", 400)], 500),  # the report is much older
    ],
)
def test_a_memory_counts_until_there_is_a_report(steps, per_s):
    assert known(*steps) == per_s


@pytest.mark.parametrize(
    ("second", "per_s"),
    [(15.999, 240), (16, 600)],  # it fell behind at 1 s
)
def test_a_rate_of_commits_counts_more_than_reports_while_a_member_falls_behind(second, per_s):
    assert known((1, "seen", SLOW), (second, "told", 600)) == per_s


@pytest.mark.parametrize(("second", "per_s"), [(60.999, 240), (61, 600)])
def test_a_rate_of_commits_counts_for_a_minute_while_another_member_falls_behind(second, per_s):
    assert known((1, "seen", SLOW), (55, "seen", SLOW, "b"), (second, "told", 600)) == per_s


OFF = [(0, "told", 600), (1, "seen", SLOW)]
"""The member reports 600/s and falls behind at 240/s."""


@pytest.mark.parametrize(
    ("steps", "per_s"),
    [
        ([(20, "told", 600)], 240),
        ([(20, "told", 750)], 300),
        ([(20, "told", 751)], 751),  # its speed has changed, which explains the contradiction
        ([(20, "told", 751), (25, "told", 600)], 600),
        ([(20, "told", 480)], 192),
        ([(20, "told", 479)], 479),
        ([(30, "seen", pace(300, 290, 310)), (50, "told", 600)], 300),  # the newest rate counts
        ([(30, "seen", pace(590, 580, 600)), (50, "told", 600)], 600),  # the report was right
        ([(30, "seen", pace(610, 600, 620)), (50, "told", 600)], 600),
        ([(30, "seen", pace(0, 0, 0)), (50, "told", 600)], 240),  # a member that stops shows no error
        ([(30, "outdid", 255)], 240),
        ([(30, "outdid", 256)], 0),
        ([(30, "outdid", 256), (31, "told", 600)], 600),
        ([(30, "outdid", 256), (31, "seen", SLOW), (50, "told", 600)], 600),  # the rate agrees with the last one
    ],
)
def test_a_report_is_corrected_by_the_rate_at_which_its_member_fell_behind(steps, per_s):
    assert known(*OFF, *steps) == pytest.approx(per_s)


@pytest.mark.parametrize(("intervals", "per_s"), [(2, 600), (3, 240)])
def test_a_report_is_contradicted_by_three_intervals_since_a_shift_may_fill_two(intervals, per_s):
    seen = pace(240, 230, 255, intervals)
    assert known((0, "told", 600), (1, "seen", seen), (2, "told", 600)) == per_s
    assert known((1, "seen", seen)) == 240, "it contradicts nothing"
    assert known(*OFF, (30, "seen", pace(200, 190, 210, intervals)), (50, "told", 600)) == 200


def test_a_member_that_is_seen_slower_than_it_says_may_have_recovered_after_a_while():
    estimates = after(*OFF, (0, "told", 600, "b"), (0, "told", 600, "c"))

    def recovered(second):
        return estimates.recovered(dict.fromkeys("abc", 0.0), second * 1000).per_s.tolist()

    assert recovered(15) == pytest.approx([240, 600, 600], rel=0.01)
    assert recovered(16) == [600, 600, 600]
    assert estimates.of(dict.fromkeys("abc", 0.0), 16_000).per_s.tolist()[0] < 250


def test_the_rate_of_a_stopped_member_corrects_nothing():
    assert known((0, "told", 600), (1, "seen", pace(0, 0, 0)), (20, "told", 600)) == 600


def error(member, said, seen):
    return (0, "told", said, member), (1, "seen", pace(seen, seen - 1, seen + 1), member)


@pytest.mark.parametrize(
    ("others", "per_s"),
    [
        ([("b", 100, 400)], 400),
        ([("b", 100, 50)], 100),
        ([("b", 100, 400), ("c", 200, 400), ("d", 100, 300)], 300),
        ([("b", 100, 100)], 100),
    ],
)
def test_a_member_that_never_fell_behind_gets_the_median_correction_of_the_others_upwards(others, per_s):
    steps = sorted((step for other in others for step in error(*other)), key=lambda step: step[0])
    assert known(*steps, (20, "told", 100)) == per_s


def test_a_member_whose_speed_has_changed_ends_the_corrections_of_all():
    assert known(*error("b", 100, 400), (20, "told", 200, "b"), (20, "told", 100)) == 100


@pytest.mark.parametrize(("later_s", "per_s"), [(3600, 600), (3600.001, 0)])
def test_an_absent_member_is_remembered_for_an_hour(later_s, per_s):
    assert known((1000, "told", 600), (1000 + later_s, "watch", ("b",))) == per_s


def test_corrections_of_forgotten_members_are_forgotten():
    assert known(*OFF, (3602, "watch", ("b",)), (3602, "told", 600)) == 600
    assert known(*OFF, (3600, "watch", ("b",)), (3602, "told", 600)) == 240
    assert known(*OFF, (2, "outdid", 300), (3, "watch", ("b",))) == 0


def test_a_change_of_unit_keeps_estimates_that_were_made_since_the_assignment():
    steps = [(5, "told", 100), (4.999, "told", 100, "b"), (5, "rescale", {"a": 2.0, "b": 2.0, "unknown": 2.0})]
    assert after(*steps).known_of(["a", "b", "unknown"]) == {"a": 200, "b": 0, "unknown": 0}


class Commits:
    """Readings of one member, given as (second, records processed so far, whether it has a backlog)."""

    def __init__(self, *readings, slack_s=1.0, steps=()):
        self.estimates = after(*steps) if steps else CapacityEstimates(slack_s)
        self.estimates.watch(("a",), 0)
        for reading in readings:
            self.read(*reading)

    def read(self, second, processed, lagging=True, slack_s=None):
        read = np.array([float(processed)]), np.array([lagging])
        self.estimates.update(*read, round(second * 1000), slack_s=slack_s)

    @property
    def known(self):
        return self.estimates.known_of(["a"])["a"]

    @property
    def at_least(self):
        """The capacity that is presumed while the member has a backlog."""
        return float(self.estimates.of({"a": 0.0}, 0).per_s[0])


@pytest.mark.parametrize(("second", "per_s"), [(7.999, 0), (8, 100)])
def test_commits_show_a_capacity_after_eight_seconds_with_a_backlog(second, per_s):
    assert Commits((0, 0), (second, second * 100)).known == pytest.approx(per_s)


def test_a_backlog_counts_from_the_reading_in_which_it_was_there():
    readings = [(0, 0, False), (10, 1000, False), (20, 3000), (25, 4000), (27.9, 4580)]
    assert Commits(*readings).known == 0
    assert Commits(*readings, (28, 4600)).known == 200
    assert Commits(*readings, (28, 4600, False)).known == 0, "the backlog is gone"


@pytest.mark.parametrize(("slack_s", "longest_s"), [(1.0, 30), (10.0, 40)])
def test_the_rate_is_that_of_the_last_half_minute_or_of_four_commits(slack_s, longest_s):
    commits = Commits((0, 0), (10, 1000), (11, 1100), slack_s=slack_s)
    commits.read(10 + longest_s, 1100 + 50 * (longest_s - 1))
    assert commits.known == pytest.approx((100 + 50 * (longest_s - 1)) / longest_s), "since the reading at 10 s"
    commits.read(10.999 + longest_s, 1100 + 50 * (longest_s - 0.001))
    assert commits.known > 50.5
    commits.read(11 + longest_s, 1100 + 50 * longest_s)
    assert commits.known == pytest.approx(50)


def test_a_rate_of_commits_has_bounds_of_one_commit_at_either_end():
    estimate = Commits((0, 0), (10, 990)).estimates._of["a"].known
    assert (estimate.least_per_s, estimate.per_s, estimate.most_per_s) == (90, 99, 110)
    rare = Commits((0, 0), (10, 990), slack_s=60.0).estimates._of["a"].known
    assert rare.most_per_s == 990_000, "no upper bound that means anything"


def test_a_time_between_commits_that_has_changed_counts_from_its_reading():
    commits = Commits((0, 0), slack_s=60.0)
    commits.read(10, 1000, slack_s=2.5)
    estimate = commits.estimates._of["a"].known
    assert (estimate.least_per_s, estimate.most_per_s) == pytest.approx((1000 / 12.5, 1000 / 7.5))


@pytest.mark.parametrize(("second", "known"), [(59.999, False), (60, True)])
def test_a_member_without_progress_is_not_slow_before_its_first_commit_is_due(second, known):
    commits = Commits((0, 0), (second, 0), slack_s=60.0)
    assert bool(commits.estimates._of.get("a")) is known


def test_rates_without_a_backlog_are_a_lower_bound_of_which_the_highest_counts():
    commits = Commits((0, 0, False), (8, 800, False), (16, 1200, False), (17, 1250))
    assert commits.known == 0
    assert commits.at_least == 100
    commits.read(30, 1250)
    assert commits.known == pytest.approx(0, abs=1e-9), "a member with a backlog shows its capacity"


def test_a_capacity_is_not_replaced_by_a_lower_bound():
    assert Commits((0, 0), (10, 1000), (20, 4000, False), (30, 9000, False)).known == 100


@pytest.mark.parametrize(("second", "per_s"), [(60.999, 240), (61, 100)])
def test_commits_do_not_count_within_a_minute_of_notes(second, per_s):
    assert Commits((51, 0), (second, 100 * (second - 51)), steps=[(1, "seen", SLOW)]).known == pytest.approx(per_s)


def test_a_reading_of_the_past_is_ignored():
    assert Commits((0, 0), (10, 1000), (10, 2000), (9, 3000)).known == 100


def test_records_of_a_rebalance_are_no_measurement():
    commits = Commits((0, 0), (5, 500))
    commits.estimates.watch(("a",), 6000)
    for reading in ((7, 5000), (12, 5500)):
        commits.read(*reading)
    assert commits.known == 0
    commits.read(15, 5800)
    assert commits.known == 100
    assert math.isfinite(commits.at_least)
