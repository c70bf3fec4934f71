"""What confluent_consumer raises for calls that cannot succeed: what confluent-kafka's own consumer raises."""

from __future__ import annotations

import logging
import threading
from time import monotonic
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from topics import WAIT_S

from loadwise import confluent_consumer

SETTINGS = {"bootstrap.servers": "localhost:1", "group.id": "g", "log_level": 0}
REQUESTS = {Consumer: 4, confluent_consumer: 20}
"""Of metadata: librdkafka asks for a topic that is not there once a second, ours ten times."""
SELECTOR = "kafka.net.selector"
PARTITIONS = [TopicPartition("t", 0, 1)]
MESSAGE = Message(topic="t", partition=0, offset=3)

BAD_ARGUMENTS = {
    "subscribe to nothing": lambda consumer: consumer.subscribe([]),
    "subscribe to text": lambda consumer: consumer.subscribe("t"),
    "subscribe to None": lambda consumer: consumer.subscribe(None),
    "subscribe with a callback that is none": lambda consumer: consumer.subscribe(["t"], on_assign=1),
    "consume a negative number": lambda consumer: consumer.consume(-1, 0),
    "consume too many": lambda consumer: consumer.consume(10**7, 0),
    "poll for a text": lambda consumer: consumer.poll("soon"),
    "commit nothing": lambda consumer: consumer.commit(asynchronous=False),
    "commit no offsets": lambda consumer: consumer.commit(offsets=[], asynchronous=False),
    "commit both": lambda consumer: consumer.commit(message=MESSAGE, offsets=PARTITIONS),
    "commit text": lambda consumer: consumer.commit(offsets="x"),
    "commit a number": lambda consumer: consumer.commit(message=1),
    "commit with an unknown argument": lambda consumer: consumer.commit(at_once=True),
    "store nothing": lambda consumer: consumer.store_offsets(),
    "store both": lambda consumer: consumer.store_offsets(message=MESSAGE, offsets=PARTITIONS),
    "store offsets that are not assigned": lambda consumer: consumer.store_offsets(offsets=PARTITIONS),
    "store a message that is not assigned": lambda consumer: consumer.store_offsets(message=MESSAGE),
    "store a number": lambda consumer: consumer.store_offsets(message=1),
    "committed of text": lambda consumer: consumer.committed("x"),
    "committed of nothing": lambda consumer: consumer.committed(),
    "position of text": lambda consumer: consumer.position("x"),
    "seek what is not assigned": lambda consumer: consumer.seek(PARTITIONS[0]),
    "seek a number": lambda consumer: consumer.seek(1),
    "pause text": lambda consumer: consumer.pause("x"),
}
CLOSED = {
    "subscribe": lambda consumer: consumer.subscribe(["t"]),
    "unsubscribe": lambda consumer: consumer.unsubscribe(),
    "poll": lambda consumer: consumer.poll(0),
    "consume": lambda consumer: consumer.consume(1, 0),
    "commit": lambda consumer: consumer.commit(),
    "commit offsets": lambda consumer: consumer.commit(offsets=PARTITIONS, asynchronous=False),
    "store_offsets": lambda consumer: consumer.store_offsets(offsets=PARTITIONS),
    "committed": lambda consumer: consumer.committed(PARTITIONS),
    "position": lambda consumer: consumer.position(PARTITIONS),
    "seek": lambda consumer: consumer.seek(PARTITIONS[0]),
    "pause": lambda consumer: consumer.pause(PARTITIONS),
    "resume": lambda consumer: consumer.resume(PARTITIONS),
    "assignment": lambda consumer: consumer.assignment(),
    "assign": lambda consumer: consumer.assign(PARTITIONS),
    "unassign": lambda consumer: consumer.unassign(),
    "incremental_assign": lambda consumer: consumer.incremental_assign(PARTITIONS),
    "incremental_unassign": lambda consumer: consumer.incremental_unassign(PARTITIONS),
    "memberid": lambda consumer: consumer.memberid(),
    "consumer_group_metadata": lambda consumer: consumer.consumer_group_metadata(),
    "close": lambda consumer: consumer.close(),
}


def outcome(consumer: Any, call: Any) -> Any:
    """What a call answers, or what it raises: the class, and the code of a ``KafkaException``."""
    try:
        return call(consumer)
    except KafkaException as error:
        return KafkaException, error.args[0].code()
    except Exception as error:  # noqa: BLE001 (this is what is compared)
        return type(error)


@pytest.mark.parametrize("call", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_bad_arguments_fail_as_with_the_stock_consumer(call):
    stock, ours = Consumer(SETTINGS), confluent_consumer(SETTINGS)
    try:
        assert outcome(ours, call) == outcome(stock, call)
    finally:
        stock.close()
        ours.close()


@pytest.mark.parametrize("call", CLOSED.values(), ids=CLOSED)
def test_a_closed_consumer_fails_as_the_stock_one(call):
    stock, ours = Consumer(SETTINGS), confluent_consumer(SETTINGS)
    stock.close()
    ours.close()
    assert outcome(ours, call) == outcome(stock, call)


@pytest.mark.parametrize("make", [Consumer, confluent_consumer], ids=["stock", "ours"])
def test_a_topic_that_does_not_exist_is_reported_once(make, coordinator, topic_name, group_id, caplog):
    given = {"bootstrap.servers": coordinator.bootstrap_servers, "group.id": group_id, "client.id": group_id}
    # Clients that earlier tests have left may log in theirs.
    of_others = {each.ident for each in threading.enumerate()} - {threading.get_ident()}
    consumer = make(given | {"metadata.max.age.ms": 200, "log_level": 0})
    consumer.subscribe([topic_name])
    asked = coordinator.faults.delay("Metadata", ms=0, client_id=group_id, times=None)
    told, deadline = [], monotonic() + WAIT_S
    try:
        while not told or asked.hits < REQUESTS[make]:
            assert monotonic() < deadline
            if (message := consumer.poll(0.05)) is not None:
                told.append((message.error().code(), message.topic()))
    finally:
        coordinator.faults.clear()
        consumer.close()
    assert told == [(KafkaError.UNKNOWN_TOPIC_OR_PART, topic_name)]
    # On a slow machine, kafka-python's loop warns of each of its tasks that took 0.1 s.
    warnings = [each for each in caplog.records if each.levelno >= logging.WARNING and each.name != SELECTOR]
    warnings = [each for each in warnings if each.thread not in of_others]
    logged = [record.getMessage() for record in warnings]
    assert len(logged) == len(set(logged)) <= 1
    assert not any(topic_name in line for line in logged), "poll says it"
