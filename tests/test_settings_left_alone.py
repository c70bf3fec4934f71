"""What the factories' clients do with settings that a program leaves alone: the same as the clients' own classes."""

from __future__ import annotations

import inspect
import io
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer
from topics import until

from loadwise import (
    aiokafka_consumer,
    aiokafka_producer,
    confluent_consumer,
    confluent_producer,
    kafka_python_consumer,
    kafka_python_producer,
)
from loadwise.coordinator import ThreadedCoordinator
from loadwise.coordinator.groups.records import GroupRecord

REFUSALS = {"kafka_client", "bootstrap_timeout_ms"}
"""A refused login, or a broker that is down, ends kafka-python's start with its reason, after 9 seconds, not 30."""
NUMBERED = {"client_id", "_client_id"}
"""Both clients number their producers."""

Made = Callable[..., Any]


def differing(bare: Mapping[str, Any], ours: Mapping[str, Any]) -> set[str]:
    return {name for name in bare.keys() | ours.keys() if bare.get(name) != ours.get(name)} - NUMBERED


@pytest.mark.parametrize(
    ("bare", "make", "given", "known"),
    [
        (KafkaProducer, kafka_python_producer, {}, REFUSALS | {"partitioner"}),
        (KafkaConsumer, kafka_python_consumer, {"group_id": "g"}, REFUSALS | {"partition_assignment_strategy"}),
    ],
)
def test_kafka_pythons_configuration(
    coordinator: ThreadedCoordinator, bare: Made, make: Made, given: dict[str, Any], known: set[str]
) -> None:
    clients = [each(bootstrap_servers=coordinator.bootstrap_servers, **given) for each in (bare, make)]
    assert differing(*(client.config for client in clients)) == known
    for client in clients:
        client.close()


PARTS = ("_client", "_coordinator", "_fetcher", "_message_accumulator", "_sender", "_subscription", "_metadata")
"""What aiokafka's clients are made of; each keeps some of the settings."""


def kept(client: Any) -> dict[str, Any]:
    """The settings that aiokafka's client keeps: numbers and texts, by the part that has them."""
    parts = {"": client} | {f"{part}.": getattr(client, part, None) for part in PARTS}
    return {
        f"{part}{name}": value
        for part, holder in parts.items()
        for name, value in (vars(holder) if hasattr(holder, "__dict__") else {}).items()
        if isinstance(value, bool | int | float | str | bytes) and name not in NUMBERED
    }


async def test_aiokafkas_configuration(coordinator: ThreadedCoordinator) -> None:
    address = {"bootstrap_servers": coordinator.bootstrap_servers}
    pairs: list[tuple[Made, Made, dict[str, str]]] = [
        (AIOKafkaProducer, aiokafka_producer, {}),
        (AIOKafkaConsumer, aiokafka_consumer, {"group_id": "g"}),
    ]
    for bare, make, given in pairs:
        clients = [each(**address, **given) for each in (bare, bare, make)]
        for client in clients:
            await client.start()
        first, second, ours = map(kept, clients)
        for client in clients:
            await client.stop()
        assert len(first) > 10
        not_settings = differing(first, second)  # such as when a broker was last asked
        assert {name: ours.get(name) for name in first.keys() - not_settings} == {
            name: first[name] for name in first.keys() - not_settings
        }


def told_to_librdkafka(make: Callable[[dict[str, Any]], Any], given: Mapping[str, Any]) -> dict[str, str]:
    """The configuration that librdkafka logs as its client is made: all that is not a default."""
    log = io.StringIO()
    logger = logging.Logger("librdkafka")
    logger.addHandler(logging.StreamHandler(log))
    client = make({**given, "debug": "conf", "logger": logger})
    until(lambda: client.poll(0.1) or "Client configuration:" in log.getvalue())
    if hasattr(client, "close"):
        client.close()
    rows = re.findall(r"\]:   (\S+) = (.*)", log.getvalue())
    return {name: re.sub("0x[0-9a-f]+", "an address", value) for name, value in rows}


@pytest.mark.parametrize(
    ("bare", "make", "known"),
    [
        (Producer, confluent_producer, set()),
        (Consumer, confluent_consumer, {"enable.auto.commit"}),  # the consumer commits for its own member
    ],
)
@pytest.mark.parametrize("more", [{}, {"acks": "1", "default.topic.config": {"compression.type": "gzip"}}])
def test_librdkafkas_configuration(
    coordinator: ThreadedCoordinator, bare: Made, make: Made, known: set[str], more: dict[str, Any]
) -> None:
    given = {"bootstrap.servers": coordinator.bootstrap_servers, **({"group.id": "g"} if bare is Consumer else more)}
    bare_settings, ours = told_to_librdkafka(bare, given), told_to_librdkafka(make, given)
    assert bare_settings.keys() >= given.keys() - {"bootstrap.servers", "default.topic.config", "acks"}
    assert differing(bare_settings, ours) == known


def test_librdkafkas_member_has_the_times_of_a_bare_consumer(
    coordinator: ThreadedCoordinator, topic_name: str, group_id: str
) -> None:
    """A session that is shorter or longer than before would be noticed when a member is slow or dies."""
    coordinator.create_topic(topic_name)
    found = []
    for number, make in enumerate((Consumer, confluent_consumer)):
        group = f"{group_id}-{number}"
        consumer = make({"bootstrap.servers": coordinator.bootstrap_servers, "group.id": group})
        consumer.subscribe([topic_name])
        until(lambda: consumer.poll(0.1) or consumer.assignment())  # noqa: B023
        found.append(times_of(coordinator, group))
        consumer.close()
    assert found[0] == found[1] == (45_000, 300_000)


def times_of(coordinator: ThreadedCoordinator, group_id: str) -> tuple[int, int]:
    """The session and rebalance timeouts of a group's only member."""
    (group,) = [each for each in coordinator.snapshot().of(GroupRecord) if each.group_id == group_id]
    (member,) = group.members
    return member.session_timeout_ms, member.rebalance_timeout_ms


METHODS = [
    (KafkaConsumer, kafka_python_consumer, {"group_id": "g"}),
    (AIOKafkaConsumer, aiokafka_consumer, {"group_id": "g"}),
    (KafkaProducer, kafka_python_producer, {}),
    (AIOKafkaProducer, aiokafka_producer, {}),
]


@pytest.mark.parametrize(("bare", "make", "given"), METHODS)
async def test_arguments_that_are_left_out(
    coordinator: ThreadedCoordinator, bare: type, make: Made, given: dict[str, Any]
) -> None:
    client = make(bootstrap_servers=coordinator.bootstrap_servers, **given)
    for name, method in inspect.getmembers(bare, inspect.isfunction):
        if name.startswith("_"):
            continue
        ours = inspect.signature(getattr(type(client), name)).parameters
        for each in inspect.signature(method).parameters.values():
            if each.default is not inspect.Parameter.empty and each.name in ours:
                assert ours[each.name].default == each.default, (name, each.name)
    stopped = client.stop() if hasattr(client, "stop") else client.close()
    if inspect.isawaitable(stopped):
        await stopped
