"""Real groups whose load shifts while nobody comes or goes, on both brokers: they are even again within a minute."""

import uuid

import pytest
from live_group import LiveGroup
from live_scenes import DRIFT_RATES, NAMES, drift, played_with, slow

pytestmark = [pytest.mark.kafka, pytest.mark.live]


def play_drift(broker, clients, assignor):
    name = uuid.uuid4().hex
    with LiveGroup(broker, f"drift-{name}", f"drift-{name}", assignor=assignor, rates=DRIFT_RATES, tick_s=0.1) as group:
        return drift(group, clients)


def play_slow(broker, clients, assignor):
    name = uuid.uuid4().hex
    with LiveGroup(broker, f"slow-{name}", f"slow-{name}", assignor=assignor, rates=[75.0] * 12, tick_s=0.1) as group:
        return slow(group, clients)


@pytest.mark.parametrize("name", NAMES)
def test_drift(side_by_side, name):
    print(side_by_side(play_drift, played_with(name), at_once=2)[name].result())


@pytest.mark.parametrize("name", NAMES)
def test_slow(side_by_side, name):
    print(side_by_side(play_slow, played_with(name), at_once=2)[name].result())
