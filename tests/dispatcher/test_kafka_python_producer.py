"""kafka-python's producer with a dispatcher, against three brokers of the coordinator."""

from __future__ import annotations

from collections import Counter

import pytest
from bootstrap_deadline import give_up_soon_after_failures
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaConfigurationError, KafkaError, KafkaTimeoutError
from kafka.partitioner.default import murmur2
from topics import until
from uneven import ERRORS, FEW, LEASE_RECORDS, PARTITIONS, leader_of, unacknowledged

from loadwise import Dispatcher, kafka_python_producer
from loadwise.coordinator import ThreadedCoordinator
from loadwise.dispatcher import BadDispatcherError

HANGS_MS = 25_000
"""How long the broker does not answer, by the coordinator's clock, which the test steps."""


def brokers_of(futures: list[object]) -> Counter[int]:
    return Counter(leader_of(future.get(timeout=60).partition) for future in futures)


def test_records_without_a_key_fill_a_batch_before_the_next(cluster: ThreadedCoordinator, topic: str) -> None:
    with kafka_python_producer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=60_000) as producer:
        futures = [producer.send(topic, bytes(1000)) for _ in range(200)]
        producer.flush()
        found = Counter(future.get(timeout=60).partition for future in futures)
    assert len(found) > PARTITIONS / 2
    assert sum(records % 16 != 0 for records in found.values()) <= 1, "16 records of 1000 bytes fill a batch"


def test_keyed_records_go_where_their_keys_belong(cluster: ThreadedCoordinator, topic: str) -> None:
    with kafka_python_producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        futures = {key: producer.send(topic, b"v", key=key) for key in (b"%d" % number for number in range(50))}
        for key, future in futures.items():
            assert future.get(timeout=60).partition == (murmur2(key) & 0x7FFFFFFF) % PARTITIONS


def test_a_slowed_broker_gets_less_and_comes_back(cluster: ThreadedCoordinator, topic: str) -> None:
    clock = [0.0]
    dispatcher = Dispatcher(clock=lambda: clock[0])
    with kafka_python_producer(dispatcher=dispatcher, bootstrap_servers=cluster.bootstrap_servers) as producer:

        def lease() -> Counter[int]:
            clock[0] += 4.0
            return brokers_of([sent_alone(producer, topic) for _ in range(LEASE_RECORDS)])

        lease()
        fault = cluster.faults.delay("Produce", ms=100, broker=2, times=None)
        slowed: list[Counter[int]] = []
        until(lambda: slowed.append(lease()) or slowed[-1][2] <= FEW, lambda: slowed)
        cluster.faults.remove(fault)
        again: list[Counter[int]] = []

        def is_back() -> bool:
            again.append(lease())
            return again[-1][2] >= 5

        until(is_back, lambda: again)


def sent_alone(producer: KafkaProducer, topic: str) -> object:
    future = producer.send(topic, b"v")
    future.get(timeout=60)
    return future


def test_a_silent_broker_gets_nothing_until_it_answers(cluster: ThreadedCoordinator, topic: str) -> None:
    clock = [0.0]
    fault = cluster.faults.delay("Produce", ms=HANGS_MS, broker=3, times=1, topic=topic)
    cluster.clock.freeze()
    dispatcher = Dispatcher(clock=lambda: clock[0])
    with kafka_python_producer(dispatcher=dispatcher, bootstrap_servers=cluster.bootstrap_servers) as producer:
        stuck = []
        until(lambda: stuck.append(producer.send(topic, b"v")) or fault.hits, lambda: stuck)
        until(lambda: not unacknowledged(dispatcher, 1, 2), lambda: unacknowledged(dispatcher, 1, 2))
        clock[0] += 2.0
        assert 3 not in brokers_of([sent_alone(producer, topic) for _ in range(60)])
        cluster.clock.step(HANGS_MS)
        cluster.clock.resume()
        assert {future.get(timeout=60).topic for future in stuck} == {topic}
        found: list[Counter[int]] = []

        def is_back() -> bool:
            clock[0] += 4.0
            found.append(brokers_of([sent_alone(producer, topic) for _ in range(30)]))
            return found[-1][3] >= 5

        until(is_back, lambda: found)


@pytest.mark.parametrize(("error", "silent"), ERRORS)
def test_an_error_counts_against_the_broker_only_if_it_is_its_own(
    cluster: ThreadedCoordinator, topic: str, error: str, silent: set[int]
) -> None:
    cluster.faults.answer("Produce", error=error, topic=topic, times=None)
    dispatcher = Dispatcher()
    with kafka_python_producer(
        dispatcher=dispatcher, bootstrap_servers=cluster.bootstrap_servers, retries=0, enable_idempotence=False
    ) as producer:
        with pytest.raises(KafkaError):
            producer.send(topic, b"v", partition=0).get(timeout=60)
        assert dispatcher._acknowledgements.moment([1, 2, 3], 0.0).silent == silent


def test_nothing_is_lost_when_brokers_fail_by_turns(cluster: ThreadedCoordinator, topic: str) -> None:
    for broker in (1, 2, 3):
        cluster.faults.answer("Produce", error="NOT_LEADER_OR_FOLLOWER", broker=broker, times=2)
        cluster.faults.disconnect("Produce", broker=broker, skip=3)
    with kafka_python_producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        for number in range(500):
            producer.send(topic, b"%d" % number)
        producer.flush()
    partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    with KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions)
        values: set[bytes] = set()
        until(
            lambda: (
                values.update(record.value for records in consumer.poll(timeout_ms=200).values() for record in records)
                or len(values) == 500
            ),
            lambda: len(values),
        )


def test_an_unknown_topic_is_the_clients_own_error(cluster: ThreadedCoordinator) -> None:
    producer = kafka_python_producer(bootstrap_servers=cluster.bootstrap_servers, max_block_ms=100)
    with producer, pytest.raises(Exception, match="illegal"):
        producer.send("no/topic", b"v")


def test_a_dispatcher_serves_one_producer(cluster: ThreadedCoordinator) -> None:
    dispatcher = Dispatcher()
    with (
        kafka_python_producer(dispatcher=dispatcher, bootstrap_servers=cluster.bootstrap_servers),
        pytest.raises(BadDispatcherError, match="another producer"),
    ):
        kafka_python_producer(dispatcher=dispatcher, bootstrap_servers=cluster.bootstrap_servers)


def test_a_dispatcher_of_a_producer_that_could_not_be_made_is_free(cluster: ThreadedCoordinator, topic: str) -> None:
    dispatcher = Dispatcher()
    with pytest.raises(KafkaConfigurationError):
        kafka_python_producer(
            dispatcher=dispatcher, bootstrap_servers=cluster.bootstrap_servers, delivery_timeout_ms=1, linger_ms=2
        )
    with kafka_python_producer(dispatcher=dispatcher, bootstrap_servers=cluster.bootstrap_servers) as producer:
        assert producer.send(topic, b"v").get(timeout=60).topic == topic


@pytest.mark.parametrize("wrong", ["partitioner", "dispatcher"])
def test_a_partitioner_and_what_is_no_dispatcher_are_refused(wrong: str) -> None:
    with pytest.raises(BadDispatcherError, match=wrong):
        kafka_python_producer(**{wrong: "x"})


def test_a_broker_that_is_down_and_a_misspelt_argument_are_named(nowhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    give_up_soon_after_failures(monkeypatch)
    with pytest.raises(KafkaTimeoutError, match=f"no Kafka answers at {nowhere} "):
        kafka_python_producer(bootstrap_servers=nowhere)
    with pytest.raises(TypeError, match=r"'bootstrap_server' \(did you mean 'bootstrap_servers'\?\)"):
        kafka_python_producer(bootstrap_server="127.0.0.1:1")
