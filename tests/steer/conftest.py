"""Brokers with the assignor `loadwise`."""

import pytest
from broker_assignor import JAR, NAME, broker_assignor
from kafka_process import kafka_from_jars
from missing import skipped_where_missing

from loadwise.coordinator import BrokerSettings, ConsumerGroupLimits, Coordinator

SESSION_MS = 10_000
"""Some tests wait until a member that died is dropped."""


@pytest.fixture(scope="session", params=["loadwise", pytest.param("apache", marks=pytest.mark.kafka)])
def broker(request):
    """A broker with the assignor ``loadwise``, which members get only if one of them names it."""
    if request.param == "loadwise":
        limits = ConsumerGroupLimits(session_timeout_ms=SESSION_MS)
        with Coordinator(settings=BrokerSettings(consumer_groups=limits)).in_thread() as coordinator:
            yield coordinator.bootstrap_servers
        return
    with skipped_where_missing():
        jar = broker_assignor() / JAR
        sessions = ("group.consumer.session.timeout.ms", "group.consumer.min.session.timeout.ms")
        more = {"group.consumer.assignors": f"uniform,range,{NAME}"} | dict.fromkeys(sessions, str(SESSION_MS))
        kafka = kafka_from_jars(more=more, beside=[jar])
        addresses = kafka.__enter__()
    try:
        yield addresses["PLAINTEXT"]
    finally:
        kafka.__exit__(None, None, None)
