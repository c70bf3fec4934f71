"""Faults as real clients see them: one commit of an offset by each client, while something goes wrong with it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest

from loadwise.coordinator import Coordinator, ThreadedCoordinator

OFFSET = 3
PATIENCE_MS = 60_000
IMPATIENCE_MS = 2000
"""How long a client waits for an answer that never comes; then it tries again, so a busy machine costs time only."""


def kafka_python(address: str, group_id: str, request_timeout_ms: int) -> None:
    partition = kafka.TopicPartition("t", 0)
    with kafka.KafkaConsumer(
        bootstrap_servers=address,
        group_id=group_id,
        enable_auto_commit=False,
        request_timeout_ms=request_timeout_ms,
        session_timeout_ms=1500,
        heartbeat_interval_ms=500,
        retry_backoff_ms=20,
    ) as consumer:
        consumer.assign([partition])
        consumer.commit({partition: kafka.OffsetAndMetadata(OFFSET, "", -1)}, timeout_ms=60_000)


def aiokafka_(address: str, group_id: str, request_timeout_ms: int) -> None:
    async def commit() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=address,
            group_id=group_id,
            enable_auto_commit=False,
            request_timeout_ms=PATIENCE_MS,
            session_timeout_ms=1500,
            heartbeat_interval_ms=500,
            retry_backoff_ms=20,
        )
        partition = aiokafka.TopicPartition("t", 0)
        consumer.assign([partition])
        async with consumer:
            # Of the next connection, to the coordinator: aiokafka does not try again to begin.
            consumer._client._request_timeout_ms = request_timeout_ms
            await consumer.commit({partition: OFFSET})

    asyncio.run(commit())


def confluent(address: str, group_id: str, request_timeout_ms: int) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group_id,
            "enable.auto.commit": False,
            "socket.timeout.ms": request_timeout_ms,
            "retry.backoff.ms": 20,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition("t", 0)])
        consumer.commit(offsets=[confluent_kafka.TopicPartition("t", 0, OFFSET)], asynchronous=False)
    finally:
        consumer.close()


def is_unauthorized(failure: BaseException) -> bool:
    if isinstance(failure, confluent_kafka.KafkaException):
        return bool(failure.args[0].code() == confluent_kafka.KafkaError.GROUP_AUTHORIZATION_FAILED)
    python_clients = (kafka.errors.GroupAuthorizationFailedError, aiokafka.errors.GroupAuthorizationFailedError)
    return isinstance(failure, python_clients)


@pytest.fixture(scope="module")
def faulty() -> Iterator[ThreadedCoordinator]:
    with Coordinator({"t": 1}).in_thread() as coordinator:
        yield coordinator


@pytest.fixture(params=[kafka_python, aiokafka_, confluent])
def commit(request: pytest.FixtureRequest, faulty: ThreadedCoordinator, group_id: str) -> Iterator[Callable[..., None]]:
    """Commits an offset in a group of its own, with one of the clients."""
    yield lambda request_timeout_ms=PATIENCE_MS: request.param(faulty.bootstrap_servers, group_id, request_timeout_ms)
    faulty.clock.resume()
    faulty.faults.clear()


def committed(coordinator: ThreadedCoordinator, group_id: str) -> list[int | None]:
    groups = {group.group_id: group for group in coordinator.groups.all()}
    return [each.committed for each in groups[group_id].partitions] if group_id in groups else []


@pytest.mark.parametrize(
    ("fault", "conditions"),
    [
        ("answer", {"error": "COORDINATOR_LOAD_IN_PROGRESS"}),
        ("answer", {"error": "NOT_COORDINATOR"}),
        ("disconnect", {"after_handling": False}),
        ("disconnect", {"after_handling": True}),
        ("drop", {}),
    ],
)
def test_a_commit_that_can_be_retried_is_retried(
    faulty: ThreadedCoordinator, commit: Callable[..., None], group_id: str, fault: str, conditions: dict[str, Any]
) -> None:
    met = getattr(faulty.faults, fault)("OffsetCommit", group=group_id, **conditions)
    commit(request_timeout_ms=IMPATIENCE_MS if fault == "drop" else PATIENCE_MS)
    assert (met.hits, committed(faulty, group_id)) == (1, [OFFSET])


def test_an_error_that_cannot_be_retried_is_raised(
    faulty: ThreadedCoordinator, commit: Callable[..., None], group_id: str
) -> None:
    faulty.faults.answer("OffsetCommit", "GROUP_AUTHORIZATION_FAILED", group=group_id, times=None)
    with pytest.raises(Exception) as raised:  # noqa: PT011  (each client has an error of its own)
        commit()
    assert is_unauthorized(raised.value)
    assert committed(faulty, group_id) == []


def test_an_answer_that_lies_loses_the_commit(
    faulty: ThreadedCoordinator, commit: Callable[..., None], group_id: str
) -> None:
    fault = faulty.faults.answer("OffsetCommit", "NONE", group=group_id, times=None)
    commit()
    assert fault.hits
    assert committed(faulty, group_id) == []


def test_a_delay_lasts_until_the_clock_says_so(
    faulty: ThreadedCoordinator, commit: Callable[..., None], group_id: str
) -> None:
    faulty.clock.freeze()
    fault = faulty.faults.delay("OffsetCommit", 60_000, group=group_id, times=None)
    client = threading.Thread(target=commit)
    client.start()
    waited = threading.Event()
    while fault.hits == 0:
        waited.wait(0.01)
    assert committed(faulty, group_id) == []
    faulty.faults.clear()
    faulty.clock.step(60_000)
    client.join(60)
    assert not client.is_alive()
    assert committed(faulty, group_id) == [OFFSET]


def test_a_fault_of_one_broker_leaves_the_others_alone() -> None:
    with Coordinator(brokers=2).in_thread() as coordinator:
        coordinator.create_topic("t", partitions=2)
        fault = coordinator.faults.answer("Produce", error="NOT_ENOUGH_REPLICAS", broker=2, times=None)
        outcomes = {}
        with kafka.KafkaProducer(bootstrap_servers=coordinator.bootstrap_servers, retries=0) as producer:
            for partition in (0, 1):
                future = producer.send("t", b"value", partition=partition)
                leader = producer._metadata.leader_for_partition(kafka.TopicPartition("t", partition))
                producer.flush()
                outcomes[leader] = future.succeeded()
        assert outcomes == {1: True, 2: False}
        assert fault.hits == 1
