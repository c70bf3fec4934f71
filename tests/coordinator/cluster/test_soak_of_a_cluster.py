"""Days of a whole cluster under a fake clock: all protocols, faults, restarts, snapshots. ``make test-long``."""

from __future__ import annotations

import pytest
from restarting_walk import soak
from seeds import SEED


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("day", range(5))
def test_a_day(day: int) -> None:
    walk = soak(24, SEED + day)
    assert walk.steps > 10_000
    assert len(walk.given) > 300


def test_an_hour() -> None:
    soak(1, SEED)
