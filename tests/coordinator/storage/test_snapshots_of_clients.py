"""A cluster that is put back to a snapshot under real clients: what goes on, what is fenced, what is seen again."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from topics import WAIT_S, take

from loadwise.coordinator import Coordinator, Security, Snapshot, ThreadedCoordinator


@pytest.fixture
def cluster() -> Iterator[ThreadedCoordinator]:
    with Coordinator(topics={"t": 1}).in_thread() as coordinator:
        yield coordinator


def producing(cluster: ThreadedCoordinator, **config: Any) -> Producer:
    made = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0, "log_level": 0, **config})
    if "transactional.id" in config:
        made.init_transactions(WAIT_S)
    return made


def send(producer: Producer, *values: bytes) -> None:
    outcomes: list[Any] = []
    for value in values:
        producer.produce("t", value, on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(WAIT_S) == 0
    assert outcomes == [None] * len(values)


def consuming(cluster: ThreadedCoordinator, **config: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
            "log_level": 0,
            **config,
        }
    )


def stored(cluster: ThreadedCoordinator, isolation: str) -> list[bytes]:
    """All that a reader sees in the topic."""
    reader = consuming(
        cluster, **{"group.id": f"g-{uuid.uuid4()}", "isolation.level": isolation, "enable.partition.eof": True}
    )
    reader.assign([TopicPartition("t", 0, 0)])
    values: list[bytes] = []
    while (message := reader.poll(WAIT_S)) is not None and message.error() is None:
        values.append(message.value())
    assert message is not None
    reader.close()
    return values


def test_a_consumer_group_goes_on(cluster: ThreadedCoordinator) -> None:
    producer = producing(cluster, **{"enable.idempotence": True})
    send(producer, b"0", b"1", b"2", b"3")
    consumer = consuming(cluster, **{"group.id": "g"})
    consumer.subscribe(["t"])
    assert take(consumer, 2) == [b"0", b"1"]
    consumer.commit(offsets=[TopicPartition("t", 0, 2)], asynchronous=False)
    snapshot = cluster.snapshot()
    (before,) = cluster.groups.all()
    assert take(consumer, 2) == [b"2", b"3"]
    # Else it may have fetched "4" before the cluster is put back, and would go on behind it.
    consumer.pause([TopicPartition("t", 0)])
    send(producer, b"4")
    consumer.commit(offsets=[TopicPartition("t", 0, 4)], asynchronous=False)
    cluster.restore(snapshot)
    (after,) = cluster.groups.all()
    assert (after.generation, after.members, after.partitions) == (before.generation, before.members, before.partitions)
    assert stored(cluster, "read_committed") == [b"0", b"1", b"2", b"3"]
    send(producer, b"after")  # the same producer, with its sequence numbers, on a connection of its own
    (committed,) = consumer.committed([TopicPartition("t", 0)], WAIT_S)
    assert committed.offset == 2
    # The same member: it need not join again, and reads where it was.
    consumer.resume([TopicPartition("t", 0)])
    assert take(consumer, 1) == [b"after"]
    assert cluster.groups.get("g").generation == before.generation
    consumer.close()


def test_a_transaction_that_was_open_goes_on(cluster: ThreadedCoordinator) -> None:
    producer = producing(cluster, **{"transactional.id": "x"})
    producer.begin_transaction()
    send(producer, b"open")
    member = consuming(cluster, **{"group.id": "g"})
    metadata = member.consumer_group_metadata()
    producer.send_offsets_to_transaction([TopicPartition("t", 0, 7)], metadata, WAIT_S)
    snapshot = cluster.snapshot()
    cluster.restore(snapshot)
    assert stored(cluster, "read_committed") == []
    assert stored(cluster, "read_uncommitted") == [b"open"]
    send(producer, b"more")
    producer.commit_transaction(WAIT_S)
    assert stored(cluster, "read_committed") == [b"open", b"more"]
    (committed,) = member.committed([TopicPartition("t", 0)], WAIT_S)
    assert committed.offset == 7
    producer.begin_transaction()
    send(producer, b"next")
    producer.commit_transaction(WAIT_S)
    assert stored(cluster, "read_committed") == [b"open", b"more", b"next"]
    member.close()


def test_a_producer_that_lived_on_after_the_snapshot_is_fenced(cluster: ThreadedCoordinator) -> None:
    first = producing(cluster, **{"transactional.id": "x"})
    first.begin_transaction()
    send(first, b"open")
    snapshot = cluster.snapshot()
    second = producing(cluster, **{"transactional.id": "x"})
    second.begin_transaction()
    send(second, b"of another life")
    cluster.restore(snapshot)
    with pytest.raises(KafkaException) as refused:
        second.commit_transaction(WAIT_S)
    assert refused.value.args[0].fatal() or refused.value.args[0].txn_requires_abort()
    third = producing(cluster, **{"transactional.id": "x"})  # which aborts what was open
    third.begin_transaction()
    send(third, b"new")
    third.commit_transaction(WAIT_S)
    assert stored(cluster, "read_committed") == [b"new"]
    with pytest.raises(KafkaException):
        first.commit_transaction(WAIT_S)
    for each in (first, second):
        each.purge()


def test_other_clients_connect_again(cluster: ThreadedCoordinator) -> None:
    with (
        KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer,
        KafkaConsumer(
            "t", bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest", group_id="g"
        ) as consumer,
    ):
        producer.send("t", b"a").get(WAIT_S)
        assert next(consumer).value == b"a"
        snapshot = cluster.snapshot()
        for value in (b"b", b"c"):
            cluster.restore(snapshot)
            producer.send("t", value).get(WAIT_S)
        assert next(consumer).value == b"c"
    assert stored(cluster, "read_committed") == [b"a", b"c"]


def test_it_is_put_back_into_another_coordinator_and_before_the_start(cluster: ThreadedCoordinator) -> None:
    send(producing(cluster), b"a")
    snapshot: Snapshot = cluster.snapshot()
    other = Coordinator()
    other.restore(snapshot)
    with other.in_thread() as running:
        assert stored(running, "read_committed") == [b"a"]


def test_secrets_are_not_shown() -> None:
    coordinator = Coordinator(security=Security(users={"orders": "a-secret"}))
    assert "secret" not in repr(coordinator.snapshot())
