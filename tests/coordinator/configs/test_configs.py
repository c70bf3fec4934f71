"""What configs do, seen by real clients and under a clock that we set."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource as LoggersOf
from kafka.admin import ConfigResourceType as ResourceOf
from kafka.record.util import calc_crc32c
from record_batches import batch
from topics import WAIT_S

from loadwise.coordinator import BrokerSettings, Coordinator, ThreadedCoordinator, configured
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.configs.topic_configs import LogConfig


@pytest.mark.parametrize("produced", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("kept", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_packed_anew_is_read_by_clients(
    coordinator: ThreadedCoordinator, topic_name: str, produced: str, kept: str
) -> None:
    broker = coordinator.bootstrap_servers
    new = NewTopic(topic_name, 1, 1, config={"compression.type": kept})
    admin = AdminClient({"bootstrap.servers": broker})
    admin.create_topics([new])[topic_name].result(WAIT_S)
    producer = Producer({"bootstrap.servers": broker, "compression.type": produced, "linger.ms": 50})
    values = [b"%d " % number * 2000 for number in range(20)]
    for value in values:
        producer.produce(topic_name, value, partition=0)
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer({"bootstrap.servers": broker, "group.id": topic_name, "check.crcs": True})
    consumer.assign([TopicPartition(topic_name, 0, 0)])
    read = [message.value() for message in consumer.consume(len(values), WAIT_S)]
    consumer.close()
    assert read == values


def test_a_config_that_is_altered_acts_from_then_on(coordinator: ThreadedCoordinator, topic_name: str) -> None:
    broker = coordinator.bootstrap_servers
    coordinator.create_topic(topic_name, 1)
    admin = AdminClient({"bootstrap.servers": broker})
    entry = ConfigEntry("max.message.bytes", "100", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic_name, incremental_configs=[entry])
    (altered,) = admin.incremental_alter_configs([resource]).values()
    altered.result(WAIT_S)
    (described,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic_name)]).values()
    assert described.result(WAIT_S)["max.message.bytes"].value == "100"
    errors: list[str] = []
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(topic_name, b"x" * 200, on_delivery=lambda error, _: errors.append(error.name()))
    producer.flush(WAIT_S)
    assert errors == ["MSG_SIZE_TOO_LARGE"]


def test_records_go_when_they_are_older_than_retention_ms(topic_name: str) -> None:
    with Coordinator().in_thread() as running:
        broker = running.bootstrap_servers
        new = NewTopic(topic_name, 1, 1, config={"retention.ms": "60000"})
        admin = AdminClient({"bootstrap.servers": broker, "log_level": 0})
        admin.create_topics([new])[topic_name].result(WAIT_S)
        producer = Producer({"bootstrap.servers": broker, "log_level": 0})
        producer.produce(topic_name, b"x", partition=0)
        assert producer.flush(WAIT_S) == 0
        consumer = Consumer({"bootstrap.servers": broker, "group.id": topic_name})
        place = TopicPartition(topic_name, 0)
        running.clock.step(50_000)
        assert consumer.get_watermark_offsets(place, WAIT_S) == (0, 1)
        running.clock.step(300_000)
        assert consumer.get_watermark_offsets(place, WAIT_S) == (1, 1)
        consumer.close()


def test_what_the_broker_is_started_with_holds_for_topics_and_for_itself(topic_name: str) -> None:
    """Retention in minutes, looked at more often than by default; and no topic may be deleted."""
    given = {
        "delete.topic.enable": "false",
        "log.retention.check.interval.ms": "10000",
        "log.retention.minutes": "2",
        "num.partitions": "3",
    }
    with Coordinator(settings=configured(BrokerSettings(), given)).in_thread() as running:
        broker = running.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": broker, "log_level": 0})
        admin.create_topics([NewTopic(topic_name, -1)])[topic_name].result(WAIT_S)
        assert len(admin.list_topics(topic_name, WAIT_S).topics[topic_name].partitions) == 3
        producer = Producer({"bootstrap.servers": broker, "log_level": 0})
        producer.produce(topic_name, b"x", partition=0)
        assert producer.flush(WAIT_S) == 0
        consumer = Consumer({"bootstrap.servers": broker, "group.id": topic_name})
        place = TopicPartition(topic_name, 0)
        running.clock.step(110_000)
        assert consumer.get_watermark_offsets(place, WAIT_S) == (0, 1)
        running.clock.step(20_000)
        assert consumer.get_watermark_offsets(place, WAIT_S) == (1, 1)
        consumer.close()
        with pytest.raises(KafkaException, match="TOPIC_DELETION_DISABLED"):
            admin.delete_topics([topic_name])[topic_name].result(WAIT_S)


def test_clients_change_what_the_coordinators_loggers_log() -> None:
    """And no other logger of the program."""
    ours, pythons = logging.getLogger("loadwise"), logging.getLogger()
    before, of_python = ours.level, pythons.level
    with Coordinator().in_thread() as running:
        admin = KafkaAdminClient(bootstrap_servers=running.bootstrap_servers)
        try:
            admin.alter_configs([LoggersOf(ResourceOf.BROKER_LOGGER, "1", {"root": "ERROR"})], raise_on_unknown=False)
            assert (ours.level, pythons.level) == (logging.ERROR, of_python)
            assert logging.getLogger("loadwise.coordinator").getEffectiveLevel() == logging.ERROR
            traced = LoggersOf(ResourceOf.BROKER_LOGGER, "1", {"loadwise.coordinator": "TRACE"})
            admin.alter_configs([traced], raise_on_unknown=False)
            assert logging.getLogger("loadwise.coordinator").level < logging.DEBUG
        finally:
            ours.setLevel(before)
            logging.getLogger("loadwise.coordinator").setLevel(logging.NOTSET)
            admin.close()


def test_the_oldest_batches_go_when_a_log_is_larger_than_retention_bytes() -> None:
    size = len(batch([b"x"]))
    log = PartitionLog(calc_crc32c, LogConfig(retention_bytes=2 * size))
    for _ in range(5):
        log.append(batch([b"x"]))
    assert log.delete_before(log.retained_from(0)) == 3 * size
    assert (log.start_offset, log.end_offset, log.size_bytes) == (3, 5, 2 * size)
    log.config = LogConfig(retention_bytes=0, is_deleted=False)
    assert log.retained_from(0) == 3, "a compacted topic keeps what it has"


def test_an_open_transaction_stays() -> None:
    log = PartitionLog(calc_crc32c, LogConfig(retention_ms=10))
    log.append(batch([b"x"]))
    log.append(batch([b"y"], producer=(7, 0, 0), transactional=True), in_transaction=True)
    assert log.retained_from(10_000) == 1
    log.end_transaction(7, 0, committed=True, coordinator_epoch=0, timestamp_ms=5000)
    assert log.retained_from(10_000) == 3
    log.delete_before(3)
    assert (log.start_offset, log.end_offset, log.read(3, 1000, at_least_one=True)) == (3, 3, b"")
    assert log.append(batch([b"z"])).base_offset == 3


def test_a_broker_may_be_started_with_other_bounds_for_the_configs_of_groups() -> None:
    given = {"group.consumer.max.session.timeout.ms": "90000", "group.consumer.min.session.timeout.ms": "45000"}

    def outcome(coordinator: ThreadedCoordinator, value: str) -> str:
        entry = ConfigEntry("consumer.session.timeout.ms", value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.GROUP, "g", incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": coordinator.bootstrap_servers, "log_level": 0})
        try:
            admin.incremental_alter_configs([resource])[resource].result(WAIT_S)
        except KafkaException as refused:
            return str(refused.args[0].name())
        return "taken"

    with Coordinator(settings=configured(BrokerSettings(), given)).in_thread() as strict:
        told = [outcome(strict, value) for value in ("44999", "45000", "90000", "90001")]
        assert told == ["INVALID_CONFIG", "taken", "taken", "INVALID_CONFIG"]
    with Coordinator().in_thread() as usual:
        told = [outcome(usual, value) for value in ("1000", "60000", "60001")]
        assert told == ["taken", "taken", "INVALID_CONFIG"]
