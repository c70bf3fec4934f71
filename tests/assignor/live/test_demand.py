"""What a partition asks of its member, at the edges of what is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadwise.assignor.live.demand import demand
from loadwise.assignor.live.tuning import DemandTuning
from loadwise.assignor.model import Floats

UNKNOWN = np.full(3, np.nan)


def asked(rate: Floats, backlog: Floats) -> Floats:
    every = slice(None)
    return demand(rate, backlog, every, capacity_per_s=None, tuning=DemandTuning())


def test_where_no_rate_is_known_the_backlog_alone_counts() -> None:
    """The first reading of a topic with old timestamps: a mean in place of the empty partitions would outweigh it."""
    assert asked(UNKNOWN, np.array([60.0, 0.0, 30.0])).tolist() == [2.0, 0.0, 1.0]


def test_where_some_rates_are_known_the_others_are_left_unknown() -> None:
    rate = np.array([5.0, np.nan, np.nan])
    assert asked(rate, np.array([0.0, 0.0, 30.0])) == pytest.approx([5.0, math.nan, 1.0], nan_ok=True)


def test_a_group_without_spare_capacity_shares_what_arrives() -> None:
    rate, backlog = np.array([60.0, 30.0, 0.0]), np.array([300.0, 0.0, 0.0])

    def of_group(capacity_per_s: float) -> list[float]:
        rows = np.arange(2)
        options = {"capacity_per_s": capacity_per_s, "tuning": DemandTuning()}
        return demand(rate, backlog, rows, **options).tolist()

    assert of_group(1000.0) == [60.0 + 300 / 30, 30.0, 0.0]
    assert of_group(93.0) == [60.0 + 3.0, 30.0, 0.0], "it takes the whole group 100 s"
    assert of_group(90.0) == [60.0, 30.0, 0.0]
