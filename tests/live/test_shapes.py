"""Real groups whose programs spend their time in various ways, on both brokers: an overloaded member is relieved."""

import uuid

import pytest
from live_group import LiveGroup
from live_scenes import AIOKAFKA, CONFLUENT, KAFKA_PYTHON, shape

pytestmark = [pytest.mark.kafka, pytest.mark.live]

ALL = (KAFKA_PYTHON, AIOKAFKA, CONFLUENT)
CASES = {
    f"{name}-{client}": (name, client)
    for name, clients in {
        "in-line": ALL,
        "record-by-record": (KAFKA_PYTHON, AIOKAFKA),
        "rate-limit": ALL,
        "batch": ALL,
        "tasks": (AIOKAFKA,),
        "pool": (KAFKA_PYTHON,),
    }.items()
    for client in clients
}
QUICK = {"auto_commit_interval_ms": 1000, "heartbeat_interval_ms": 1000, "session_timeout_ms": 6000}


def play(broker, program, client):
    more = QUICK | ({"enable_auto_commit": False} if program == "pool" else {})
    name = f"shape-{uuid.uuid4().hex}"
    with LiveGroup(broker, name, name, rates=[75.0] * 12, tick_s=0.1, shape=program, **more) as group:
        return shape(group, (client,) * 3)


@pytest.mark.parametrize("name", CASES)
def test_shape(side_by_side, record, name):
    record(side_by_side(play, CASES, at_once=2)[name].result())
