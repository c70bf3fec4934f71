"""A join that outlasts the poll that began it is finished by the polls that follow."""

import time

from topics import WAIT_S

from loadwise import kafka_python_consumer


def test_kafka_python(coordinator, group_id, topic_name):
    # The consumer learns of the topic's partitions in its first rebalance, and joins again for them. With
    # kafka-python's own consumer that second join is never finished when the time of a poll runs out within it.
    coordinator.create_topic(topic_name, 4)
    consumer = kafka_python_consumer(
        topic_name, group_id=group_id, bootstrap_servers=coordinator.bootstrap_servers, assignor="range"
    )
    try:
        deadline = time.monotonic() + WAIT_S
        while len(consumer.assignment()) < 4:
            assert time.monotonic() < deadline, "the member has no partitions and sends no heartbeats"
            consumer.poll(timeout_ms=1)
    finally:
        consumer.close()
