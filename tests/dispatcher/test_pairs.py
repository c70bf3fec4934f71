"""What the benchmark of producers concludes from pairs of runs."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.dispatcher.pairs import compare


def test_pairs_that_agree_leave_no_doubt() -> None:
    found = compare([(1.0, 2.0), (10.0, 20.0), (5.0, 10.0)])
    assert (found.theirs, found.ours, found.ratio, found.low, found.high) == (5.0, 10.0, 2.0, 2.0, 2.0)


@pytest.mark.parametrize("pairs", [5, 15])
def test_nineteen_of_twenty_intervals_hold_the_median(pairs: int) -> None:
    draw, hits = Random(3), 0
    for _ in range(40):
        found = compare([(1.0, draw.lognormvariate(0, 0.3)) for _ in range(pairs)])
        hits += found.low <= 1.0 <= found.high
    assert hits >= 34
