"""When a rebalance that would help is asked for, and when not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.live.restraint import Restraint, gained
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import RestraintTuning
from loadwise.protocol.live_notes import Memory, Price

STEP_MS = 5_000


class Group:
    """Readings every five seconds, and the requests after them, each of which is obeyed at once."""

    def __init__(self):
        self.settings, self.now_ms, self.asked = LiveSettings(), 0, []
        self.restraint = Restraint(self.settings, cooperative=False)
        self.restraint.rebalanced(1000)

    def read(self, worst, best, *, seconds):
        for _ in range(seconds * 1000 // STEP_MS):
            self.now_ms += STEP_MS
            if self.restraint.refusal(self.now_ms, worst=worst, best=best, moved_share=0.1) is None:
                self.asked.append(self.now_ms)
                self.restraint.asked(self.now_ms)
                self.restraint.rebalanced(1000)


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=50, max_size=50))
def test_members_stand_still_for_their_share_of_the_time_at_most_whatever_is_read(readings):
    group = Group()
    for worst, best in readings * 3:
        group.read(worst, best, seconds=60)
    share, saved_s = group.settings.standstill, RestraintTuning().saved_s
    for number, start in enumerate(group.asked):
        for later, at in enumerate(group.asked[number:], 1):
            assert later * 1.0 <= share * ((at - start) / 1000 + saved_s) + 1.0, "a second each, and one on credit"


SETTINGS = LiveSettings(healthy=0.5, least_gain=0.25, standstill=1.0)
EACH_SECOND = range(60)


def requests(worst, best, *, at=EACH_SECOND, took_ms=1000, moved=0.0, cooperative=False, obeyed=False):
    """The seconds of readings after which a rebalance is requested, long after the last one."""
    restraint = Restraint(SETTINGS, cooperative)
    restraint.rebalanced(took_ms)
    found = []
    for second in at:
        refusal = restraint.refusal(second * 1000, worst=worst, best=best, moved_share=moved)
        if refusal is None:
            found.append(second)
            restraint.asked(second * 1000)
            restraint.paid(100.0)
            if obeyed:
                restraint.rebalanced(took_ms)
    return found


@pytest.mark.parametrize(
    ("second", "group"),
    [
        (6, {"worst": 1.0, "best": 0.5}),  # half a second of work per second, until it is two, and the pause
        (6, {"worst": 1.0, "best": 0.25}),  # what is below the healthy level is no gain
        (6, {"worst": 3.0, "best": 2.0}),  # a group that is too small varies by more
        (12, {"worst": 0.75, "best": 0.5}),
        (10, {"worst": 1.0, "best": 0.5, "took_ms": 3000}),
        (8, {"worst": 1.0, "best": 0.5, "took_ms": 4000, "moved": 0.5, "cooperative": True}),
        (6, {"worst": 1.0, "best": 0.5, "took_ms": 5000, "moved": 0.0, "cooperative": True}),  # a fifth of the pause
        (20, {"worst": 1.0, "best": 0.5, "took_ms": 5500, "at": (0, 20)}),  # a pause between readings counts as 15 s
        (21, {"worst": 1.0, "best": 0.5, "took_ms": 5501, "at": (0, 20, 21)}),
    ],
)
def test_a_rebalance_is_requested_once_the_imbalance_has_cost_as_much(second, group):
    assert requests(**group)[0] == second


@pytest.mark.parametrize(
    ("worst", "best", "reason"),
    [(0.5, 0.0, "no member is above 50%"), (0.74, 0.5, "gain 0.24, less than 0.25"), (0.6, 0.9, "gain 0.00")],
)
def test_a_small_gain_is_never_enough(worst, best, reason):
    assert requests(worst, best) == []
    refusal = Restraint(SETTINGS, cooperative=False).refusal(0, worst=worst, best=best, moved_share=0.0)
    assert reason in refusal.reason
    assert not refusal.soon
    assert not refusal.waiting


@pytest.mark.parametrize(("obeyed", "found"), [(False, [12, 24, 36, 48]), (True, [12, 25, 38, 51])])
def test_the_cost_starts_from_0_after_a_request_and_at_the_first_reading_after_a_rebalance(obeyed, found):
    assert requests(0.75, 0.5, obeyed=obeyed) == found


def test_the_cost_starts_from_0_after_a_healthy_reading():
    restraint = Restraint(SETTINGS, cooperative=False)

    def refusal(second, worst):
        return restraint.refusal(second * 1000, worst=worst, best=0.5, moved_share=0.0)

    costs = [(0, 1.0), (3, 1.0), (4, 0.5), (5, 1.0), (7, 1.0)]
    assert [refusal(*each).soon for each in costs] == [True, True, False, True, True]
    assert refusal(8, 1.0) is None, "half a second of work per second since the healthy reading at 4 s"


@pytest.mark.parametrize(("cooperative", "second"), [(False, 22), (True, 13)])
def test_a_rebalance_costs_the_work_that_members_do_again_too(cooperative, second):
    restraint = Restraint(SETTINGS, cooperative=cooperative)
    restraint.rebalanced(1000)
    levels = {"worst": 1.2, "best": 0.7, "moved_share": 0.5, "redone_s": 8.0}
    pays = [restraint.refusal(at * 1000, **levels) is None for at in range(second + 1)]
    assert pays == [False] * second + [True]


def test_the_cost_starts_at_a_reading_without_utilisation():
    restraint = Restraint(SETTINGS, cooperative=False)
    for second in (0, 10):
        restraint.unjudged(second * 1000)
    assert restraint.refusal(13_999, worst=1.0, best=0.5, moved_share=0.0).soon
    assert restraint.refusal(14_000, worst=1.0, best=0.5, moved_share=0.0) is None


def test_a_used_up_budget_is_reported_once_each_time_and_refills_all_the_time():
    restraint = Restraint(LiveSettings(standstill=0.01), cooperative=False)
    restraint.rebalanced(4000)
    restraint.paid(0.0)
    asked, news = [], []
    for now_ms in range(0, 2_000_000, 20_000):
        refusal = restraint.refusal(now_ms, worst=99.0, best=0.5, moved_share=0.0)
        if refusal is None:
            asked.append(now_ms)
            restraint.asked(now_ms)
            restraint.rebalanced(4000)
            restraint.paid(1e9)
        elif refusal.exhausted:
            news.append(now_ms)
    assert asked == [20_000, 60_000, 240_000, 640_000, 1_040_000, 1_440_000, 1_840_000], "4 s of standstill in 400 s"
    assert news == [at + 40_000 for at in asked[1:]]


def test_a_gain_that_does_not_last_doubles_the_price_and_one_that_lasts_halves_it():
    restraint = Restraint(SETTINGS, cooperative=False)
    restraint.rebalanced(0)

    def price(now_ms=0):
        return restraint.memory(now_ms).price.times

    prices = []
    for number, gain_s in enumerate((1.9, 1.9, 1.9, 1.9, 1.9, 1e9, 1e9, 1e9, 1e9, 0.0)):
        for second in range(60):
            if restraint.refusal((60 * number + second) * 1000, worst=1.0, best=0.5, moved_share=0.0) is None:
                restraint.asked((60 * number + second) * 1000)
                break
        restraint.paid(gain_s)
        prices.append(price())
    assert prices == [1, 2, 4, 8, 8, 4, 2, 1, 1, 1]


def test_the_next_leader_goes_on_with_budget_and_price():
    restraint, following = (Restraint(LiveSettings(standstill=0.01), cooperative=False) for _ in range(2))
    restraint.rebalanced(8000)
    for now_ms in (0, 1000):
        restraint.refusal(now_ms, worst=99.0, best=0.5, moved_share=0.0)
        restraint.asked(now_ms)
    following.remember(restraint.memory(50_000), 150_000)  # by another clock
    assert following.memory(150_000) == restraint.memory(50_000)
    for later_ms in range(0, 700_000, 50_000):
        assert following.exhausted(150_000 + later_ms) == restraint.exhausted(50_000 + later_ms)
    assert restraint.exhausted(600_999)
    assert not restraint.exhausted(601_001)


def test_requests_of_a_leader_of_an_older_version_count_two_seconds_each():
    restraint = Restraint(LiveSettings(standstill=0.01), cooperative=False)
    restraint.remember(Memory(ages_ms=(1000, 1000, 1000)), 10_000)
    assert restraint.exhausted(9_000)
    assert not restraint.exhausted(10_000)
    assert restraint.memory(10_000).price == Price(spent_s=6.0, times=1.0)


def test_a_rebalance_that_waited_for_a_hanging_member_uses_up_ten_minutes_at_most():
    restraint = Restraint(LiveSettings(standstill=0.01), cooperative=False)
    restraint.rebalanced(300_000)
    restraint.refusal(0, worst=99.0, best=0.5, moved_share=0.0)
    restraint.asked(0)
    assert restraint.exhausted(600_000)
    assert not restraint.exhausted(600_001)


@given(st.floats(0, 4), st.floats(0, 4), st.floats(0.1, 1.2), st.floats(0, 1))
def test_room_lowers_what_counts_of_a_busy_member_alone(one, other, healthy, room):
    worst, best = max(one, other), min(one, other)
    whole, part = gained(worst, best, healthy), gained(worst, best, healthy, room)
    assert -1e-9 <= part <= whole + 1e-9
    assert part == pytest.approx(whole) or best < max(0.9, healthy)


def test_a_group_that_has_more_lag_for_its_rebalances_waits_longer():
    waited = {}
    for saves_lag in (True, False):
        restraint = Restraint(LiveSettings(), cooperative=False)
        restraint.rebalanced(1000)
        times = range(0, 600_000, 5000)
        judged = {"worst": 0.84, "best": 0.6, "moved_share": 0.1, "saves_lag": saves_lag}
        waited[saves_lag] = next(at for at in times if restraint.refusal(at, **judged) is None)
    assert waited == {True: 25_000, False: 145_000}
