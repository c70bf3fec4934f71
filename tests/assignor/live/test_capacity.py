"""What is learned about members from what they are seen to process."""

import math

import numpy as np
import pytest

from loadwise.assignor.live.capacity import Known, capacities
from loadwise.assignor.live.evidence import CapacityEstimates
from loadwise.assignor.live.tuning import CapacityTuning
from loadwise.assignor.model import LARGEST

STEP_MS = 5_000


def learned(members, *, readings=8, stated=None, estimates=None, start_ms=0):
    """Capacities after some readings of members given as (records/s, has a backlog)."""
    estimates = estimates or CapacityEstimates()
    names = tuple(members)
    estimates.watch(names, start_ms)
    speed = np.array([speed for speed, _ in members.values()], float)
    lagging = np.array([lags for _, lags in members.values()])
    for number in range(readings):
        estimates.update(speed * number * STEP_MS / 1000, lagging, start_ms + number * STEP_MS)
    given = dict.fromkeys(names, 0.0) | (stated or {})
    return estimates.of(given, start_ms + readings * STEP_MS)


def test_a_group_that_commits_nothing_does_not_show_what_it_can_do():
    """It does not commit, or all wait for the same database: nobody's capacity is 0, and no number of members helps."""
    assert not learned({"a": (0, True), "b": (0, True)}).known


def test_only_what_was_seen_lately_of_a_member_that_works_may_leave_it_without_a_partition():
    estimates = CapacityEstimates()
    members = {"a": (900, True), "slow": (150, True), "stopped": (0, True), "starved": (5, False)}
    assert learned(members, estimates=estimates).reliable.tolist() == [True, True, False, False]
    half_an_hour_later = estimates.of(dict.fromkeys(members, 0.0), 40_000 + 1_800_000)
    assert half_an_hour_later.reliable.tolist() == [True, False, False, False]


def test_estimates_stay_within_a_factor_of_the_median():
    members = {"a": (100, True), "b": (100, True), "stuck": (0, True), "rocket": (1e6, True), "c": (100, True)}
    per_s = learned(members).per_s / 100
    assert per_s.min() >= 1 / CapacityTuning().furthest
    assert per_s.max() <= CapacityTuning().furthest


def test_a_member_whose_records_are_sixty_times_as_heavy_is_that_much_slower():
    assert learned({"a": (6000, True), "b": (6000, True), "heavy": (100, True)}).per_s[2] == pytest.approx(100, rel=0.1)


@pytest.mark.parametrize("told", [math.inf, 1e308, LARGEST])
def test_a_member_that_tells_more_than_any_can_do_breaks_nothing(told):
    estimates = CapacityEstimates()
    estimates.watch(("a", "b", "c"), 0)
    for member, per_s in (("a", told), ("b", told), ("c", 100.0)):
        estimates.measured(member, per_s, 1000)
    assert np.isfinite(estimates.of(dict.fromkeys("abc", 0.0), 1000).per_s).all()


WITHIN = 2**0.16


def told(per_s, at_s=0):
    return Known.exactly(per_s, at_s * 1000)


def bounded(per_s, least, most):
    return Known(per_s, 0, True, least, most)


def at_least(per_s, least=None):
    """The rate of a member without a backlog."""
    return Known(per_s, 0, False, per_s if least is None else least, math.inf)


def of(*known, given=None, falls_behind=False):
    stated = np.zeros(len(known)) if given is None else np.array(given, float)
    return capacities(known, stated, CapacityTuning(), 0, falls_behind=falls_behind)


@pytest.mark.parametrize(
    ("known", "given", "per_s"),
    [
        ([told(100), told(100), None], None, [100, 100, 100]),
        ([told(0.5), None], None, [0.5, 0.5]),
        ([told(100), told(100), told(40)], None, [100, 100, 40]),
        # Within 0.3 octaves of the median:
        ([told(100), told(100), bounded(40, 30, 82)], None, [100, 100, 100]),
        ([told(100), told(100), bounded(40, 30, 81)], None, [100, 100, 40]),
        ([told(100), told(100), bounded(200, 123, 300)], None, [100, 100, 100]),
        ([told(100), told(100), bounded(200, 124, 300)], None, [100, 100, 200]),
        # The median is what most members may have, nearest to the middle:
        ([told(100), told(200)], None, [100, 200]),
        ([told(100), told(110)], None, [105, 105]),
        ([bounded(100, 50, 200), told(180)], None, [180 / WITHIN] * 2),
        ([bounded(300, 150, 600), told(180)], None, [180 * WITHIN] * 2),
        ([bounded(100, 50, 200), bounded(110, 50, 200), told(180)], None, [180 / WITHIN] * 3),
        # A member that keeps up is used to 70 % if it does more than the others can:
        ([told(100), at_least(210, 200), at_least(210, 200)], None, [100, 300, 300]),
        ([told(100), at_least(210, 100 * WITHIN), at_least(210, 50)], None, [100, 100, 100]),
        ([told(100), at_least(210, 100 * WITHIN)], None, [100, 100]),
        # A capacity that the user has set holds, and scales what was seen of its member:
        ([told(100), None], [2, 0], [100, 50]),
        ([told(100), None], [0.5, 0], [100, 200]),
        ([told(100), told(100)], [2, 1], [150, 75]),
        ([told(LARGEST), None], [0.5, 0], [LARGEST, LARGEST]),
    ],
)
def test_capacities_are_those_of_the_median_and_of_members_that_differ_from_it(known, given, per_s):
    found = of(*known, given=given)
    assert found.known
    assert found.per_s == pytest.approx(per_s)
    assert found.proven.tolist() == [each is not None and each.proven for each in known]
    assert found.reliable.tolist() == found.proven.tolist()
    assert found.total_per_s == pytest.approx(sum(per_s))


@pytest.mark.parametrize(
    ("known", "given", "falls_behind", "per_s"),
    [
        ([None, None], None, True, None),
        ([None, None], [0.5, 2], False, None),
        ([at_least(400), at_least(300)], None, False, None),
        ([at_least(400), at_least(300)], None, True, [400, 400]),
        ([at_least(0.5), None], None, True, [0.5, 0.5]),
        ([at_least(400), None], [2, 0], True, [400, 200]),
        ([told(0), at_least(300)], None, True, [300, 300]),
        ([told(0), at_least(300)], None, False, None),
    ],
)
def test_without_a_measured_capacity_the_best_rate_counts_while_a_member_falls_behind(
    known, given, falls_behind, per_s
):
    found = of(*known, given=given, falls_behind=falls_behind)
    assert found.known is (per_s is not None)
    assert found.per_s.tolist() == (per_s or given or [1.0, 1.0])
    assert not found.reliable.any()
    assert found.total_per_s == (sum(per_s) if per_s else None)


@pytest.mark.parametrize(("half_lives", "per_s"), [(1, 100 * 0.4**0.5), (2.1, 100 * 0.4 ** (0.5**2.1)), (2.2, 100)])
def test_a_slow_estimate_returns_to_the_median_with_time_and_leaves_no_member_empty(half_lives, per_s):
    found = of(told(100), told(100), told(40, -1800 * half_lives))
    assert found.per_s == pytest.approx([100, 100, per_s])
    assert found.reliable.tolist() == [True, True, False]


def test_an_estimate_in_another_unit_has_its_bounds_in_it_too():
    assert bounded(100, 50, 200).times(3) == bounded(300, 150, 600)
