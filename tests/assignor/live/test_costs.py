"""What records cost by what members tell, and what users may state."""

import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.live.costs import TopicCosts
from loadwise.assignor.live.settings import LiveSettings


@pytest.mark.parametrize("cost", [0, -1, float("inf"), float("nan"), "1", None])
def test_a_cost_that_cannot_be_names_its_topic(cost):
    with pytest.raises(BadGroupError, match="cost of costly"):
        LiveSettings(cost={"cheap": 1, "costly": cost})


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"healthy": "x"}, "healthy is 'x'; it must be a finite number of 0 or more"),
        ({"standstill": None}, "standstill is None; it must be"),
        ({"standstill": 2}, "standstill is 2; it must be a share"),
        ({"most_per_hour": 6}, "most_per_hour is no longer a setting; use standstill"),
        ({"healthy": True}, "healthy is True; it must be"),
        ({"least_gain": -0.1}, "least_gain is -0.1; it must be"),
        ({"dry_run": "no"}, "dry_run is 'no'; it must be True or False"),
        ({"cost": ["t"]}, r"cost is \['t'\]; it must map topics to numbers"),
    ],
)
def test_a_setting_that_cannot_be_is_named(setting, complaint):
    with pytest.raises(BadGroupError, match=complaint):
        LiveSettings(**setting)


RATES = {"cheap": 2000.0, "costly": 200.0, "other": 100.0}


def learned(*told, rates=RATES):
    costs = TopicCosts()
    for number, each_s in enumerate(told):
        costs.told(f"m{number}", each_s, 0)
    costs.settle(rates)
    return costs


def test_members_of_any_speed_agree_on_what_records_cost():
    costs = learned(
        {"cheap": 0.001, "costly": 0.0095},
        {"cheap": 0.006, "costly": 0.066, "other": 0.006},
        {"costly": 0.02, "other": 0.002},
        {"cheap": 0.001, "costly": 5.0},  # is not believed: it is one of several
    )
    assert costs.of_topic["costly"] / costs.of_topic["cheap"] == pytest.approx(10, rel=0.15)
    assert costs.of_topic["cheap"] == costs.of_topic["other"]


def test_a_record_of_the_busiest_topic_costs_1():
    cost = learned({"cheap": 0.001, "costly": 0.01, "other": 0.1}).of_topic
    assert cost == pytest.approx({"cheap": 1.0, "costly": 10.0, "other": 100.0})
    assert learned({"cheap": 0.001, "costly": 0.01}, rates={}).of_topic == pytest.approx({"cheap": 1.0, "costly": 10.0})


def test_topics_that_no_member_reads_with_others_are_not_compared_with_them():
    costs = learned({"cheap": 0.001, "costly": 0.01}, {"c": 0.001, "d": 0.001}).of_topic
    assert costs.keys() == {"cheap", "costly"}
    costs = learned({"cheap": 0.001, "costly": 0.01}, {"c": 0.004, "d": 0.004}, {"cheap": 0.001, "c": 0.001}).of_topic
    assert costs == {"cheap": 1.0, "costly": pytest.approx(10.0), "c": 1.0}, "the busiest one is that of comparison"


def test_what_is_remembered_of_topics_that_are_gone_does_not_grow():
    """Each is off by a little when it goes."""
    costs, sizes = TopicCosts(), []
    for day in range(100, 200):
        for seconds in (0.0114, 0.0100):
            costs.told("m0", {"cheap": 0.001, f"costly-{day}": seconds}, day)
            costs.settle({"cheap": 100.0, f"costly-{day}": 10.0})
        sizes.append(len(pickle.dumps(costs)))
    assert sizes[-1] == sizes[9]


@given(
    st.lists(
        st.dictionaries(st.sampled_from(sorted(RATES)), st.floats(allow_nan=True, allow_infinity=True)), max_size=4
    )
)
def test_whatever_members_tell_costs_are_numbers_above_0(told):
    assert all(0 < each < 1e6 for each in learned(*told).of_topic.values())


def test_what_the_gone_have_told_is_forgotten():
    costs = learned(
        {"cheap": 0.001, "costly": 0.01}, {"cheap": 0.001, "costly": 0.02}, {"cheap": 0.001, "costly": 0.02}
    )
    costs.keep(["m0"])
    costs.told("m0", {"cheap": 0.001, "costly": 0.0101}, 0)
    assert costs.settle(RATES)
    assert costs.of_topic["costly"] / costs.of_topic["cheap"] == pytest.approx(10, rel=0.2)


def test_topics_that_are_gone_have_no_cost_any_more():
    costs = TopicCosts()
    for day in range(3):
        costs.told("m0", {f"cheap-{day}": 0.001, f"costly-{day}": 0.01}, 0)
        assert costs.settle({f"cheap-{day}": 100.0, f"costly-{day}": 10.0})
    assert costs.of_topic.keys() == {"cheap-2", "costly-2"}


TWO = {"cheap": 0.001, "costly": 0.01}


@pytest.mark.parametrize(
    ("octaves", "cost"),
    [(0.69, 1), (0.71, 2**0.71), (-0.69, 1), (-0.71, 2**-0.71), (6.9, 2**6.9), (7.1, 2**7), (-7.1, 2**-7)],
)
def test_a_topic_gets_a_cost_if_it_clearly_differs_from_the_busiest_one(octaves, cost):
    found = learned({"cheap": 0.001, "costly": 0.001 * 2**octaves}).of_topic
    assert found == ({} if cost == 1 else pytest.approx({"cheap": 1.0, "costly": cost}))


@pytest.mark.parametrize(("octaves", "cost"), [(1.24, 2), (0.76, 2), (1.26, 2**1.26), (0.51, 2**0.51), (0.49, 1)])
def test_a_cost_changes_if_it_clearly_differs_from_the_last_one(octaves, cost):
    costs = learned({"cheap": 0.001, "costly": 0.002})
    costs.told("m0", {"cheap": 0.001, "costly": 0.001 * 2**octaves}, 0)
    assert costs.settle(RATES) is (cost != 2)
    assert costs.of_topic == ({} if cost == 1 else pytest.approx({"cheap": 1.0, "costly": cost}))


@pytest.mark.parametrize(("rate", "unit"), [(199, "first"), (200, "second")])
def test_a_topic_with_twice_the_arrivals_becomes_the_busiest(rate, unit):
    costs = TopicCosts()
    for arrivals in ({"first": 100.0, "second": 50.0}, {"first": 100.0, "second": float(rate)}):
        costs.told("m0", {"first": 0.001, "second": 0.004}, 0)
        costs.settle(arrivals)
    assert costs.of_topic[unit] == 1


def test_reports_are_news_until_they_are_settled():
    costs = TopicCosts()

    def is_news(*reports):
        for each_s in reports:
            costs.told("m0", each_s, 0)
        return costs.news

    assert not is_news(), "there was no report"
    assert not is_news({"cheap": 0.001}, {"cheap": 0.001, "costly": math.inf}), "of a single topic"
    assert is_news(TWO)
    assert is_news(TWO)
    assert costs.settle(RATES) is True
    assert not is_news(TWO)
    assert costs.settle(RATES) is False
    assert is_news(TWO | {"costly": 0.02})
    assert not learned({"cheap": 0.001}).settle(RATES)


def test_a_member_that_reports_a_single_topic_takes_its_last_report_back():
    costs = learned(TWO)
    costs.told("m0", {"cheap": 0.001}, 1)
    assert costs.speed_of("m0") == (0.0, 0)


def test_reports_of_members_change_no_stated_cost():
    costs = TopicCosts({"costly": 3.0})
    costs.told("m0", TWO, 0)
    assert not costs.news
    assert costs.speed_of("m0") == (0.0, 0)
    assert costs.of_topic == {"costly": 3.0}


@pytest.mark.parametrize(
    ("rates", "each_s", "per_s"),
    [
        (RATES, TWO, 1000),
        (RATES, {"cheap": 0.001, "costly": 0.02}, 4000 / 6),
        (RATES, TWO | {"new": 9.0}, 1000),  # its cost is not known yet
        ({"cheap": 2000.0}, {"cheap": 0.001, "costly": 0.02}, 1000),  # nothing arrives in the other
        ({}, {"cheap": 0.001, "costly": 0.021}, 11 / 0.022),  # nothing arrives in both
        (RATES, {"c": 0.001, "d": 0.01}, 0),
    ],
)
def test_the_speed_of_a_member_is_that_of_its_topics_weighted_by_arrivals(rates, each_s, per_s):
    costs = learned(TWO, rates=rates)
    costs.told("m1", each_s, 7)
    assert costs.speed_of("m1") == (pytest.approx(per_s), 7)
    assert costs.speed_of("another") == (0.0, 0)


STATED, LEARNED = TopicCosts({"costly": 10.0}), learned(TWO)


@pytest.mark.parametrize(
    ("costs", "member", "rates", "cost"),
    [
        (STATED, "a", [50, 1, 1, 1], 1),
        (STATED, "b", [1, 50, 25, 1], 4),
        (STATED, "b", [1, math.nan, 25, 1], 10),
        (STATED, "b", [1, math.nan, 0, 1], 5.5),  # nothing arrives: the mean of its partitions
        (STATED, "c", [1, 1, 1, 25], 10),
        (STATED, "empty", [1, 1, 1, 1], 1),
        (STATED, "gone", [1, 1, 1, 1], 1),
        (LEARNED, "a", [50, 1, 1, 1], 1),
        (LEARNED, "b", [1, 50, 25, 1], 0),  # the rate of mixed records depends on the mix
        (LEARNED, "c", [1, 1, 1, 25], 10),
        (LEARNED, "gone", [1, 1, 1, 1], 0),
        (TopicCosts(), "b", [1, 50, 25, 1], 1),
        (TopicCosts(), "gone", [1, 1, 1, 1], 1),
    ],
)
def test_the_records_of_a_member_cost_the_mean_of_its_topics(costs, member, rates, cost):
    """Two partitions of each topic: the first of cheap is that of a, b has one of both, c has one of costly."""
    group = SimpleNamespace(owner=np.array([0, 1, 1, 2]), topics=("cheap", "costly"), topic_of=np.array([0, 0, 1, 1]))
    watched = SimpleNamespace(names=("a", "b", "c", "empty"), group=group, of_group=lambda array: array)
    assert costs.of_member(member, watched, np.array(rates, float)) == pytest.approx(cost)


def test_before_the_first_assignment_only_stated_costs_give_a_mean():
    assert [each.of_member("a", None, np.empty(0)) for each in (STATED, LEARNED, TopicCosts())] == [1.0, 0.0, 1.0]
