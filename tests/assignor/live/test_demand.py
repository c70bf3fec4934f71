"""What a partition asks of its member, at the edges of what is known."""

from __future__ import annotations

import numpy as np

from loadwise.assignor.live.demand import demand

UNKNOWN = np.full(3, np.nan)


def test_where_no_rate_is_known_the_backlog_alone_counts() -> None:
    """The first reading of a topic with old timestamps: a mean in place of the empty partitions would outweigh it."""
    assert demand(UNKNOWN, UNKNOWN, np.array([60.0, 0.0, 30.0]), 30.0).tolist() == [2.0, 0.0, 1.0]


def test_where_some_rates_are_known_the_others_are_left_unknown() -> None:
    rate = np.array([5.0, np.nan, np.nan])
    asked = demand(rate, UNKNOWN, np.array([0.0, 0.0, 30.0]), 30.0)
    assert asked[0] == 5.0
    assert np.isnan(asked[1])
    assert asked[2] == 1.0
