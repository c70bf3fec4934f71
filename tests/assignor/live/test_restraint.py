"""When a rebalance that would help is asked for, and when not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.live.restraint import Restraint
from loadwise.assignor.live.settings import LiveSettings
from loadwise.protocol.live_notes import Memory

STEP_MS = 5_000
HOUR_MS = 3_600_000


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
def test_never_more_than_six_in_an_hour_whatever_is_read(readings):
    group = Group()
    for worst, best in readings * 3:
        group.read(worst, best, seconds=60)
    assert all(
        sum(start <= at < start + HOUR_MS for at in group.asked) <= group.settings.most_per_hour
        for start in group.asked
    )


SETTINGS = LiveSettings(healthy=0.5, least_gain=0.25, most_per_hour=100)
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


def test_the_hourly_limit_is_reported_once_for_each_time_that_it_is_reached():
    restraint = Restraint(LiveSettings(most_per_hour=2), cooperative=False)
    restraint.remember(Memory(ages_ms=(1_800_000,)), 0)
    news = []
    for now_ms in range(0, 4_000_000, 20_000):
        refusal = restraint.refusal(now_ms, worst=9.0, best=0.5, moved_share=0.0)
        if refusal is None:
            assert not restraint.exhausted(now_ms)
            restraint.asked(now_ms)
            assert restraint.exhausted(now_ms)
        elif refusal.exhausted:
            news.append(now_ms)
    assert restraint.memory(now_ms).ages_ms == (now_ms - 1_800_000, now_ms - 3_620_000)
    assert news == [40_000, 1_820_000, 3_640_000]


def test_a_request_is_remembered_for_an_hour():
    restraint = Restraint(SETTINGS, cooperative=False)
    restraint.asked(0)
    assert restraint.memory(HOUR_MS - 1).ages_ms == (HOUR_MS - 1,)
    assert restraint.memory(HOUR_MS).ages_ms == ()
