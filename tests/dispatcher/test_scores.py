"""The published arithmetic of Astraea's Dispatcher, and what holds for any loads."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.dispatcher import BadDispatcherError
from loadwise.dispatcher.rounds import SmoothRoundRobin
from loadwise.dispatcher.scores import check_weights, node_scores, outliers, weighted_scores

loads = st.dictionaries(st.integers(0, 9), st.floats(0, allow_infinity=False), min_size=1)
weights = st.dictionaries(st.integers(0, 9), st.integers(1, 50), min_size=1)


def test_both_published_examples() -> None:
    assert node_scores({1: 600, 2: 500, 3: 400}) == pytest.approx({1: 48, 2: 60, 3: 72})
    assert node_scores({1: 400, 2: 200, 3: 200}) == pytest.approx({1: 40, 2: 80, 3: 80})


@given(loads)
def test_less_load_is_a_higher_score_between_0_and_120(loads: dict[int, float]) -> None:
    scores = node_scores(loads)
    assert scores.keys() == loads.keys()
    assert all(0 <= score <= 120 for score in scores.values())
    for one, other in zip(sorted(loads, key=loads.__getitem__), sorted(loads, key=loads.__getitem__)[1:], strict=False):
        assert scores[one] >= scores[other]


@given(loads, st.floats(1e-3, 1e3))
def test_the_unit_of_loads_does_not_matter(loads: dict[int, float], factor: float) -> None:
    loads = {node: min(max(load, 1e-6), 1e9) for node, load in loads.items()}
    assert node_scores({node: load * factor for node, load in loads.items()}) == pytest.approx(node_scores(loads))


def test_the_score_of_several_metrics_is_their_weighted_sum() -> None:
    metrics = {"network": {1: 600, 2: 500, 3: 400}, "disk": {1: 200, 2: 400, 3: 200}}
    assert weighted_scores(metrics, {"network": 2.0, "disk": 0.5}, {1, 2, 3}) == pytest.approx({1: 136, 2: 140, 3: 184})


@pytest.mark.parametrize("missing", [{}, {2: math.nan}, {2: math.inf}, {2: -1.0}])
def test_a_broker_without_a_value_is_average(missing: dict[int, float]) -> None:
    assert weighted_scores({"cpu": {1: 3, 3: 1, **missing}}, {}, {1, 2, 3}) == pytest.approx({1: 30, 2: 60, 3: 90})


def test_without_any_value_there_are_no_scores() -> None:
    assert weighted_scores({"cpu": {}}, {}, {1, 2}) is None
    assert weighted_scores({"cpu": {1: 5}, "disk": {}}, {"cpu": 0.0}, {1, 2}) is None


@pytest.mark.parametrize(
    ("latency_s", "slow"),
    [
        ({1: 0.005, 2: 0.1, 3: 0.006}, {2}),
        ({1: 0.004, 2: 0.018, 3: 0.004}, set()),
        ({1: 0.1, 2: 0.3, 3: 0.2}, set()),
        ({1: 0.1, 2: 0.5}, {2}),
        ({2: 5.0}, set()),
        ({}, set()),
    ],
)
def test_an_outlier_is_slow_beside_the_median(latency_s: dict[int, float], slow: set[int]) -> None:
    assert outliers(latency_s) == slow


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"cup": 1.0}, "'cup'"), ({"cpu": -1.0}, "'cpu'"), ({"cpu": math.nan}, "nan"), ({"cpu": 0, "disk": 0}, "all")],
)
def test_a_wrong_weight_is_refused_by_name(wrong: dict[str, float], named: str) -> None:
    with pytest.raises(BadDispatcherError, match=named):
        check_weights(wrong, ["cpu", "disk"])


def turns(rounds: SmoothRoundRobin, weights: dict[int, float], count: int, cost: float = 1.0) -> list[int]:
    found = []
    for _ in range(count):
        found.append(rounds.next(weights))
        rounds.charge(found[-1], cost, weights)
    return found


@pytest.mark.parametrize("cost", [1.0, 0.01])
def test_the_published_order_of_turns(cost: float) -> None:
    assert turns(SmoothRoundRobin(), {1: 5, 2: 1, 3: 1}, 14, cost) == [1, 1, 2, 1, 3, 1, 1] * 2


@given(weights)
def test_a_round_has_as_many_turns_of_each_as_its_weight(weights: dict[int, float]) -> None:
    weights = dict(sorted(weights.items()))
    assert Counter(turns(SmoothRoundRobin(), weights, int(sum(weights.values())))) == weights


@given(weights, st.lists(st.floats(0.01, 1), min_size=1, max_size=200))
def test_costs_are_shared_by_weight_whatever_each_turn_costs(weights: dict[int, float], costs: list[float]) -> None:
    rounds = SmoothRoundRobin()
    spent = dict.fromkeys(weights, 0.0)
    for cost in costs:
        node = rounds.next(weights)
        rounds.charge(node, cost, weights)
        spent[node] += cost
    for node, weight in weights.items():
        assert abs(spent[node] - sum(costs) * weight / sum(weights.values())) <= len(weights)


def test_a_slow_broker_does_not_get_more_because_its_batches_are_fuller() -> None:
    rounds, spent = SmoothRoundRobin(), dict.fromkeys([1, 2, 3], 0.0)
    for _ in range(1000):
        node = rounds.next(dict.fromkeys(spent, 1.0))
        cost = 1.0 if node == 2 else 0.1
        rounds.charge(node, cost, dict.fromkeys(spent, 1.0))
        spent[node] += cost
    assert max(spent.values()) / min(spent.values()) < 1.1
