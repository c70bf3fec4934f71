"""When a rebalance that would help is asked for, and when not."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.live.restraint import Restraint
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import RestraintTuning
from loadwise.protocol.live_notes import Memory

STEP_MS = 5_000
HOUR_MS = 3_600_000


class Group:
    """Readings every five seconds, and what became of them."""

    def __init__(self, *, cooperative=False, took_ms=1000, tuning=None, **settings):
        self.settings = LiveSettings(**settings)
        self.restraint = Restraint(self.settings, cooperative, tuning=tuning or RestraintTuning())
        self.took_ms = took_ms
        self.now_ms = 0
        self.asked = []
        self.restraint.rebalanced(0, took_ms)

    def read(self, worst, best, *, seconds=5, moved=0.1, obey=True):
        """Readings for some seconds; what was the answer to the last."""
        for _ in range(seconds * 1000 // STEP_MS):
            self.now_ms += STEP_MS
            refusal = self.restraint.refusal(self.now_ms, worst=worst, best=best, moved_share=moved)
            if refusal is None:
                self.asked.append(self.now_ms)
                self.restraint.asked(self.now_ms)
                if obey:
                    self.restraint.rebalanced(self.now_ms + self.took_ms, self.took_ms)
        return refusal


def test_a_healthy_group_is_left_alone():
    group = Group()
    assert group.read(0.69, 0.1, seconds=3600).reason == "no member is above 70%"
    assert not group.asked


def test_a_gain_that_is_too_small_is_never_acted_on():
    group = Group()
    group.read(1.09, 1.0, seconds=7200)
    assert not group.asked


def test_a_large_imbalance_is_acted_on_soon_and_a_small_one_later():
    large, small = Group(), Group()
    large.read(1.5, 0.6, seconds=600)
    small.read(0.85, 0.7, seconds=600)
    assert large.asked[0] <= 25_000
    assert small.asked[0] > large.asked[0]


def test_what_a_rebalance_costs_is_waited_for():
    quick, long = Group(took_ms=500), Group(took_ms=20_000)
    quick.read(1.1, 0.7, seconds=600)
    long.read(1.1, 0.7, seconds=600)
    assert long.asked[0] - quick.asked[0] >= 30_000


def test_a_cooperative_group_pays_for_what_moves():
    eager, cooperative = Group(took_ms=20_000), Group(took_ms=20_000, cooperative=True)
    eager.read(1.1, 0.7, seconds=600)
    cooperative.read(1.1, 0.7, seconds=600)
    assert cooperative.asked[0] < eager.asked[0]


def test_the_next_one_waits_ten_seconds():
    group = Group(most_per_hour=100)
    group.read(9.5, 0.6, seconds=600)
    gaps = {later - earlier for earlier, later in pairwise(group.asked)}
    assert gaps == {15_000}, "the first reading ten seconds after its end"


def test_the_first_that_is_one_too_many_is_told():
    group = Group(most_per_hour=1)
    group.read(9.5, 0.6, seconds=30)
    refusals = [group.read(9.5, 0.6) for _ in range(4)]
    assert [each.newly_exhausted for each in refusals] == [False] * 4
    assert all("in an hour is reached" in each.reason for each in refusals)


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=50, max_size=50))
def test_never_more_than_six_in_an_hour_whatever_is_read(readings):
    group = Group()
    for worst, best in readings * 3:
        group.read(worst, best, seconds=60)
    assert all(
        sum(start <= at < start + HOUR_MS for at in group.asked) <= group.settings.most_per_hour
        for start in group.asked
    )


def test_the_next_leader_knows_what_the_last_one_did():
    """A rebalance that kills its leader every time: the group stops asking all the same."""
    asked, memory = [], Memory()
    now_ms = 0
    for _ in range(50):
        group = Group()
        group.now_ms = now_ms
        group.restraint.rebalanced(now_ms, 1000)
        group.restraint.remember(memory, now_ms)
        group.read(1.5, 0.6, seconds=60)
        asked += group.asked[:1]
        if group.asked:
            now_ms = group.asked[0] + 1000
            fresh = Restraint(group.settings, cooperative=False)
            fresh.remember(memory, now_ms)
            fresh.asked(group.asked[0])
            memory = fresh.memory(now_ms)
        else:
            break
    assert len(asked) == 6


def test_memory_goes_on_where_it_was_left():
    group = Group()
    group.read(1.5, 0.6, seconds=180)
    memory = group.restraint.memory(group.now_ms)
    other = Restraint(group.settings, cooperative=False)
    other.remember(memory, 5_000_000)
    assert other.memory(5_000_000) == memory
    assert memory.ages_ms
