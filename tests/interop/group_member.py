"""A Python consumer in a group, for the mixed-group tests; what ``GroupMember.java`` is for Java.

``python group_member.py CLIENT BOOTSTRAP GROUP TOPIC STRATEGY SESSION_TIMEOUT_MS [INSTANCE_ID]``, CLIENT being
kafka-python, aiokafka, confluent-consumer or confluent-aio (with our assignors; STRATEGY may be several names with
commas between them) or confluent-kafka (with librdkafka's own; STRATEGY ``consumer`` is the protocol of KIP-848).
It prints one JSON object a line::

    {"event": "assigned", "generation": g, "partitions": […]}   all that it owns from this generation on; of ours also
                                                                the "strategy" that the group has elected
    {"event": "revoked", "partitions": […]}                     all that is left to it before the next generation
    {"event": "leads"}                                          it assigns the generation that it is told of next
    {"event": "records", "partition": p, "from": a, "to": b}    what it processed: [a, b), committed after each poll

librdkafka says in its log, on the error output, what it leads. The member closes in order when its input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

HEARTBEAT_INTERVAL_MS = 200
METADATA_MAX_AGE_MS = 2_000

ended = threading.Event()


def _watch_input() -> None:
    sys.stdin.read()
    ended.set()


def say(event: str, **details: Any) -> None:
    # One write a line: clients call back on threads of their own.
    sys.stdout.write(json.dumps({"event": event, **details}) + "\n")
    sys.stdout.flush()


class Elections(logging.Handler):
    """Both pure Python clients log it when they are elected leader."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("Elected group leader"):
            say("leads")


def _config(
    bootstrap: str, group: str, strategy: str, session_timeout_ms: str, instance_id: str | None = None
) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "assignor": strategy.split(",") if "," in strategy else strategy,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "session_timeout_ms": int(session_timeout_ms),
        "group_instance_id": instance_id,
        "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
        "metadata_max_age_ms": METADATA_MAX_AGE_MS,
    }


def _tell_assignments(consumer: Any) -> None:
    participant = consumer.assignor.participant
    assigned = participant.assigned

    def told(partitions: Mapping[str, Sequence[int]], generation: int, protocol: str, **more: Any) -> None:
        assigned(partitions, generation, protocol, **more)
        given = sorted(number for numbers in partitions.values() for number in numbers)
        say("assigned", generation=generation, partitions=given, strategy=protocol)

    participant.assigned = told


def run_kafka_python(topic: str, asked: dict[str, Any]) -> None:
    from kafka.errors import CommitFailedError, RebalanceInProgressError

    from loadwise import kafka_python_consumer

    logging.getLogger("kafka.coordinator").setLevel(logging.INFO)
    logging.getLogger("kafka.coordinator").addHandler(Elections())
    consumer = kafka_python_consumer(**asked)
    _tell_assignments(consumer)
    consumer.subscribe([topic])
    while not ended.is_set():
        for partition, records in consumer.poll(timeout_ms=200).items():
            say("records", partition=partition.partition, **{"from": records[0].offset, "to": records[-1].offset + 1})
        with contextlib.suppress(CommitFailedError, RebalanceInProgressError):  # the next owner reads these again
            consumer.commit()
    consumer.close(autocommit=False)


async def run_aiokafka(topic: str, asked: dict[str, Any]) -> None:
    from aiokafka.errors import CommitFailedError

    from loadwise import aiokafka_consumer

    logging.getLogger("aiokafka").setLevel(logging.INFO)
    logging.getLogger("aiokafka").addHandler(Elections())
    consumer = aiokafka_consumer(topic, **asked)
    _tell_assignments(consumer)
    await consumer.start()
    while not ended.is_set():
        for partition, records in (await consumer.getmany(timeout_ms=200)).items():
            say("records", partition=partition.partition, **{"from": records[0].offset, "to": records[-1].offset + 1})
        with contextlib.suppress(CommitFailedError):  # the next owner reads these again
            await consumer.commit()
    await consumer.stop()


def run_confluent_kafka(topic: str, asked: dict[str, Any]) -> None:
    from confluent_kafka import Consumer

    config = {
        "bootstrap.servers": asked["bootstrap_servers"],
        "group.id": asked["group_id"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": METADATA_MAX_AGE_MS,
        "debug": "cgrp",
    }
    if asked["assignor"] == "consumer":
        config["group.protocol"] = "consumer"  # the broker says how long a session is
    else:
        config["partition.assignment.strategy"] = asked["assignor"]
        config["session.timeout.ms"] = asked["session_timeout_ms"]
        config["heartbeat.interval.ms"] = HEARTBEAT_INTERVAL_MS
    if asked["group_instance_id"] is not None:
        config["group.instance.id"] = asked["group_instance_id"]
    _run_confluent(Consumer(config), topic)


def _librdkafka(asked: dict[str, Any]) -> dict[str, Any]:
    """What our consumers of confluent-kafka are given."""
    logging.getLogger("kafka.coordinator").setLevel(logging.INFO)
    logging.getLogger("kafka.coordinator").addHandler(Elections())
    config = {
        "bootstrap.servers": asked["bootstrap_servers"],
        "group.id": asked["group_id"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": METADATA_MAX_AGE_MS,
        "session.timeout.ms": asked["session_timeout_ms"],
        "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
    }
    if asked["group_instance_id"] is not None:
        config["group.instance.id"] = asked["group_instance_id"]
    return config


def run_confluent_consumer(topic: str, asked: dict[str, Any]) -> None:
    from loadwise import confluent_consumer

    _run_confluent(confluent_consumer(_librdkafka(asked), assignor=asked["assignor"]), topic)


def _run_confluent(consumer: Any, topic: str) -> None:
    from confluent_kafka import KafkaException

    owned: set[int] = set()

    def on_assign(_: Any, partitions: list[Any]) -> None:
        owned.update(each.partition for each in partitions)
        say("assigned", generation=_generation(consumer.consumer_group_metadata()), partitions=sorted(owned))

    def on_revoke(_: Any, partitions: list[Any]) -> None:
        owned.difference_update(each.partition for each in partitions)
        say("revoked", partitions=sorted(owned))

    consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
    while not ended.is_set():
        _say_records(consumer.consume(500, timeout=0.2))
        with contextlib.suppress(KafkaException):  # nothing to commit, or a rebalance: the next owner reads it again
            consumer.commit(asynchronous=False)
    consumer.close()


def _generation(group_metadata: bytes) -> int:
    """Opaque to Python, written by rd_kafka_consumer_group_metadata_write: a mark of 7 bytes, the generation."""
    return int.from_bytes(group_metadata[7:11], sys.byteorder, signed=True)


def _say_records(messages: Sequence[Any]) -> None:
    for message in messages:
        if message.error() is None:
            at = message.offset()
            say("records", partition=message.partition(), **{"from": at, "to": at + 1})


async def run_confluent_aio(topic: str, asked: dict[str, Any]) -> None:
    from confluent_kafka import KafkaException

    from loadwise import confluent_aio_consumer

    consumer = confluent_aio_consumer(_librdkafka(asked), assignor=asked["assignor"])
    owned: set[int] = set()

    async def on_assign(_: Any, partitions: list[Any]) -> None:
        owned.update(each.partition for each in partitions)
        say("assigned", generation=_generation(await consumer.consumer_group_metadata()), partitions=sorted(owned))

    async def on_revoke(_: Any, partitions: list[Any]) -> None:
        owned.difference_update(each.partition for each in partitions)
        say("revoked", partitions=sorted(owned))

    await consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
    while not ended.is_set():
        _say_records(await consumer.consume(500, timeout=0.2))
        with contextlib.suppress(KafkaException):  # nothing to commit, or a rebalance: the next owner reads it again
            await consumer.commit(asynchronous=False)
    await consumer.close()


def main() -> None:
    client, bootstrap, group, topic, *how = sys.argv[1:]
    decisions = logging.getLogger("loadwise.assignor.leader")
    decisions.setLevel(logging.INFO)  # shown where a group does not come to what a test waits for
    decisions.addHandler(logging.StreamHandler())
    asked = _config(bootstrap, group, *how)
    threading.Thread(target=_watch_input, daemon=True).start()
    match client:
        case "kafka-python":
            run_kafka_python(topic, asked)
        case "aiokafka":
            asyncio.run(run_aiokafka(topic, asked))
        case "confluent-kafka":
            run_confluent_kafka(topic, asked)
        case "confluent-consumer":
            run_confluent_consumer(topic, asked)
        case "confluent-aio":
            asyncio.run(run_confluent_aio(topic, asked))
    say("closed")


if __name__ == "__main__":
    main()
