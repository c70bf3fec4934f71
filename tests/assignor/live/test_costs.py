"""The mean cost of a member's records, and what users may state."""

import numpy as np
import pytest

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.live.costs import MeanCosts
from loadwise.assignor.live.settings import LiveSettings


def test_a_member_is_known_by_what_it_has_processed_lately():
    costs = MeanCosts()
    assert costs.of("a") == 1.0
    costs.saw(["a", "b", "c"], np.array([100.0, 10.0, 0.0]), np.array([100.0, 100.0, 0.0]), 5000)
    assert costs.of("a") == pytest.approx(1)
    assert costs.of("b") == pytest.approx(10)
    assert costs.of("c") == costs.of("newcomer") == pytest.approx(200 / 110)
    for _ in range(60):
        costs.saw(["a", "b"], np.array([10.0, 10.0]), np.array([100.0, 100.0]), 5000)
    assert costs.of("a") == pytest.approx(10, rel=0.1)


@pytest.mark.parametrize("cost", [0, -1, float("inf"), float("nan"), "1", None])
def test_a_cost_that_cannot_be_names_its_topic(cost):
    with pytest.raises(BadGroupError, match="cost of costly"):
        LiveSettings(cost={"cheap": 1, "costly": cost})


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"healthy": "x"}, "healthy is 'x'; it must be a finite number of 0 or more"),
        ({"most_per_hour": None}, "most_per_hour is None; it must be"),
        ({"patience_s": True}, "patience_s is True; it must be"),
        ({"least_gain": -0.1}, "least_gain is -0.1; it must be"),
        ({"dry_run": "no"}, "dry_run is 'no'; it must be True or False"),
        ({"cost": ["t"]}, r"cost is \['t'\]; it must map topics to numbers"),
        ({"drain_s": 0}, "drain_s is 0"),
    ],
)
def test_a_setting_that_cannot_be_is_named(setting, complaint):
    with pytest.raises(BadGroupError, match=complaint):
        LiveSettings(**setting)
