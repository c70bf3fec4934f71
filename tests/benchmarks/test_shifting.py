"""Loads that keep shifting: `weighted` loses nothing to the assignors that count partitions."""

import pytest

from benchmarks.live.shifting import SCENES, Played, missed, played, scene


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_is_an_hour_of_a_group(name):
    made = scene(name, 1)
    assert made.end_s == 3600
    assert made.pieces[0].start_s == 0
    assert all(piece.rates["t"].min() >= 0 for piece in made.pieces)
    assert [piece.start_s for piece in made.pieces] == sorted({piece.start_s for piece in made.pieces})


def one(mean, p95=1.0, still=0.0):
    return Played(mean, p95, 2 * p95, 3, still)


def test_goals_compare_with_the_better_of_the_others():
    stock = {"roundrobin": [one(1.0, 2.0), one(3.0, 4.0)], "sticky": [one(1.5, 2.0), one(2.0, 4.0)]}
    assert list(missed([one(1.0), one(2.0)], stock)) == []
    assert list(missed([one(1.1), one(2.6)], stock)) == []
    assert list(missed([one(2.1), one(2.1)], stock)) == ["mean 2.10 > 2.03", "seed 0: 2.10 > 2.00"]
    assert list(missed([one(1.0, 4.0), one(1.0, 4.0)], stock)) == ["p95 4.00 > 3.95"]
    assert list(missed([one(1.0, still=0.04), one(1.0)], stock)) == ["still 4.0%"]


@pytest.mark.long
@pytest.mark.parametrize("name", ["hot set every 30 s", "bursts of 8 s in 60", "slow 20 s in 120", "several at once"])
def test_goals_are_met(name):
    of = {policy: [played(name, policy, seed) for seed in (21, 22)] for policy in ("weighted", "roundrobin", "sticky")}
    assert list(missed(of.pop("weighted"), of)) == []
