"""A simulated group that is scaled: minutes of it here."""

import numpy as np
import pytest

from benchmarks.live.policies import Live
from benchmarks.live.scaling import ScaledGroup, by_lag, by_the_leader, lines
from benchmarks.live.world import Piece, Scene


def played(*loads, scaler):
    """Six members of 600/s; two minutes of each load."""
    pieces = tuple(
        Piece(start_s=120 * number, rates={"t": np.full(36, load / 36)}, capacity={})
        for number, load in enumerate(loads)
    )
    group = ScaledGroup(Scene(name="", pieces=pieces, end_s=120 * len(loads)), Live(), 1, scaler)
    group.run()
    return group


def test_the_leader_has_a_group_scaled_when_it_does_not_suffice_and_not_before():
    assert played(2160, 2160, scaler=by_the_leader).scalings == 0
    grown = played(2160, 4000, scaler=by_the_leader)
    assert 1 <= grown.scalings <= 3
    assert (grown.outcome.overloaded[119], grown.outcome.overloaded[-1]) == (0, 0)


@pytest.mark.parametrize(("threshold", "members"), [(10, 36), (1e9, 1)])
def test_by_lag_the_threshold_decides(threshold, members):
    group = played(2160, scaler=by_lag(threshold))
    assert group._wanted == members


def test_the_table_has_a_line_for_each_scaler():
    head, *told = lines(1, 0.02)
    assert head.split()[0] == "scaled"
    assert [line[:26].strip() for line in told] == [
        "loadwise_members_wanted",
        "KEDA, lagThreshold 10",
        "KEDA, lagThreshold 1,000",
        "KEDA, lagThreshold 3,000",
    ]
