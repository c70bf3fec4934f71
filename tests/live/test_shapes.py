"""Real groups whose programs spend their time in various ways, on both brokers: an overloaded member is relieved.

Two of the shapes are played each day, by a seed that is printed; `make test-live SCENES=live` plays all.
"""

import datetime
import os
import random
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
SEED = int(os.environ.get("LOADWISE_SEED", datetime.datetime.now(datetime.UTC).toordinal()))
TODAY = set(random.Random(SEED).sample(sorted(CASES), 2))
NAMES = [name if name in TODAY else pytest.param(name, marks=pytest.mark.long) for name in CASES]
QUICK = {"auto_commit_interval_ms": 1000, "heartbeat_interval_ms": 1000, "session_timeout_ms": 6000}


@pytest.mark.parametrize("name", NAMES)
def test_an_overloaded_member_is_relieved_whatever_its_program_looks_like(broker, name):
    program, client = CASES[name]
    more = QUICK | ({"enable_auto_commit": False} if program == "pool" else {})
    unique = f"shape-{uuid.uuid4().hex}"
    with LiveGroup(broker, unique, unique, rates=[75.0] * 12, tick_s=0.1, shape=program, **more) as group:
        print(f"LOADWISE_SEED={SEED}: {name} {shape(group, (client,) * 3)}")
