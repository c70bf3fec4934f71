"""When most members fall behind at the same time, they share the cause, and no rebalance is requested for a while."""

from types import SimpleNamespace

import numpy as np
import pytest

from loadwise.assignor.live.common import Common
from loadwise.assignor.live.tuning import CommonTuning

HEALTHY, FULL = 0.5, 1.5


class Group:
    """Four members, the first of which would get partitions in a rebalance."""

    def __init__(self):
        self.common = Common(CommonTuning())

    def refuses(self, second, growing, *, used=FULL, lagging=()):
        """A reading in which the backlog of so many members grows, and that of some lags."""
        before = np.full(4, used)
        judged = SimpleNamespace(before=before, after=before + np.array([0.1, 0, 0, -0.1]))
        count = np.arange(4)
        refusal = self.common.refusal(second * 1000, judged, grows=count < growing, lagging=np.isin(count, lagging))
        assert refusal is None or refusal.soon
        return refusal is not None


@pytest.mark.parametrize(("growing", "refused"), [(0, False), (1, False), (2, False), (3, True), (4, True)])
def test_more_than_half_of_the_members_are_most(growing, refused):
    assert Group().refuses(100, growing) is refused


@pytest.mark.parametrize("used", [HEALTHY, 1.0])
def test_most_backlogs_that_grow_within_capacity_are_waited_for_without_a_limit(used):
    """A single interval may be a pause of all."""
    group = Group()
    assert [group.refuses(second, 3, used=used) for second in (100, 115, 160, 1000)] == [True] * 4
    assert not group.refuses(1005, 0, used=used), "most never fell behind, so nothing has ended"


@pytest.mark.parametrize(("lagging", "held_s"), [((), 15), ((1, 2), 15), ((0,), 60)])
def test_a_rebalance_is_possible_again_after_a_time_that_is_longer_if_its_receivers_lag(lagging, held_s):
    group = Group()
    last = held_s - 1
    assert all(group.refuses(100 + second, 3, lagging=lagging) for second in (0, 5, last))
    assert not group.refuses(100 + held_s, 3, lagging=lagging)
    assert all(group.refuses(200 + second, 0, lagging=lagging) for second in (0, 14)), "members recover one by one"
    assert not group.refuses(215, 0, lagging=lagging)
    assert group.refuses(300, 3), "it begins again"
