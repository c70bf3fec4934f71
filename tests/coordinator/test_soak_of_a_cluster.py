"""24 hours of a whole cluster under a fake clock: all protocols at once, faults, restarts, snapshots. ``make soak``."""

from __future__ import annotations

import os

import pytest
from restarting_walk import soak

SEED = int(os.environ.get("LOADWISE_SOAK_SEED", "1"))
"""Another one is another day."""


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("day", range(5))
def test_a_day(day: int) -> None:
    walk = soak(24, SEED + day)
    assert walk.steps > 10_000
    assert len(walk.given) > 300


def test_an_hour() -> None:
    soak(1, SEED)
