"""A Python consumer in a group, for the mixed-group tests; what ``GroupMember.java`` is for Java.

``python group_member.py CLIENT BOOTSTRAP GROUP TOPIC STRATEGY``, CLIENT being kafka-python or aiokafka (with our
assignors) or confluent-kafka (with librdkafka's own). It prints one JSON object a line: ``{"event": "assigned",
"partitions": […]}`` with all that it owns, whenever that changes, and ``{"event": "records", "partition": p, "from": a,
"to": b}`` for what it processed, offsets [a, b), committed after each poll. It closes in order when its input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import Iterable
from typing import Any

SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_INTERVAL_MS = 500
METADATA_MAX_AGE_MS = 2_000

ended = threading.Event()


def _watch_input() -> None:
    sys.stdin.read()
    ended.set()


def say(event: str, **details: Any) -> None:
    print(json.dumps({"event": event, **details}), flush=True)


class Owned:
    """What the member owns, said whenever it has changed."""

    def __init__(self) -> None:
        self._last: list[int] | None = None

    def update(self, partitions: Iterable[int]) -> None:
        now = sorted(partitions)
        if now != self._last:
            self._last = now
            say("assigned", partitions=now)


def _config(bootstrap: str, group: str, strategy: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "assignor": strategy,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "session_timeout_ms": SESSION_TIMEOUT_MS,
        "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
        "metadata_max_age_ms": METADATA_MAX_AGE_MS,
    }


def run_kafka_python(bootstrap: str, group: str, topic: str, strategy: str) -> None:
    from kafka.errors import CommitFailedError, RebalanceInProgressError

    from loadwise.assignor.clients.kafka_python import kafka_consumer

    consumer = kafka_consumer(topic, **_config(bootstrap, group, strategy))
    owned = Owned()
    while not ended.is_set():
        for partition, records in consumer.poll(timeout_ms=200).items():
            say("records", partition=partition.partition, **{"from": records[0].offset, "to": records[-1].offset + 1})
        owned.update(partition.partition for partition in consumer.assignment())
        with contextlib.suppress(CommitFailedError, RebalanceInProgressError):  # the next owner reads these again
            consumer.commit()
    consumer.close(autocommit=False)


async def run_aiokafka(bootstrap: str, group: str, topic: str, strategy: str) -> None:
    from aiokafka.errors import CommitFailedError

    from loadwise.assignor.clients.aiokafka import aiokafka_consumer

    consumer = aiokafka_consumer(topic, **_config(bootstrap, group, strategy))
    await consumer.start()
    owned = Owned()
    while not ended.is_set():
        for partition, records in (await consumer.getmany(timeout_ms=200)).items():
            say("records", partition=partition.partition, **{"from": records[0].offset, "to": records[-1].offset + 1})
        owned.update(partition.partition for partition in consumer.assignment())
        with contextlib.suppress(CommitFailedError):  # the next owner reads these again
            await consumer.commit()
    await consumer.stop()


def run_confluent_kafka(bootstrap: str, group: str, topic: str, strategy: str) -> None:
    from confluent_kafka import Consumer, KafkaException

    config = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "partition.assignment.strategy": strategy,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": SESSION_TIMEOUT_MS,
        "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
        "topic.metadata.refresh.interval.ms": METADATA_MAX_AGE_MS,
    }
    consumer = Consumer(config)
    consumer.subscribe([topic])
    owned = Owned()
    while not ended.is_set():
        for message in consumer.consume(500, timeout=0.2):
            if message.error() is None:
                at = message.offset()
                say("records", partition=message.partition(), **{"from": at, "to": at + 1})
        owned.update(partition.partition for partition in consumer.assignment())
        with contextlib.suppress(KafkaException):  # nothing to commit, or a rebalance: the next owner reads it again
            consumer.commit(asynchronous=False)
    consumer.close()


def main() -> None:
    client, *where = sys.argv[1:]
    threading.Thread(target=_watch_input, daemon=True).start()
    match client:
        case "kafka-python":
            run_kafka_python(*where)
        case "aiokafka":
            asyncio.run(run_aiokafka(*where))
        case "confluent-kafka":
            run_confluent_kafka(*where)
    say("closed")


if __name__ == "__main__":
    main()
