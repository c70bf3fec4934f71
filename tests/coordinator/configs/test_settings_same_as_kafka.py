"""The settings that a broker is started with: which there are, what they may be and what they do, as on Kafka."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import client_messages
import pytest
from beside_kafka import steps_agree
from client_messages import client_request
from configurator import NOW_MS, TOPIC, Configurator
from kafka_process import jars, kafka_from_jars
from missing import skipped_where_missing
from record_batches import batch
from topics import WAIT_S

from loadwise.coordinator import BadSettingError, BrokerSettings, Coordinator, configured
from loadwise.coordinator.configs.broker_configs import broker_configs
from loadwise.coordinator.configs.topic_configs import TOPIC_CONFIGS
from loadwise.coordinator.settings import effective_settings

pytestmark = pytest.mark.kafka

BROKER = 4
MAKER = Path(__file__).parents[2] / "golden" / "make_broker_configs.py"
VALUES = ("", "-2", "-1", "0", "1", "3", "100", "1000000", "2147483647", "2147483648", "9223372036854775808", "0.5",
          "true", "yes", "x", "gzip", "delete", "compact,delete", "CreateTime", "classic", "consumer", "classic,x",
          "classic,consumer")  # fmt: skip


def test_the_table_of_settings_is_kafkas() -> None:
    command = [sys.executable, str(MAKER), "--libs", str(_jars())]
    made = subprocess.run(command, capture_output=True, text=True, check=True, timeout=WAIT_S).stdout
    assert Path(MAKER.parents[2], "coordinator", "configs", "broker_configs.tsv").read_text() == made


def test_a_broker_starts_with_what_kafka_starts_with() -> None:
    """Each setting that has an effect, with each of some values; one by itself, as far as that tells."""
    sys.path.insert(0, str(MAKER.parent))
    from make_broker_configs import answers

    names = [name for name in broker_configs() if name in {*effective_settings(), *_defaults_of_topics()}]
    pairs = [(name, value) for name in names for value in VALUES]
    told = answers(_jars(), "".join(f"{name}={value}\n" for name, value in pairs)).splitlines()
    theirs = {pair: answer.partition(":")[0] for pair, answer in zip(pairs, told, strict=True)}
    ours = {pair: _taken(*pair) for pair in pairs}
    different = [pair for pair in pairs if ours[pair] != theirs[pair]]
    assert set(different) >= {("group.consumer.session.timeout.ms", "100"), ("default.replication.factor", "0")}
    # Groups may have other times and sizes than Kafka allows; a test has no time to wait for its least.
    assert [pair for pair in different if ours[pair] == "taken" and not pair[0].startswith(_FREE)] == []
    # Kafka takes some numbers below zero or of zero that mean nothing.
    assert [pair for pair in different if ours[pair] == "refused" and pair[1] not in ("-2", "-1", "0")] == []


_FREE = ("connections.max.idle.ms", "group.consumer.", "group.share.", "group.streams.")


def _defaults_of_topics() -> set[str]:
    found = [each for each in TOPIC_CONFIGS.by_name.values() if each.broker_config is not None]
    return {name for each in found for name in (each.broker_config, *(other.name for other in each.others)) if name}


def _taken(name: str, value: str) -> str:
    try:
        configured(BrokerSettings(), {name: value})
    except BadSettingError:
        return "refused"
    return "taken"


def _jars() -> Path:
    with skipped_where_missing():
        return jars()


MANY = {
    "auto.create.topics.enable": "false",
    "compression.type": "lz4",
    "default.replication.factor": "2",
    "delete.topic.enable": "false",
    "group.coordinator.rebalance.protocols": "classic",
    "log.cleanup.policy": "compact,delete",
    "log.flush.scheduler.interval.ms": "5000",
    "log.message.timestamp.type": "LogAppendTime",
    "log.retention.bytes": "123456",
    "log.retention.check.interval.ms": "60000",
    "log.retention.hours": "5",
    "log.retention.minutes": "30",
    "log.roll.hours": "9",
    "log.roll.jitter.ms": "100",
    "log.segment.bytes": "2000000",
    "message.max.bytes": "5000",
    "min.insync.replicas": "2",
    "num.partitions": "3",
    "offsets.retention.minutes": "77",
    "queued.max.requests": "400",
    "transaction.state.log.num.partitions": "3",
}
FEW = {
    "compression.type": "producer",
    "delegation.token.secret.key": "hush",
    "log.retention.hours": "5",
    "log.retention.ms": "70000",
    "log.roll.hours": "168",
}
RELATED = (
    "log.flush.interval.ms",
    "log.retention.ms",
    "log.roll.ms",
    "log.roll.jitter.hours",
    "unclean.leader.election.enable",
)


@contextmanager
def _both(settings: dict[str, str]) -> Iterator[tuple[Configurator, Configurator]]:
    with ExitStack() as stack:
        with skipped_where_missing():
            theirs = stack.enter_context(kafka_from_jars(more=settings))["PLAINTEXT"]
        coordinator = Coordinator(settings=configured(BrokerSettings(), settings))
        ours = stack.enter_context(coordinator.in_thread()).bootstrap_servers
        sessions = Configurator(theirs), Configurator(ours)
        for session in sessions:
            stack.callback(session.close)
        yield sessions


def _of_many(broker: Configurator) -> Iterator[Any]:
    yield (
        broker.describe(BROKER, "1", *(set(MANY) - {"default.replication.factor"}), *RELATED),
        broker.describe(BROKER, ""),
    )
    yield broker.make()[0], broker.told, broker.describe(TOPIC, broker.topic)
    yield (
        broker.append(batch([b"x" * 6000])),
        broker.append(batch([b"x"]), acks=-1),
        broker.append(batch([b"x"]), acks=1),
    )
    yield [
        broker.alter(BROKER, "1", (0, name, "9"), check=True) for name in ("log.retention.hours", "log.retention.ms")
    ]
    yield _made(broker, -1, 1), _made(broker, 1, -1), _made(broker, -1, -1)
    yield _deleted(broker, 6), _deleted(broker, 2), _asked_for(broker)
    yield (
        _group(broker, client_messages.ConsumerGroupDescribeRequest),
        _group(broker, client_messages.StreamsGroupDescribeRequest),
    )
    yield _beat(broker), broker.join(version=4)[0]


def _of_few(broker: Configurator) -> Iterator[Any]:
    yield broker.describe(BROKER, "1", *FEW, *RELATED), broker.describe(BROKER, "")
    yield broker.make()[0], broker.told, broker.describe(TOPIC, broker.topic)
    for value, operation in (("90000", 0), (None, 1)):
        yield broker.alter(BROKER, "", (operation, "log.retention.ms", value))
        yield broker.settled(TOPIC, broker.topic, "retention.ms", value or "70000")
        yield broker.describe(BROKER, "1", "log.retention.ms", "log.retention.hours")
    yield broker.append(batch([b"x"], timestamp=NOW_MS))


@pytest.mark.parametrize(("settings", "scenario"), [(MANY, _of_many), (FEW, _of_few)], ids=["many", "few"])
def test_what_a_broker_is_started_with_does_what_it_does_on_kafka(settings: dict[str, str], scenario: Any) -> None:
    with _both(settings) as (theirs, ours):
        steps_agree(scenario, theirs, ours)


def _made(broker: Configurator, partitions: int, factor: int) -> tuple[int, int]:
    made = {"name": f"t-{uuid4()}", "num_partitions": partitions, "replication_factor": factor}
    (answer,) = broker.ask("CreateTopics", 7, topics=[made], timeout_ms=60_000).topics
    return answer.error_code, answer.num_partitions


def _deleted(broker: Configurator, version: int) -> int:
    fields = {"topics": [{"name": broker.topic}]} if version >= 6 else {"topic_names": [broker.topic]}
    (answer,) = broker.ask("DeleteTopics", version, timeout_ms=60_000, **fields).responses
    return int(answer.error_code)


def _asked_for(broker: Configurator) -> int:
    row = {"name": f"t-{uuid4()}"}
    return int(broker.ask("Metadata", 12, topics=[row], allow_auto_topic_creation=True).topics[0].error_code)


def _group(broker: Configurator, request: Any) -> Any:
    {
        client_messages.ConsumerGroupDescribeRequest: client_messages.ConsumerGroupDescribeResponse,
        client_messages.StreamsGroupDescribeRequest: client_messages.StreamsGroupDescribeResponse,
    }[request]
    asked = request(version=0, group_ids=["g"], include_authorized_operations=False)
    (answer,) = broker.exchange(asked).groups
    return answer.error_code, answer.error_message


def _beat(broker: Configurator) -> Any:
    request = client_request(
        "ConsumerGroupHeartbeat", 1, group_id=broker.group, member_id="m", member_epoch=0, rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"], topic_partitions=[],
    )  # fmt: skip
    answer = broker.exchange(request)
    return answer.error_code, answer.error_message
