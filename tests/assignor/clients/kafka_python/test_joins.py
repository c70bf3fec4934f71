"""A kafka-python consumer that is polled shortly finishes its joins; the stock one does not."""

import time

import pytest
from kafka import KafkaConsumer
from polled import know
from topics import WAIT_S

from loadwise import kafka_python_consumer

SETTINGS = {"heartbeat_interval_ms": 100, "enable_auto_commit": False}


def ours(**config):
    return kafka_python_consumer(assignor="range", **config)


# The stock consumer is watched until the broker evicts it; ours is not to be evicted because the machine is slow.
@pytest.mark.parametrize(
    ("make", "finishes", "session_timeout_ms"),
    [pytest.param(KafkaConsumer, False, 6_000, marks=pytest.mark.long), (ours, True, 30_000)],
)
def test_a_changed_subscription_and_polls_that_are_shorter_than_a_join(  # noqa: PLR0917 (fixtures)
    make, finishes, session_timeout_ms, coordinator, topic, group_id
):
    other = f"{topic}-other"
    coordinator.create_topic(other, 2)
    consumer = make(
        bootstrap_servers=coordinator.bootstrap_servers,
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        **SETTINGS,
    )
    try:
        consumer.subscribe([topic])
        know(consumer)
        while len(consumer.assignment()) < 6:
            consumer.poll(timeout_ms=1000)
        joins = consumer._coordinator._generation.generation_id

        consumer.subscribe([topic, other])
        deadline = time.monotonic() + WAIT_S
        while len(consumer.assignment()) < 8 and coordinator.groups.get(group_id).members:
            assert time.monotonic() < deadline
            consumer.poll(timeout_ms=0)
            time.sleep(0.02)  # what a program does with its records
        if finishes:
            assert len(consumer.assignment()) == 8
            assert consumer._coordinator._generation.generation_id <= joins + 2, "no join was lost and made again"
        else:
            assert len(consumer.assignment()) == 6, "evicted, and goes on with what it had"
    finally:
        consumer.close()
