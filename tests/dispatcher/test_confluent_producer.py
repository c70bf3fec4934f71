"""confluent-kafka's producer with a dispatcher, against three brokers of the coordinator."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from seeds import SEED
from topics import WAIT_S, until
from uneven import ERRORS, FEW, LEASE_RECORDS, PARTITIONS, leader_of, unacknowledged

from loadwise import ConfluentProducer, Dispatcher, SpreadKeys, confluent_producer
from loadwise.coordinator import ThreadedCoordinator
from loadwise.dispatcher import BadDispatcherError
from loadwise.dispatcher.clients import confluent_kafka


class Deliveries:
    """What on_delivery was told."""

    def __init__(self) -> None:
        self.partitions: list[int] = []
        self.errors: list[KafkaError] = []

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.partitions.append(message.partition())
        else:
            self.errors.append(error)


@pytest.fixture
def make(cluster: ThreadedCoordinator, topic: str) -> Callable[..., ConfluentProducer]:
    def made(dispatcher: Dispatcher | None = None, **config: Any) -> ConfluentProducer:
        config = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "linger.ms": 0} | {
            name.replace("__", "-").replace("_", ".").replace("-", "_"): value for name, value in config.items()
        }
        producer = confluent_producer(config, dispatcher=dispatcher)
        until(lambda: len(producer.leaders(topic)) == PARTITIONS, lambda: producer.leaders(topic))
        return producer

    return made


def brokers_of(producer: ConfluentProducer, topic: str, count: int) -> Counter[int]:
    """Send records one after the other; return how many each broker got."""
    deliveries = Deliveries()
    for _ in range(count):
        producer.produce(topic, b"v", on_delivery=deliveries)
        producer.flush()
    assert not deliveries.errors
    return Counter(map(leader_of, deliveries.partitions))


def test_records_without_a_key_fill_a_batch_before_the_next(make: Callable[..., ConfluentProducer], topic: str) -> None:
    producer, deliveries = make(batch_size=10_000, linger_ms=60_000), Deliveries()
    for _ in range(9 * 2 * PARTITIONS):
        producer.produce(topic, bytes(1000), on_delivery=deliveries)
    producer.flush()
    found = Counter(deliveries.partitions)
    assert len(found) > PARTITIONS / 2
    assert {records % 9 for records in found.values()} == {0}


PARTITIONERS = ["consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"]
"""librdkafka's, but for ``random``, which puts keys anywhere."""
KEYS = [b"", "", b"\x00", b"\xff" * 9, "Schlüssel", *(Random(SEED).randbytes(each) for each in range(1, 40))]


def places(producer: Producer, topic: str, keys: Sequence[str | bytes | None]) -> list[int]:
    """The partition that each key's record goes to, without a batch that is begun for another."""
    found: dict[int, int] = {}
    for number, key in enumerate(keys):
        producer.produce(
            topic, b"v", key, on_delivery=lambda _, message, number=number: found.update({number: message.partition()})
        )
    producer.flush()
    return [found[number] for number in range(len(keys))]


def configured(partitioner: str | None, where: str) -> dict[str, Any]:
    if partitioner is None:
        return {}
    return {"partitioner": partitioner} if where == "itself" else {"default.topic.config": {"partitioner": partitioner}}


@pytest.mark.parametrize("where", ["itself", "default.topic.config"])
@pytest.mark.parametrize("partitioner", [None, *PARTITIONERS])
def test_keys_go_where_librdkafka_puts_them(
    make: Callable[..., ConfluentProducer],
    cluster: ThreadedCoordinator,
    topic: str,
    partitioner: str | None,
    where: str,
) -> None:
    """Whatever its partitioner is, so that a program may change one producer for the other while it runs."""
    settings = configured(partitioner, where)
    bare = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "linger.ms": 0, **settings})
    ours = make(**settings)
    empty_goes_anywhere = partitioner in (None, "consistent_random")
    keys = [key for key in KEYS if key or not empty_goes_anywhere]
    assert places(ours, topic, keys) == places(bare, topic, keys)
    if partitioner in ("consistent", "murmur2", "fnv1a"):
        assert places(ours, topic, [None] * 20) == places(bare, topic, [None] * 20)
    spreading = make(Dispatcher(spread={topic: SpreadKeys(choices=1)}), **settings)
    assert places(spreading, topic, keys) == places(bare, topic, keys), "that is where keys are spread from"


@pytest.mark.parametrize("partitioner", [None, "consistent_random", "murmur2_random", "fnv1a_random", "random"])
def test_records_without_a_key_go_to_the_best_broker(
    make: Callable[..., ConfluentProducer], topic: str, partitioner: str | None
) -> None:
    settings = configured(partitioner, "itself")
    producer = make(**settings)
    keyless = [None, b"", ""] if partitioner in (None, "consistent_random") else [None]
    for key in keyless:
        with producer.dispatcher.related():
            assert len(set(places(producer, topic, [key] * 20))) == 1, "as the dispatcher decides"


def test_a_key_is_spread_where_that_was_asked_for(make: Callable[..., ConfluentProducer], topic: str) -> None:
    producer, deliveries = make(Dispatcher(spread={topic: SpreadKeys()})), Deliveries()
    for _ in range(10 * PARTITIONS):
        producer.produce(topic, b"v", "hot", on_delivery=deliveries)
    producer.flush()
    assert Counter(deliveries.partitions) == dict.fromkeys(range(PARTITIONS), 10)


def test_a_slowed_broker_gets_less_and_comes_back(
    make: Callable[..., ConfluentProducer], cluster: ThreadedCoordinator, topic: str
) -> None:
    clock = [0.0]
    producer = make(Dispatcher(clock=lambda: clock[0]))

    def lease() -> Counter[int]:
        clock[0] += 4.0
        return brokers_of(producer, topic, LEASE_RECORDS)

    lease()
    fault = cluster.faults.delay("Produce", ms=100, broker=2, times=None)
    slowed: list[Counter[int]] = []
    until(lambda: slowed.append(lease()) or slowed[-1][2] <= FEW, lambda: slowed)
    cluster.faults.remove(fault)
    again: list[Counter[int]] = []
    until(lambda: again.append(lease()) or again[-1][2] >= 5, lambda: again)


def test_the_first_record_waits_for_metadata(
    cluster: ThreadedCoordinator, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confluent_kafka, "_FIRST_RECORD_S", WAIT_S)
    producer = confluent_producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 60_000})
    producer.produce(topic, b"v")
    assert unacknowledged(producer.dispatcher, 1, 2, 3) == 1
    producer.flush()


async def test_in_an_event_loop_librdkafka_chooses_until_there_is_metadata(
    cluster: ThreadedCoordinator, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer, deliveries = confluent_producer({"bootstrap.servers": cluster.bootstrap_servers}), Deliveries()
    monkeypatch.setattr(producer._metadata, "wait", lambda _: pytest.fail("the loop waits"))
    producer.produce(topic, b"v", on_delivery=deliveries)
    producer.flush()
    assert len(deliveries.partitions) == 1


def test_a_deleted_topic_stays_deleted(make: Callable[..., ConfluentProducer], cluster: ThreadedCoordinator) -> None:
    name = "deleted"
    cluster.create_topic(name, PARTITIONS)
    producer = make()
    producer.produce(name, b"v")
    producer.flush()
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics([name])[name].result()
    for _ in range(2):
        assert producer._metadata.wait(WAIT_S)
    assert name not in admin.list_topics(timeout=WAIT_S).topics
    assert not producer.leaders(name)


@pytest.mark.parametrize("key", [None, "spread"])
def test_a_topic_that_is_created_again_with_fewer_partitions_takes_records_at_once(
    make: Callable[..., ConfluentProducer], cluster: ThreadedCoordinator, key: str | None
) -> None:
    name = f"created-again-{key}"
    cluster.create_topic(name, PARTITIONS)
    producer, deliveries = make(Dispatcher(lease_s=3600, spread={name: SpreadKeys()})), Deliveries()
    for _ in range(2 * PARTITIONS):
        producer.produce(name, b"v", key)
        producer.flush()
    assert producer._metadata.wait(WAIT_S)  # the last reading before the lease ends, which it does not here
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics([name])[name].result()
    admin.create_topics([NewTopic(name, 1)])[name].result()
    producer.list_topics(name)
    assert len(producer.leaders(name)) == PARTITIONS, "librdkafka knows, the dispatcher does not"
    with pytest.raises(KafkaException, match="_UNKNOWN_PARTITION"):
        producer.produce(name, b"v", partition=PARTITIONS - 1)
    for _ in range(2 * PARTITIONS):
        producer.produce(name, b"v", key, on_delivery=deliveries)
    producer.flush()
    assert (deliveries.partitions, deliveries.errors) == ([0] * 2 * PARTITIONS, [])
    until(lambda: len(producer.leaders(name)) == 1, lambda: producer.leaders(name))


@pytest.fixture
def no_cycle_is_collected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_cycle_is_collected")
def test_a_producer_ends_with_its_last_reference(make: Callable[..., ConfluentProducer], topic: str) -> None:
    others, dispatcher = set(threading.enumerate()), Dispatcher()
    producer = make(dispatcher)
    producer.produce(topic, b"v")
    producer.flush()
    (metadata,) = set(threading.enumerate()) - others
    alive = weakref.ref(producer)
    del producer
    until(lambda: alive() is None, lambda: gc.get_referrers(alive()))
    metadata.join(WAIT_S)
    assert not metadata.is_alive()


def test_a_record_that_is_refused_at_once_does_not_count(make: Callable[..., ConfluentProducer], topic: str) -> None:
    producer = make(queue_buffering_max_messages=1, linger_ms=60_000)
    producer.produce(topic, b"value")
    with pytest.raises(BufferError):
        producer.produce(topic, b"value")
    assert unacknowledged(producer.dispatcher, 1, 2, 3) == 1
    producer.flush()
    assert unacknowledged(producer.dispatcher, 1, 2, 3) == 0


def test_the_callback_of_the_configuration_is_called_too(make: Callable[..., ConfluentProducer], topic: str) -> None:
    everywhere, here = Deliveries(), Deliveries()
    producer = make(on__delivery=everywhere)
    producer.produce(topic, b"v")
    producer.produce(topic, b"v", on_delivery=here)
    producer.flush()
    assert [len(everywhere.partitions), len(here.partitions)] == [1, 1]


@pytest.mark.parametrize(("error", "silent"), ERRORS)
def test_an_error_counts_against_the_broker_only_if_it_is_its_own(
    make: Callable[..., ConfluentProducer], cluster: ThreadedCoordinator, topic: str, error: str, silent: set[int]
) -> None:
    cluster.faults.answer("Produce", error=error, topic=topic, times=None)
    producer, deliveries = make(retries=0), Deliveries()
    producer.produce(topic, b"v", on_delivery=deliveries, partition=0)
    producer.flush()
    assert [failed.name() for failed in deliveries.errors] == [error]
    assert producer.dispatcher._acknowledgements.moment([1, 2, 3], 0.0).silent == silent


def test_records_of_an_aborted_transaction_are_taken_back(
    make: Callable[..., ConfluentProducer], cluster: ThreadedCoordinator, topic: str
) -> None:
    producer, deliveries = make(transactional_id=topic, linger_ms=10_000), Deliveries()
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"v", on_delivery=deliveries, partition=0)
    producer.abort_transaction()
    producer.flush()
    assert [error.name() for error in deliveries.errors] == ["_PURGE_QUEUE"]
    now = producer.dispatcher._acknowledgements.moment([1, 2, 3], 0.0)
    assert (now.silent, now.waiting[1]) == (set(), 0)


@pytest.mark.parametrize("wrong", [("t", 3), ("t", b"v", 3), (["t"], b"v"), (b"t", b"v"), ("t", [1], b"k")])
def test_a_wrong_argument_of_produce_is_named_by_the_client(
    cluster: ThreadedCoordinator, wrong: tuple[object, ...]
) -> None:
    config = {"bootstrap.servers": cluster.bootstrap_servers}
    spreading = confluent_producer(config, dispatcher=Dispatcher(spread={"t": SpreadKeys()}))
    with pytest.raises(TypeError) as theirs:
        Producer(config).produce(*wrong)
    for producer in (confluent_producer(config), spreading):
        with pytest.raises(TypeError) as ours:
            producer.produce(*wrong)
        assert str(ours.value) == str(theirs.value)


def test_what_is_no_dispatcher_is_refused() -> None:
    with pytest.raises(BadDispatcherError, match="dispatcher is 'x'"):
        confluent_producer({}, dispatcher="x")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"partitioner_cb": print}, "partitioner_cb is for a function in C"),
        ({"default.topic.config": {"partitioner_cb": print}}, "partitioner_cb is for a function in C"),
        ({"delivery.report.only.error": True}, "delivery.report.only.error hides"),
    ],
)
def test_what_hinders_the_dispatcher_is_refused(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(BadDispatcherError, match=named):
        confluent_producer({"bootstrap.servers": "localhost:1", **wrong})


def test_a_configuration_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(BadDispatcherError, match="config is None; it must be a mapping"):
        confluent_producer(None)
