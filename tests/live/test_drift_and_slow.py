"""Real groups whose load shifts while no member joins or leaves, on both brokers."""

import uuid

import pytest
from live_group import LiveGroup
from live_scenes import DRIFT_RATES, GROUPS, drift, slow

pytestmark = [pytest.mark.kafka, pytest.mark.live]


def play_drift(broker, clients, assignor):
    name = f"drift-{uuid.uuid4().hex}"
    with LiveGroup(broker, name, name, assignor=assignor, rates=DRIFT_RATES, tick_s=0.1) as group:
        return drift(group, clients)


def play_slow(broker, clients, assignor):
    name = f"slow-{uuid.uuid4().hex}"
    with LiveGroup(broker, name, name, assignor=assignor, rates=[75.0] * 12, tick_s=0.1) as group:
        return slow(group, clients)


@pytest.mark.parametrize("name", GROUPS)
def test_drift(side_by_side, record, name):
    record(side_by_side(play_drift, GROUPS, at_once=2)[name].result())


@pytest.mark.parametrize("name", GROUPS)
def test_slow(side_by_side, record, name):
    record(side_by_side(play_slow, GROUPS, at_once=2)[name].result())
