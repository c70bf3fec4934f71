"""What brokers tell of topics: our coordinator, and Apache Kafka in its tier."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from topics import WAIT_S, make_topic, until

from loadwise.compare.live import read_situation
from loadwise.running_group import admin, reading
from loadwise.running_group.admin import connected
from loadwise.running_group.reading import read_retention_ms
from loadwise.watch.demand import situation


def test_the_retention_of_topics(broker: str, topic_name: str) -> None:
    """Records of a compacted topic are not deleted by age."""
    compacted = f"{topic_name}-compacted"
    for topic in (topic_name, compacted):
        make_topic(broker, topic, 1)
    changes = {topic_name: ("retention.ms", "90000"), compacted: ("cleanup.policy", "compact")}
    kafka = AdminClient({"bootstrap.servers": broker})
    for topic, (name, value) in changes.items():
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        kafka.incremental_alter_configs([resource])[resource].result(WAIT_S)
    with connected(broker, client_id="test") as asking:

        def read() -> dict[str, int]:
            return read_retention_ms(asking, [topic_name, compacted])

        until(lambda: read() == {topic_name: 90_000}, read)  # Kafka's broker hears of it some time after the answer
        assert read_retention_ms(asking, []) == {}


def test_an_untested_kafka_python_reads_without_our_parts_of_it(
    coordinator: Any, topic_name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(admin, "TRIED", replace(admin.TRIED, installed="9.0.1"))
    monkeypatch.setitem(sys.modules, "loadwise.assignor.clients.kafka_python.logins", None)
    make_topic(coordinator.bootstrap_servers, topic_name, 1)
    with connected(coordinator.bootstrap_servers, client_id="test") as asking:
        assert set(read_retention_ms(asking, [topic_name])) == {topic_name}
    assert any("kafka-python 9.0.1 was not tested" in each.getMessage() for each in caplog.records)


def test_partitions_that_are_added_between_two_questions_are_left_for_the_next_reading(
    coordinator: Any, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = coordinator.bootstrap_servers
    make_topic(broker, topic_name, 2)
    kafka = AdminClient({"bootstrap.servers": broker})
    read_offsets, counts = reading.read_offsets, iter((3, 4, 5))

    def meanwhile(*asked: Any) -> Any:
        more = NewPartitions(topic_name, next(counts))
        kafka.create_partitions([more])[topic_name].result(WAIT_S)
        return read_offsets(*asked)

    monkeypatch.setattr(reading, "read_offsets", meanwhile)
    with closing(Consumer({"bootstrap.servers": broker, "group.id": topic_name})) as consumer:
        consumer.subscribe([topic_name])
        while not consumer.assignment():
            consumer.poll(0.05)
        with connected(broker, client_id="test") as asking:
            seen = [reading.read(asking, topic_name) for _ in range(2)]
        assert [len(each.offsets) for each in seen] == [2, 3]
        assert situation(seen, window_s=seen[1].at_s - seen[0].at_s, from_beginning=True) is not None
        assert read_situation(broker, topic_name).partitions == {topic_name: 4}
