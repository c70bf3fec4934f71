"""A kafka-python consumer that is polled shortly finishes its joins; the stock one does not."""

import time

import pytest
from kafka import KafkaConsumer
from polled import know
from topics import WAIT_S

from loadwise.assignor.clients.kafka_python import kafka_consumer

SETTINGS = {"heartbeat_interval_ms": 100, "session_timeout_ms": 30_000, "enable_auto_commit": False}


def ours(**config):
    return kafka_consumer(assignor="range", **config)


@pytest.mark.parametrize(("make", "finishes"), [(KafkaConsumer, False), (ours, True)])
def test_a_changed_subscription_and_polls_that_are_shorter_than_a_join(make, finishes, coordinator, topic, group_id):
    other = f"{topic}-other"
    coordinator.create_topic(other, 2)
    consumer = make(bootstrap_servers=coordinator.bootstrap_servers, group_id=group_id, **SETTINGS)
    try:
        consumer.subscribe([topic])
        know(consumer)
        while len(consumer.assignment()) < 6:
            consumer.poll(timeout_ms=1000)
        joins = consumer._coordinator._generation.generation_id

        consumer.subscribe([topic, other])
        deadline = time.monotonic() + (WAIT_S if finishes else 1.0)
        while len(consumer.assignment()) < 8 and time.monotonic() < deadline:
            consumer.poll(timeout_ms=0)
            time.sleep(0.02)  # what a program does with its records
        assert (len(consumer.assignment()) == 8) == finishes
        if finishes:
            assert consumer._coordinator._generation.generation_id <= joins + 2, "no join was lost and made again"
    finally:
        consumer.close()
