"""Real groups whose load shifts while nobody comes or goes, on both brokers: they are even again within a minute."""

import time

import pytest
from live_group import LiveGroup
from live_scenes import DRIFT_RATES, MINUTE_S, drift

LONG = pytest.mark.long
KAFKA_PYTHON, AIOKAFKA = "kafka-python", "aiokafka"
GROUPS = [
    pytest.param((KAFKA_PYTHON,) * 3, "weighted", id="kafka-python"),
    pytest.param((KAFKA_PYTHON,) * 3, "cooperative-weighted", id="kafka-python-cooperative", marks=LONG),
    pytest.param((AIOKAFKA,) * 3, "weighted", id="aiokafka", marks=LONG),
    pytest.param((AIOKAFKA,) * 3, "cooperative-weighted", id="aiokafka-cooperative"),
    pytest.param((AIOKAFKA, KAFKA_PYTHON, AIOKAFKA), "weighted", id="mixed", marks=LONG),
    pytest.param((AIOKAFKA, KAFKA_PYTHON, AIOKAFKA), "cooperative-weighted", id="mixed-cooperative", marks=LONG),
]
pytestmark = [pytest.mark.kafka, pytest.mark.live]


@pytest.mark.parametrize(("clients", "assignor"), GROUPS)
def test_drift(broker, topic_name, group_id, clients, assignor):
    with LiveGroup(broker, topic_name, group_id, assignor=assignor, rates=DRIFT_RATES) as group:
        drift(group, clients)


@pytest.mark.parametrize(("clients", "assignor"), GROUPS)
def test_slow(broker, topic_name, group_id, clients, assignor):
    """Members of 900, 900 and 120 records/s, 900 arriving: a minute later nobody is behind.

    The slow one can do one partition of 75/s. It is given no more, at the latest by a rebalance for the load.
    """
    with LiveGroup(broker, topic_name, group_id, assignor=assignor, rates=[75.0] * 12) as group:
        for client, speed in zip(clients, (900.0, 900.0, 120.0), strict=True):
            slow = group.join(client, speed=speed)
        group.wait_until(lambda: group.settled(3), why="joining")
        began, generation = time.monotonic(), group.generation
        group.wait_until(lambda: len(slow.owned) == 1 and group.settled(3), MINUTE_S, why="relief of the slow one")
        group.wait_until(lambda: group.lag <= 900, MINUTE_S - (time.monotonic() - began), why="a lag below 900")
        assert group.generation - generation <= (3 if assignor == "weighted" else 4)
