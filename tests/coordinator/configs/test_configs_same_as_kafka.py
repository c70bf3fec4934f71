"""Configs: what may be set, what it does, and how it is described, the same on Apache Kafka and on ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from beside_kafka import Scenario, scenarios, sessions_agree
from configurator import HOUR_MS, NOW_MS, TOPIC, Configurator
from kafka.record import MemoryRecordsBuilder
from record_batches import batch

from loadwise.coordinator import ThreadedCoordinator
from loadwise.coordinator.configs.topic_configs import TOPIC_CONFIGS
from loadwise.coordinator.group_configs import group_configs

pytestmark = pytest.mark.kafka

BROKER, LOGGER, METRICS, GROUP = 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
VALUES = (
    "", " ", "0", "1", "-1", "-2", "-3", "9", "10", "17", "18", "22", "23", "0.3", "1.5", "100", "1048575", "1048576",
    "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "1_000", "+5", "x", "true", "FALSE",
    "yes", "producer", "uncompressed", "none", "gzip", "zstd", "lz4", "snappy", "GZIP", "CreateTime", "LogAppendTime",
    "logappendtime", "compact", "delete", "compact,delete", "delete,delete", "compact,x", "*", "0:1", "0:1,1:2", "0:",
)  # fmt: skip


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


WRITTEN = [
    ("min.cleanable.dirty.ratio", " 0.20", "0.2"), ("min.cleanable.dirty.ratio", "1", "1.0"),
    ("min.cleanable.dirty.ratio", "0.00012", "1.2E-4"), ("min.cleanable.dirty.ratio", "1e-9", "1.0E-9"),
    ("min.cleanable.dirty.ratio", "0", "0.0"), ("retention.ms", " +0077", "77"), ("retention.ms", "-1", "-1"),
    ("preallocate", " TRUE ", "true"), ("cleanup.policy", " compact , delete ", "compact,delete"),
    ("compression.type", " gzip", "gzip"), ("max.message.bytes", "0100", "100"),
]  # fmt: skip


def writing(broker: Configurator) -> Iterator[Any]:
    """A value is told as Kafka writes it, however it was set."""
    for name, value, told in WRITTEN:
        yield broker.alter(TOPIC, broker.topic, (SET, name, value)), broker.settled(TOPIC, broker.topic, name, told)
    for name, value, _ in WRITTEN:
        yield broker.make(**{name.replace(".", "_"): value})[0], broker.told
    group = f"group-{uuid4()}"
    for name, value, told in (("share.isolation.level", " read_committed", "read_committed"),
                              ("consumer.session.timeout.ms", " 050000 ", "50000")):  # fmt: skip
        yield broker.alter(GROUP, group, (SET, name, value)), broker.settled(GROUP, group, name, told)
    yield broker.alter(METRICS, group, (SET, "metrics", " a , b ")), broker.settled(METRICS, group, "metrics", "a,b")


LARGEST = {
    "assignment.interval.ms": 15_000, "heartbeat.interval.ms": 15_000, "session.timeout.ms": 60_000,
    "delivery.count.limit": 10, "partition.max.record.locks": 4000, "record.lock.duration.ms": 60_000,
}  # fmt: skip


def bounds(broker: Configurator) -> Iterator[Any]:
    """How far groups may go with their configs."""
    for name in sorted(group_configs().by_name):
        most = LARGEST.get(name.partition(".")[2])
        if most is not None:
            yield name, [broker.alter(GROUP, "g", (SET, name, str(most + more)), check=True) for more in (0, 1)]


def changing(broker: Configurator) -> Iterator[Any]:
    broker.make()
    topic = broker.topic
    yield broker.alter(TOPIC, topic, (SET, "retention.ms", "77")), broker.settled(TOPIC, topic, "retention.ms", "77")
    yield (
        broker.alter(TOPIC, topic, (SET, "retention.ms", "88"), check=True),
        broker.describe(TOPIC, topic, "retention.ms"),
    )
    yield broker.alter(TOPIC, topic, (APPEND, "cleanup.policy", "compact"))
    yield broker.settled(TOPIC, topic, "cleanup.policy", "delete,compact")
    yield broker.alter(TOPIC, topic, (SUBTRACT, "cleanup.policy", "delete"))
    yield broker.settled(TOPIC, topic, "cleanup.policy", "compact")
    yield (
        broker.alter(TOPIC, topic, (APPEND, "cleanup.policy", "compact")),
        broker.settled(TOPIC, topic, "cleanup.policy", "compact"),
    )
    yield broker.alter(TOPIC, topic, (DELETE, "cleanup.policy", None), (DELETE, "flush.ms", None))
    yield broker.settled(TOPIC, topic, "cleanup.policy", "delete")
    yield broker.alter(TOPIC, topic), broker.alter(TOPIC, ""), broker.alter(TOPIC, "a/b"), broker.alter(TOPIC, "none")
    wrong: list[tuple[int, str, str | None]] = [
        (SET, "retention.ms", None), (SET, "no.such", "1"), (DELETE, "no.such", None), (APPEND, "retention.ms", "1"),
        (SUBTRACT, "no.such", "1"), (7, "retention.ms", "1"), (APPEND, "cleanup.policy", None),
        (SET, "retention.ms", "x"),
    ]  # fmt: skip
    yield [broker.alter(TOPIC, topic, each) for each in wrong]
    yield broker.alter(TOPIC, topic, (SET, "flush.ms", "1"), (SET, "flush.ms", "2"))
    yield broker.replace(TOPIC, topic, ("flush.ms", "5")), broker.settled(TOPIC, topic, "flush.ms", "5")
    yield broker.settled(TOPIC, topic, "retention.ms", "604800000")
    yield [broker.replace(TOPIC, topic, each) for each in (("flush.ms", None), ("no.such", "1"), ("flush.ms", "x"))]
    yield broker.replace(TOPIC, topic), broker.settled(TOPIC, topic, "flush.ms", "9223372036854775807")
    yield [broker.replace(kind, "x") for kind in (0, 1, 3, 64)], [broker.alter(kind, "x") for kind in (0, 1, 3, 64)]


def other_resources(broker: Configurator) -> Iterator[Any]:
    group = f"group-{uuid4()}"
    yield broker.describe(METRICS, group), broker.alter(GROUP, ""), broker.alter(METRICS, "")
    yield broker.describe(GROUP, ""), broker.describe(METRICS, "")
    yield (
        broker.alter(GROUP, group, (SET, "no.such", "1")),
        broker.alter(GROUP, group, (SET, "share.auto.offset.reset", "x")),
    )
    yield broker.alter(METRICS, group, (SET, "interval.ms", "5")), broker.alter(METRICS, group, (SET, "no.such", "5"))
    yield broker.alter(METRICS, group, (SET, "interval.ms", "500"), (SET, "metrics", "org.apache."))
    yield [broker.alter(BROKER, name, (SET, "log.retention.bytes", "x")) for name in ("", "1")]
    yield [broker.alter(BROKER, name, (SET, "log.retention.bytes", "5"), check=True) for name in ("", "1", "9", "x")]
    yield broker.alter(BROKER, "1", (SET, "num.partitions", "5"), check=True)


TIMES = {
    "flush.ms": "log.flush.interval.ms",
    "retention.ms": "log.retention.ms",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
}


def defaults_of_brokers(broker: Configurator) -> Iterator[Any]:
    """Configs that brokers have in hours too are null until they are set, and then the default of topics."""
    yield broker.describe(BROKER, "1", *TIMES.values())
    for name, of_broker in TIMES.items():
        before = broker.describe(TOPIC, broker.topic, name)
        try:
            yield before, broker.alter(BROKER, "", (SET, of_broker, "70000000"))
            yield broker.settled(TOPIC, broker.topic, name, "70000000"), broker.describe(BROKER, "1", of_broker)
        finally:  # the other scenarios see the same brokers
            restored = broker.alter(BROKER, "", (DELETE, of_broker, None))
        yield restored, broker.settled(TOPIC, broker.topic, name, before[1][0][1])


def throttles(broker: Configurator) -> Iterator[Any]:
    """What is set of a running broker by kafka-reassign-partitions.sh."""
    names = ["follower.replication.throttled.rate", "leader.replication.throttled.rate"]
    names += ["replica.alter.log.dirs.io.max.bytes.per.second"]
    yield broker.describe(BROKER, "1", *names), broker.describe(BROKER, "1", "no.such")
    yield [broker.alter(BROKER, "1", (DELETE, name, None)) for name in names]
    yield [broker.alter(BROKER, "1", (SET, name, value), check=True) for name in names for value in ("x", "0", "-1")]
    try:
        yield [broker.alter(BROKER, "1", (SET, name, "2")) for name in names]
        yield broker.settled(BROKER, "1", names[-1], "2"), broker.describe(BROKER, "1", *names)
    finally:
        restored = [broker.alter(BROKER, "1", (DELETE, name, None)) for name in names]
    yield restored


def loggers(broker: Configurator) -> Iterator[Any]:
    """Each broker has loggers of its own; the one that both have is the root of them all."""
    before = broker.describe(LOGGER, "1", "root")[1][0][1]
    told = [row[2:] for row in broker.describe(LOGGER, "1", "root")[1]]
    yield told, [broker.describe(LOGGER, name)[0] for name in ("", "x", "9")]
    try:
        for word in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"):
            yield broker.alter(LOGGER, "1", (SET, "root", word)), broker.describe(LOGGER, "1", "root")
        yield broker.alter(LOGGER, "1", (SET, "root", "INFO"), check=True), broker.describe(LOGGER, "1", "root")
        wrong = [(SET, "root", "info"), (SET, "root", "x"), (SET, "no.such", "INFO"), (DELETE, "no.such", None),
                 (DELETE, "root", None), (APPEND, "root", "INFO"), (SUBTRACT, "root", "INFO"),
                 (7, "root", "INFO")]  # fmt: skip
        yield [broker.alter(LOGGER, "1", each) for each in wrong], broker.describe(LOGGER, "1", "root")
        yield broker.alter(LOGGER, "1", (SET, "root", "INFO"), (SET, "root", "WARN"))
        yield [broker.alter(LOGGER, name, (SET, "root", "INFO")) for name in ("", "x", "9")]
        yield broker.replace(LOGGER, "1", ("root", "INFO"))
    finally:
        restored = broker.alter(LOGGER, "1", (SET, "root", before))
    yield restored


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


@scenarios(
    writing,
    bounds,
    values_of_topics,
    topics,
    changing,
    other_resources,
    defaults_of_brokers,
    throttles,
    loggers,
    acting,
)
def test_ours_answers_as_kafka_does(apache_kafka: str, coordinator: ThreadedCoordinator, scenario: Scenario) -> None:
    sessions_agree(scenario, Configurator, apache_kafka, coordinator.bootstrap_servers, begin=Configurator.make)
