"""A Python producer and administrator for the interop tests; the same commands and lines as ``franz-go/main.go``.

``python client.py CLIENT produce BOOTSTRAP TOPIC FIRST LAST``, ``python client.py CLIENT admin BOOTSTRAP GROUP TOPIC``,
CLIENT being kafka-python, aiokafka or confluent-kafka.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any

WITHIN_S = 60


def say(event: str, **details: Any) -> None:
    print(json.dumps({"event": event, **details}), flush=True)


def until_known(describe: Callable[[], Any | None]) -> Any:
    """What is told of a topic that was just made: Kafka's brokers learn of it a moment after the answer."""
    deadline = time.monotonic() + WITHIN_S
    while (described := describe()) is None:
        assert time.monotonic() < deadline, "the topic is not known"
        time.sleep(0.05)  # between two looks
    return described


def produce_kafka_python(bootstrap: str, topic: str, texts: list[bytes]) -> None:
    from kafka import KafkaProducer

    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for sent in [producer.send(topic, key=text, value=text) for text in texts]:
            sent.get(WITHIN_S)


async def produce_aiokafka(bootstrap: str, topic: str, texts: list[bytes]) -> None:
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for sent in [await producer.send(topic, key=text, value=text) for text in texts]:
            await sent


def produce_confluent_kafka(bootstrap: str, topic: str, texts: list[bytes]) -> None:
    from confluent_kafka import Producer

    failures: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for text in texts:
        producer.produce(topic, text, text, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(WITHIN_S) == 0
    assert not failures, failures


def admin_kafka_python(bootstrap: str, group: str, topic: str) -> dict[str, Any]:
    from kafka import KafkaAdminClient
    from kafka.admin import NewTopic
    from kafka.errors import KafkaError

    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    fresh = f"{topic}-fresh"
    admin.create_topics([NewTopic(fresh, 3, 1)])
    again = missing = "none"
    try:
        admin.create_topics([NewTopic(fresh, 3, 1)])
    except KafkaError as error:
        again = type(error).__name__
    described_topic = until_known(
        lambda: next((each for each in admin.describe_topics([fresh]) if each["partitions"]), None)
    )
    described = admin.describe_groups([group])[group]
    offsets = admin.list_group_offsets(group)[group]
    seen = {
        "partitions": len(described_topic["partitions"]),
        "listed": group in {each["group_id"] for each in admin.list_groups()},
        "state": described["group_state"],
        "committed": sum(each.offset for each in offsets.values()),
        "deleted": str(admin.delete_groups([group])),
    }
    try:
        missing = str(admin.delete_groups([group]))
    except KafkaError as error:
        missing = type(error).__name__
    admin.delete_topics([fresh])
    admin.close()
    return {**seen, "again": again, "missing": missing.replace(group, "GROUP")} | {
        "deleted": seen["deleted"].replace(group, "GROUP")
    }


async def admin_aiokafka(bootstrap: str, group: str, topic: str) -> dict[str, Any]:
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic
    from aiokafka.errors import for_code

    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    fresh = f"{topic}-fresh"
    await admin.create_topics([NewTopic(fresh, 3, 1)])
    again = await admin.create_topics([NewTopic(fresh, 3, 1)])
    deadline = time.monotonic() + WITHIN_S
    while not (described := await admin.describe_topics([fresh]))[0]["partitions"]:  # as in until_known
        assert time.monotonic() < deadline, "the topic is not known"
        await asyncio.sleep(0.05)  # between two looks
    groups = await admin.list_consumer_groups()
    (answer,) = await admin.describe_consumer_groups([group])
    offsets = await admin.list_consumer_group_offsets(group)
    seen = {
        "again": for_code(again.topic_errors[0][1]).__name__,
        "partitions": len(described[0]["partitions"]),
        "listed": (group, "consumer") in groups,
        "state": answer.groups[0][2],
        "committed": sum(each.offset for each in offsets.values()),
    }
    await admin.delete_topics([fresh])
    await admin.close()
    return seen  # this client cannot delete groups


def admin_confluent_kafka(bootstrap: str, group: str, topic: str) -> dict[str, Any]:
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicCollection
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    fresh = f"{topic}-fresh"

    def failure(future: Any) -> str:
        try:
            future.result(WITHIN_S)
        except KafkaException as error:
            return str(error.args[0].name())
        return "none"

    admin.create_topics([NewTopic(fresh, 3, 1)])[fresh].result(WITHIN_S)
    again = failure(admin.create_topics([NewTopic(fresh, 3, 1)])[fresh])

    def described_topics() -> Any | None:
        try:
            return admin.describe_topics(TopicCollection([fresh]))[fresh].result(WITHIN_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return None

    described_topic = until_known(described_topics)
    listed = admin.list_consumer_groups().result(WITHIN_S).valid
    described = admin.describe_consumer_groups([group])[group].result(WITHIN_S)
    wanted = [ConsumerGroupTopicPartitions(group)]
    offsets = admin.list_consumer_group_offsets(wanted)[group].result(WITHIN_S).topic_partitions
    admin.delete_consumer_groups([group])[group].result(WITHIN_S)
    missing = failure(admin.delete_consumer_groups([group])[group])
    admin.delete_topics([fresh])[fresh].result(WITHIN_S)
    return {
        "again": again,
        "partitions": len(described_topic.partitions),
        "listed": group in {each.group_id for each in listed},
        "state": described.state.name,
        "type": described.type.name,
        "committed": sum(each.offset for each in offsets),
        "missing": missing,
    }


def main() -> None:
    client, command, bootstrap, *rest = sys.argv[1:]
    if command == "produce":
        topic, first, last = rest
        texts = [b"%d" % number for number in range(int(first), int(last))]
        match client:
            case "kafka-python":
                produce_kafka_python(bootstrap, topic, texts)
            case "aiokafka":
                asyncio.run(produce_aiokafka(bootstrap, topic, texts))
            case "confluent-kafka":
                produce_confluent_kafka(bootstrap, topic, texts)
        say("produced", count=len(texts))
        return
    match client:
        case "kafka-python":
            say("admin", **admin_kafka_python(bootstrap, *rest))
        case "aiokafka":
            say("admin", **asyncio.run(admin_aiokafka(bootstrap, *rest)))
        case "confluent-kafka":
            say("admin", **admin_confluent_kafka(bootstrap, *rest))


if __name__ == "__main__":
    main()
