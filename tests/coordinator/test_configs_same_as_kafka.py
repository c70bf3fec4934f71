"""Configs: what may be set, what it does, and how it is described, the same on Apache Kafka and on ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from kafka.protocol import admin, consumer, producer
from kafka.record import MemoryRecords, MemoryRecordsBuilder
from record_batches import batch
from sessions import Session
from topics import WAIT_S

from loadwise.coordinator import ThreadedCoordinator
from loadwise.coordinator.configs.topic_configs import TOPIC_CONFIGS
from loadwise.protocol.batches import read_header
from loadwise.protocol.record_times import record_times

pytestmark = pytest.mark.kafka

NOW_MS = int(time.time() * 1000)
HOUR_MS = 3_600_000
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
VALUES = (
    "", " ", "0", "1", "-1", "-2", "-3", "9", "10", "17", "18", "22", "23", "0.3", "1.5", "100", "1048575", "1048576",
    "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "1_000", "+5", "x", "true", "FALSE",
    "yes", "producer", "uncompressed", "none", "gzip", "zstd", "lz4", "snappy", "GZIP", "CreateTime", "LogAppendTime",
    "logappendtime", "compact", "delete", "compact,delete", "delete,delete", "compact,x", "*", "0:1", "0:1,1:2", "0:",
)  # fmt: skip


class Configurator(Session):
    """A session that sets, describes and tries configs."""

    def make(self, partitions: int = 1, **configs: str | None) -> tuple[int, str]:
        """Make a topic with these configs; the error, and the topic."""
        row = admin.CreateTopicsRequest.CreatableTopic
        name = f"topic-{uuid4()}"
        rows = [row.CreatableTopicConfig(name=_name(each), value=value) for each, value in configs.items()]
        made = row(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=rows)
        request = admin.CreateTopicsRequest(version=7, topics=[made], timeout_ms=60_000)
        (answer,) = self.ask(request, admin.CreateTopicsResponse).topics
        self.told = sorted((each.name, each.value, each.config_source) for each in answer.configs or ())
        if answer.error_code == 0:
            self.topic = name
            self.wait_for_topic()
            deadline = time.monotonic() + WAIT_S
            while self.end()[0] != 0:
                assert time.monotonic() < deadline
        return answer.error_code, name

    def end(self) -> tuple[int, int]:
        topic = consumer.ListOffsetsRequest.ListOffsetsTopic
        row = topic.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
        request = consumer.ListOffsetsRequest(
            version=7, replica_id=-1, isolation_level=0, topics=[topic(name=self.topic, partitions=[row])]
        )
        (found,) = self.ask(request, consumer.ListOffsetsResponse).topics[0].partitions
        return found.error_code, found.offset

    def describe(self, kind: int, name: str, *keys: str) -> Any:
        row = admin.DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
        )
        request = admin.DescribeConfigsRequest(version=4, resources=[row], include_synonyms=True)
        (found,) = self.ask(request, admin.DescribeConfigsResponse).results
        return found.error_code, sorted(
            (
                each.name, each.value, each.config_type, each.read_only, each.is_sensitive, each.config_source,
                [(synonym.name, synonym.value, synonym.source) for synonym in each.synonyms],
            )
            for each in found.configs
        )  # fmt: skip

    def alter(self, kind: int, name: str, *operations: tuple[int, str, str | None], check: bool = False) -> int:
        row = admin.IncrementalAlterConfigsRequest.AlterConfigsResource
        rows = [row.AlterableConfig(name=each, config_operation=what, value=value) for what, each, value in operations]
        request = admin.IncrementalAlterConfigsRequest(
            version=1, resources=[row(resource_type=kind, resource_name=name, configs=rows)], validate_only=check
        )
        (found,) = self.ask(request, admin.IncrementalAlterConfigsResponse).responses
        return int(found.error_code)

    def replace(self, kind: int, name: str, *configs: tuple[str, str | None]) -> int:
        row = admin.AlterConfigsRequest.AlterConfigsResource
        rows = [row.AlterableConfig(name=each, value=value) for each, value in configs]
        request = admin.AlterConfigsRequest(
            version=2, resources=[row(resource_type=kind, resource_name=name, configs=rows)], validate_only=False
        )
        (found,) = self.ask(request, admin.AlterConfigsResponse).responses
        return int(found.error_code)

    def settled(self, name: str, key: str, value: str) -> Any:
        """Describe a config once it has this value: Kafka's broker hears of it some time after the answer."""
        deadline = time.monotonic() + WAIT_S
        while (found := self.describe(TOPIC, name, key))[1][0][1] != value:
            assert time.monotonic() < deadline
        return found

    def append(self, records: bytes, acks: int = -1) -> Any:
        topic = producer.ProduceRequest.TopicProduceData
        data = topic(name=self.topic, partition_data=[topic.PartitionProduceData(index=0, records=records)])
        request = producer.ProduceRequest(
            version=9, transactional_id=None, acks=acks, timeout_ms=60_000, topic_data=[data]
        )
        reply = self.ask(request, producer.ProduceResponse).responses[0].partition_responses[0]
        errors = [each.batch_index for each in reply.record_errors]
        return reply.error_code, reply.base_offset, reply.log_append_time_ms > 0, errors

    def read(self) -> Any:
        topic = consumer.FetchRequest.FetchTopic
        row = topic.FetchPartition(
            partition=0, current_leader_epoch=-1, fetch_offset=0, last_fetched_epoch=-1, log_start_offset=-1,
            partition_max_bytes=1_000_000,
        )  # fmt: skip
        request = consumer.FetchRequest(
            version=12, cluster_id=None, max_wait_ms=0, min_bytes=1, max_bytes=1_000_000, rack_id="",
            topics=[topic(topic=self.topic, partitions=[row])], forgotten_topics_data=[],
        )  # fmt: skip
        (found,) = self.ask(request, consumer.FetchResponse).responses[0].partitions
        seen, data = [], bytes(found.records or b"")
        for each in MemoryRecords(data):
            assert each.validate_crc()
            is_now = abs(each.max_timestamp - NOW_MS) < 10 * HOUR_MS and each.max_timestamp != NOW_MS
            size = read_header(data).size_bytes
            times = [(record.offset, record.timestamp_ms == each.max_timestamp) for record in record_times(data[:size])]
            seen.append((each.base_offset, each.compression_type, each.timestamp_type, is_now, times))
            data = data[size:]
        return seen


def _name(key: str) -> str:
    return key.replace("_", ".")


def values_of_topics(broker: Configurator) -> Iterator[Any]:
    for name in sorted(TOPIC_CONFIGS.by_name):
        yield name, [(value, broker.alter(TOPIC, broker.topic, (SET, name, value), check=True)) for value in VALUES]


def topics(broker: Configurator) -> Iterator[Any]:
    yield broker.make()[0], broker.told, broker.describe(TOPIC, broker.topic)
    given = {"retention_ms": "5000", "cleanup_policy": "compact,delete", "min_insync_replicas": "1"}
    yield broker.make(**given)[0], broker.told, broker.describe(TOPIC, broker.topic)
    wrong: list[dict[str, str | None]] = [
        {"no_such": "1"}, {"retention_ms": "x"}, {"retention_ms": None}, {"remote_storage_enable": "true"},
        {"min_compaction_lag_ms": "5", "max_compaction_lag_ms": "4"}, {"cleanup_policy": "x"}, {"segment_bytes": "14"},
    ]  # fmt: skip
    yield [broker.make(**each)[0] for each in wrong]


def changing(broker: Configurator) -> Iterator[Any]:
    broker.make()
    topic = broker.topic
    yield broker.alter(TOPIC, topic, (SET, "retention.ms", "77")), broker.settled(topic, "retention.ms", "77")
    yield (
        broker.alter(TOPIC, topic, (SET, "retention.ms", "88"), check=True),
        broker.describe(TOPIC, topic, "retention.ms"),
    )
    yield broker.alter(TOPIC, topic, (APPEND, "cleanup.policy", "compact"))
    yield broker.settled(topic, "cleanup.policy", "delete,compact")
    yield broker.alter(TOPIC, topic, (SUBTRACT, "cleanup.policy", "delete"))
    yield broker.settled(topic, "cleanup.policy", "compact")
    yield (
        broker.alter(TOPIC, topic, (APPEND, "cleanup.policy", "compact")),
        broker.settled(topic, "cleanup.policy", "compact"),
    )
    yield broker.alter(TOPIC, topic, (DELETE, "cleanup.policy", None), (DELETE, "flush.ms", None))
    yield broker.settled(topic, "cleanup.policy", "delete")
    yield broker.alter(TOPIC, topic), broker.alter(TOPIC, ""), broker.alter(TOPIC, "a/b"), broker.alter(TOPIC, "none")
    wrong: list[tuple[int, str, str | None]] = [
        (SET, "retention.ms", None), (SET, "no.such", "1"), (DELETE, "no.such", None), (APPEND, "retention.ms", "1"),
        (SUBTRACT, "no.such", "1"), (7, "retention.ms", "1"), (APPEND, "cleanup.policy", None),
        (SET, "retention.ms", "x"),
    ]  # fmt: skip
    yield [broker.alter(TOPIC, topic, each) for each in wrong]
    yield broker.alter(TOPIC, topic, (SET, "flush.ms", "1"), (SET, "flush.ms", "2"))
    yield broker.replace(TOPIC, topic, ("flush.ms", "5")), broker.settled(topic, "flush.ms", "5")
    yield broker.settled(topic, "retention.ms", "604800000")
    yield [broker.replace(TOPIC, topic, each) for each in (("flush.ms", None), ("no.such", "1"), ("flush.ms", "x"))]
    yield broker.replace(TOPIC, topic), broker.settled(topic, "flush.ms", "9223372036854775807")
    yield [broker.replace(kind, "x") for kind in (0, 1, 3, 64)], [broker.alter(kind, "x") for kind in (0, 1, 3, 64)]


def other_resources(broker: Configurator) -> Iterator[Any]:
    group = f"group-{uuid4()}"
    yield broker.describe(METRICS, group), broker.alter(GROUP, ""), broker.alter(METRICS, "")
    yield (
        broker.alter(GROUP, group, (SET, "no.such", "1")),
        broker.alter(GROUP, group, (SET, "share.auto.offset.reset", "x")),
    )
    yield broker.alter(METRICS, group, (SET, "interval.ms", "5")), broker.alter(METRICS, group, (SET, "no.such", "5"))
    yield broker.alter(METRICS, group, (SET, "interval.ms", "500"), (SET, "metrics", "org.apache."))
    yield [broker.alter(BROKER, name, (SET, "log.retention.bytes", "x")) for name in ("", "1")]
    yield [broker.alter(BROKER, name, (SET, "log.retention.bytes", "5"), check=True) for name in ("", "1", "9", "x")]
    yield broker.alter(BROKER, "1", (SET, "num.partitions", "5"), check=True)


def acting(broker: Configurator) -> Iterator[Any]:
    keyless, late = batch([b"a", b"b"], timestamp=NOW_MS), batch([b"c"], timestamp=NOW_MS - 5 * HOUR_MS)
    broker.make(message_timestamp_type="LogAppendTime")
    yield broker.append(keyless), broker.append(late), broker.read()
    broker.make(cleanup_policy="compact")
    yield broker.append(keyless), broker.append(_keyed([b"k", None, b"l", None])), broker.append(_keyed([b"k"]))
    broker.make(max_message_bytes="70")
    yield broker.append(keyless), broker.append(batch([b"a"], timestamp=NOW_MS))
    broker.make(message_timestamp_before_max_ms="60000")
    yield broker.append(late), broker.append(keyless)
    broker.make()
    yield broker.append(late), broker.append(batch([b"d"], timestamp=NOW_MS + 2 * HOUR_MS))
    broker.make(min_insync_replicas="2")
    yield broker.append(keyless), broker.append(keyless, acks=1)
    for name in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
        broker.make(compression_type=name)
        yield name, [broker.append(batch([b"x" * 500] * 3, timestamp=NOW_MS, compression=each)) for each in (0, 1)]
        yield broker.read()


def _keyed(keys: list[bytes | None]) -> bytes:
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1_000_000)
    for key in keys:
        builder.append(timestamp=NOW_MS, key=key, value=b"v")
    builder.close()
    return bytes(builder.buffer())


SCENARIOS = [values_of_topics, topics, changing, other_resources, acting]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_ours_answers_as_kafka_does(
    apache_kafka: str, coordinator: ThreadedCoordinator, scenario: Callable[[Configurator], Iterator[Any]]
) -> None:
    with ExitStack() as closing:
        theirs, ours = Configurator(apache_kafka), Configurator(coordinator.bootstrap_servers)
        for broker in (theirs, ours):
            closing.callback(broker.socket.close)
            broker.make()
        for step, (expected, got) in enumerate(zip(scenario(theirs), scenario(ours), strict=True)):
            assert got == expected, f"answer {step}"
