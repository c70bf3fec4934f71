"""A consumer that subscribes only after it was made knows the lag of its topics before its first rebalance, too."""

import pytest
from kafka import KafkaProducer

from loadwise import aiokafka_consumer, kafka_python_consumer


@pytest.fixture
def skewed(coordinator, topic_name):
    """A topic with all of its records in partition 2."""
    coordinator.create_topic(topic_name, 4)
    producer = KafkaProducer(bootstrap_servers=coordinator.bootstrap_servers)
    for _ in range(50):
        producer.send(topic_name, b"x", partition=2)
    producer.close()
    return topic_name


def _subscriptions():
    return pytest.mark.parametrize("how", ["topics", "pattern"])


def _ask_for(topic, how):
    return {"topics": [topic]} if how == "topics" else {"pattern": f"^{topic}$"}


@_subscriptions()
def test_kafka_python(coordinator, group_id, skewed, how):
    servers = coordinator.bootstrap_servers
    consumer = kafka_python_consumer(group_id=group_id, bootstrap_servers=servers, auto_offset_reset="earliest")
    try:
        consumer.subscribe(**_ask_for(skewed, how))
        while not consumer.assignment():
            consumer.poll(timeout_ms=100)
        member = consumer
        assert member.rebalances.led  # more than once, where the pattern is resolved while the group forms
        assert member.rebalances.fallbacks == 0
        demand = list(member.load.snapshot([skewed]).load[skewed])
        assert [each > 0 for each in demand] == [False, False, True, False]
    finally:
        consumer.close()


@pytest.mark.parametrize("started", ["before it starts", "after it started"])
@_subscriptions()
async def test_aiokafka(coordinator, group_id, skewed, how, started):
    servers = coordinator.bootstrap_servers
    consumer = aiokafka_consumer(group_id=group_id, bootstrap_servers=servers, auto_offset_reset="earliest")
    if started == "before it starts":
        consumer.subscribe(**_ask_for(skewed, how))
    await consumer.start()
    try:
        if started == "after it started":
            consumer.subscribe(**_ask_for(skewed, how))
        while not consumer.assignment():
            await consumer.getmany(timeout_ms=100)
        member = consumer
        assert member.rebalances.fallbacks == 0
        demand = list(member.load.snapshot([skewed]).load[skewed])
        assert [each > 0 for each in demand] == [False, False, True, False]
    finally:
        await consumer.stop()
