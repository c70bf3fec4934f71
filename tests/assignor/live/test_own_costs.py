"""What a record of each partition costs by a user's own loads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.live.events import Assigned, Read, Said
from loadwise.assignor.live.own_costs import OwnCosts, learned
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import OwnCostTuning
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.model import Assignment, GroupSnapshot, Member

TUNING = OwnCostTuning()
SIZES = st.integers(1, 12)


def nothing(size):
    unknown = np.full(size, np.nan)
    return OwnCosts(unknown, unknown, unknown)


@st.composite
def traffic(draw):
    """The arrivals of partitions in records/s and the load of a record of each."""
    size = draw(SIZES)
    rate = draw(arrays(float, size, elements=st.floats(0, 1e4)))
    each = draw(arrays(float, size, elements=st.floats(10, 1000)))
    return rate, each


@given(traffic())
def test_demand_is_in_the_ratio_of_the_loads(case):
    rate, each = case
    costs = learned(nothing(len(rate)), rate * each, rate, TUNING)
    arrives = (rate * each > 0) & (rate > 0)
    assert bool(costs) == bool(arrives.any())
    if costs:
        demand = rate[arrives] * costs.cost[arrives]
        assert demand == pytest.approx((rate * each)[arrives] / costs.unit)
        assert demand.sum() == pytest.approx(rate[arrives].sum()), "a mean record costs 1"
        assert np.isnan(costs.cost[~arrives]).all()


@given(traffic(), st.floats(0.97, 1.03))
def test_noise_changes_no_cost(case, noise):
    rate, each = case
    costs = learned(nothing(len(rate)), rate * each, rate, TUNING)
    assert learned(costs, rate * each * noise, rate, TUNING).cost is costs.cost


def test_a_partition_keeps_its_cost_while_nothing_arrives():
    rate, load = np.array([100.0, 100.0]), np.array([900.0, 100.0])
    costs = learned(nothing(2), load, rate, TUNING)
    for _ in range(30):
        costs = learned(costs, load * [0, 3], rate * [0, 1], TUNING)
    assert costs.cost.tolist() == pytest.approx([1.8, 0.6], rel=0.1)


class Group:
    """Member ``a`` has the partitions 0 and 1, ``b`` 2 and 3; 100 records/s arrive in each, large ones in 0 and 1."""

    def __init__(self):
        self.watch = GroupWatch(LiveSettings(), Weighted(), slack_s=1.0)
        self.group = GroupSnapshot.of([Member(id=name, topics=["t"]) for name in "ab"], {"t": 4})
        self.assign([0, 0, 1, 1], 0)

    def assign(self, owner, second):
        target = Assignment(self.group, np.array(owner, np.int32))
        self.watch.handle(Assigned(at_ms=second * 1000, target=target, generation=1, duration_ms=0))

    def read(self, second, own=None):
        positions = np.column_stack([np.full(4, 100.0 * second), np.zeros(4), np.ones(4), np.full(4, np.inf)])
        said = {"a": Said(per_s=150.0), "b": Said(per_s=1350.0)}  # as long as they have these records
        rows = [("t", number) for number in range(4)]
        own = None if own is None else {"t": np.array(own)}
        return self.watch.handle(Read(at_ms=second * 1000, partitions=rows, positions=positions, said=said, own=own))


def test_a_group_is_balanced_by_its_own_loads():
    group = Group()
    for second in (5, 10, 15):
        group.read(second)
    decisions = [group.read(second, [900.0, 900.0, 100.0, 100.0]) for second in range(20, 80, 5)]
    assert any(decision.ask for decision in decisions)
    assert all(decision.saved_s is None for decision in decisions)
    assert decisions[-1].judgement.before.tolist() == pytest.approx([360 / 270, 40 / 270])
    assert decisions[-1].judgement.after.tolist() == pytest.approx([200 / 270, 200 / 270])
    assert group.watch.loads()["t"].tolist() == pytest.approx([180, 180, 20, 20])


def test_capacities_are_in_the_unit_of_the_loads():
    group = Group()
    for second in (5, 10, 15):
        group.read(second)
    assert group.watch.knowledge.estimates.known_of("ab") == {"a": 150, "b": 1350}
    group.read(20, [900.0, 900.0, 100.0, 100.0])
    assert group.watch.knowledge.estimates.known_of("ab") == {"a": pytest.approx(270), "b": 0}, (
        "b has too little to do to tell"
    )
    capacities = group.watch.knowledge.estimates.of({"a": 0.0, "b": 0.0}, 20_000)
    assert capacities.per_s.tolist() == pytest.approx([270, 270])


def test_without_own_loads_records_cost_alike():
    group = Group()
    for second in (5, 10, 15):
        group.read(second, [0.0] * 4)
    assert group.watch.loads()["t"].tolist() == pytest.approx([100] * 4)
