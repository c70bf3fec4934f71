"""What records cost by what members tell, and what users may state."""

import pickle

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
        ({"most_per_hour": None}, "most_per_hour is None; it must be"),
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


@given(st.dictionaries(st.sampled_from(sorted(RATES)), st.floats(0.9, 1.2), min_size=2))
def test_topics_that_differ_little_do_not_differ(each_s):
    costs = TopicCosts()
    costs.told("a", each_s, 0)
    assert not costs.settle(RATES)
    assert costs.of_topic == {}


def test_who_tells_of_a_single_topic_tells_nothing():
    assert learned({"cheap": 0.001}, {"costly": 0.01}).of_topic == {}


def test_topics_that_no_member_reads_with_others_are_not_compared_with_them():
    costs = learned({"cheap": 0.001, "costly": 0.01}, {"c": 0.001, "d": 0.001}).of_topic
    assert costs.keys() == {"cheap", "costly"}
    costs = learned({"cheap": 0.001, "costly": 0.01}, {"c": 0.004, "d": 0.004}, {"cheap": 0.001, "c": 0.001}).of_topic
    assert costs == {"cheap": 1.0, "costly": pytest.approx(10.0), "c": 1.0}, "the busiest one is that of comparison"


def test_a_cost_does_not_go_to_and_fro():
    costs = learned({"cheap": 0.001, "costly": 0.001 * 2**2.26})
    before = costs.of_topic
    for octaves in (2.24, 2.15, 2.5, 2.3, 2.02):
        costs.told("m0", {"cheap": 0.001, "costly": 0.001 * 2**octaves}, 0)
        assert not costs.settle(RATES)
    assert costs.of_topic == before
    costs.told("m0", {"cheap": 0.001, "costly": 0.001}, 0)
    assert costs.settle(RATES)
    assert costs.of_topic == {}


def test_another_topic_may_become_the_busiest():
    costs = learned({"cheap": 0.001, "costly": 0.01})
    costs.told("m0", {"cheap": 0.00101, "costly": 0.01}, 0)
    assert costs.settle(RATES | {"costly": 9000.0})
    assert costs.of_topic == pytest.approx({"cheap": 0.1, "costly": 1.0})


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


def test_costs_stay_where_two_topics_take_turns_as_the_busiest():
    """Each change would make the group forget what its members were seen to do."""
    costs = TopicCosts()
    told = {"a": 1.0, "b": 2.0, "c": 2.0**0.6}
    costs.told("m0", told, 0)
    costs.settle({"a": 100.0, "b": 99.0, "c": 50.0})
    changes = 0
    for turn in range(10):
        costs.told("m0", told | {"c": told["c"] * (1 + turn / 1000)}, 0)
        changes += costs.settle({"a": 100.0, "b": 101.0 - 2 * (turn % 2), "c": 50.0})
    assert changes == 0
    costs.told("m0", told, 0)
    assert costs.settle({"a": 100.0, "b": 300.0, "c": 50.0})
    assert costs.of_topic["b"] == costs.of_topic["c"]


def test_topics_that_are_gone_have_no_cost_any_more():
    costs = TopicCosts()
    for day in range(3):
        costs.told("m0", {f"cheap-{day}": 0.001, f"costly-{day}": 0.01}, 0)
        assert costs.settle({f"cheap-{day}": 100.0, f"costly-{day}": 10.0})
    assert costs.of_topic.keys() == {"cheap-2", "costly-2"}
