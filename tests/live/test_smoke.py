"""One group of each client on Apache Kafka: the load shifts, a rebalance is requested, and no record is lost.

It asserts no time, so it guards every landing. The other scenes measure: `make nightly`.
"""

import uuid

import pytest
from live_group import LiveGroup
from live_scenes import AIOKAFKA, CONFLUENT, KAFKA_PYTHON, drift

pytestmark = [pytest.mark.kafka, pytest.mark.live]

CASES = {client: (client,) for client in (KAFKA_PYTHON, AIOKAFKA, CONFLUENT)}
SPEED = 300.0


def play(broker, client):
    name = f"smoke-{uuid.uuid4().hex}"
    # No session ends because the machine is busy: others would process again what the member had not committed.
    with LiveGroup(broker, name, name, rates=[SPEED / 8] * 12, tick_s=0.1, session_timeout_ms=60_000) as group:
        drift(group, (client,) * 3, SPEED)


@pytest.mark.parametrize("broker", ["apache"], indirect=True)
@pytest.mark.parametrize("client", CASES)
def test_an_overloaded_member_is_relieved_and_no_record_is_lost(side_by_side, client):
    side_by_side(play, CASES)[client].result()
