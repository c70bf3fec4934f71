"""A partition forgets a producer that has written nothing for long (producer.id.expiration.ms), as in Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from kafka_process import kafka_from_jars
from record_batches import batch
from sessions import Session
from topics import WAIT_S
from wires import Wire

from loadwise.coordinator import BrokerSettings, Coordinator
from loadwise.coordinator.cluster.log_upkeep import PRODUCERS_CHECK_INTERVAL_MS
from loadwise.protocol.error_codes import ErrorCode

EXPIRATION_MS = 15_000
DAY_MS = 86_400_000


@pytest.fixture(params=["loadwise", pytest.param("apache", marks=pytest.mark.kafka)])
def forgetful(request: pytest.FixtureRequest) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a broker that forgets producers soon, and what lets time pass there."""
    if request.param == "apache":
        settings = {
            "producer.id.expiration.ms": str(EXPIRATION_MS),
            "producer.id.expiration.check.interval.ms": "200",
        }
        with kafka_from_jars(more=settings) as kafka:
            yield kafka["PLAINTEXT"], lambda: time.sleep(0.1)  # between two looks
    else:
        settings = BrokerSettings(producer_id_expiration_ms=EXPIRATION_MS)
        with Coordinator(settings=settings).in_thread() as ours:
            yield ours.bootstrap_servers, lambda: ours.clock.step(PRODUCERS_CHECK_INTERVAL_MS)


def known(session: Session) -> list[tuple[int, int]]:
    """The producers that the partition remembers, with the last sequence number of each."""
    (topic,) = session.ask("DescribeProducers", 0, topics=[{"name": session.topic, "partition_indexes": [0]}]).topics
    return [(each.producer_id, each.last_sequence) for each in topic.partitions[0].active_producers]


def test_who_was_forgotten_may_begin_with_any_sequence_number(forgetful: tuple[str, Callable[[], None]]) -> None:
    address, pass_time = forgetful
    now_ms = int(time.time() * 1000)
    with closing(Session(address)) as session:
        assert session.create_topic() == 0
        session.wait_for_topic()
        first, gap = (batch([b"x"], timestamp=now_ms, producer=(7, 0, sequence)) for sequence in (0, 9))
        assert session.produce(first) == (0, 0)
        assert session.produce(first) == (0, 0), "it is known: nothing is appended"
        assert session.produce(gap)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert known(session) == [(7, 0)]
        deadline = time.monotonic() + WAIT_S
        while known(session):
            assert time.monotonic() < deadline
            pass_time()
        late = batch([b"x"], timestamp=int(time.time() * 1000) + DAY_MS // 24, producer=(7, 0, 9))
        assert session.produce(late) == (0, 1)
        assert known(session) == [(7, 9)]


@pytest.fixture
def wire() -> Wire:
    return Wire()


def append(wire: Wire, now_ms: int, sequence: int, *, transactional: bool = False) -> None:
    log = wire.cluster.topics.log("t", 1)
    assert log is not None
    wire.cluster.now_ms = now_ms
    data = batch([b"x"], timestamp=now_ms, producer=(7, 0, sequence), transactional=transactional)
    appended = log.append(data, now_ms=now_ms, in_transaction=transactional)
    assert appended.error is ErrorCode.NONE
    wire.cluster.grown(log, appended)


def run_until(wire: Wire, end_ms: int) -> None:
    while (due_ms := wire.router.next_deadline_ms) is not None and due_ms <= end_ms:
        wire.router.expire(due_ms)


def remembered(wire: Wire) -> list[int]:
    log = wire.cluster.topics.log("t", 1)
    assert log is not None
    return list(log.producers.known)


def test_it_is_remembered_for_a_day_after_its_last_batch(wire: Wire) -> None:
    append(wire, 0, 0)
    append(wire, DAY_MS // 2, 1)
    run_until(wire, DAY_MS + DAY_MS // 2 - 1)
    assert remembered(wire) == [7]
    run_until(wire, DAY_MS + DAY_MS // 2 + PRODUCERS_CHECK_INTERVAL_MS)
    assert remembered(wire) == []
    append(wire, 3 * DAY_MS, 5)
    assert remembered(wire) == [7], "and whoever comes again is forgotten again"
    run_until(wire, 4 * DAY_MS + PRODUCERS_CHECK_INTERVAL_MS)
    assert remembered(wire) == []


def test_one_whose_transaction_is_open_is_remembered(wire: Wire) -> None:
    append(wire, 0, 0, transactional=True)
    run_until(wire, 2 * DAY_MS)
    assert remembered(wire) == [7]
    log = wire.cluster.topics.log("t", 1)
    assert log is not None
    log.end_transaction(7, 0, committed=True, coordinator_epoch=0, timestamp_ms=2 * DAY_MS)
    run_until(wire, 3 * DAY_MS - 1)
    assert remembered(wire) == [7]
    run_until(wire, 3 * DAY_MS + PRODUCERS_CHECK_INTERVAL_MS)
    assert remembered(wire) == []


def test_a_cluster_that_is_restored_forgets_too(wire: Wire) -> None:
    append(wire, 0, 0)
    wire.cluster.restore(wire.cluster.snapshot(), 1000)
    run_until(wire, DAY_MS + PRODUCERS_CHECK_INTERVAL_MS)
    assert remembered(wire) == []
