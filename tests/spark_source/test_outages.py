"""A broker that is away for a while: look-ups outlast it as those of Spark's Kafka source do, and end at last."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

import confluent_kafka
from coordinator_process import coordinator_with_pid
from kafka_process import kafka_from_jars
from member_group import Group
from missing import skipped_where_missing
from resolved_ranges import resolved
from topics import WAIT_S, fill, make_topic, until

from loadwise.spark_source.cluster import offsets
from loadwise.spark_source.errors import OffsetsUnavailableError
from loadwise.spark_source.options.query import parse
from loadwise.spark_source.planning import following
from loadwise.spark_source.planning.query import planned
from loadwise.spark_source.reading.arrow_batches import full_schema
from loadwise.spark_source.stream import OURS_TO_LIMIT, LoadwiseStreamReader

PARTITIONS, RECORDS = 3, 5
PATIENCE = {"kafka.default.api.timeout.ms": "1000", "fetchOffset.numRetries": "90"}
"""A first attempt lasts longer than the timeout alone, all of them as long as a test may wait."""


@pytest.mark.parametrize(
    ("options", "away_s", "survives"),
    [
        ({"kafka.default.api.timeout.ms": "10000"}, 25, True),
        ({"kafka.default.api.timeout.ms": "10000"}, 34, False),
        ({"kafka.default.api.timeout.ms": "10000", "fetchOffset.numRetries": "1"}, 12, False),
        ({"kafka.default.api.timeout.ms": "10000", "fetchOffset.numRetries": "0"}, 10, True),
        ({"kafka.default.api.timeout.ms": "10000", "fetchOffset.retryIntervalMs": "5000"}, 44, True),
        ({}, 80, True),
        ({}, 184, False),
    ],
)
def test_look_ups_last_as_long_as_all_attempts_of_sparks_kafka_source(  # noqa: PLR0917 (fixtures)
    options, away_s, survives, coordinator, topic_name, monkeypatch
):
    """By a clock of its own: only a request that is not answered, and sleeping, take time."""
    coordinator.create_topic(topic_name, PARTITIONS)
    now_s = [0.0]

    class Away(confluent_kafka.Consumer):
        def list_topics(self, *topics, timeout):
            if now_s[0] + timeout >= away_s:  # what waits for a broker is answered
                now_s[0] = max(now_s[0], away_s)
                return super().list_topics(*topics, timeout=WAIT_S)
            now_s[0] += timeout
            raise confluent_kafka.KafkaException(confluent_kafka.KafkaError(confluent_kafka.KafkaError._TRANSPORT))

    monkeypatch.setattr(confluent_kafka, "Consumer", Away)
    monkeypatch.setattr(offsets, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(offsets, "sleep", lambda seconds: now_s.append(now_s.pop() + seconds))
    query = parse({"kafka.bootstrap.servers": coordinator.bootstrap_servers, "subscribe": topic_name, **options})
    if survives:
        assert len(resolved(query)) == PARTITIONS
        return
    with pytest.raises(OffsetsUnavailableError, match=r"or raise fetchOffset\.numRetries or kafka\."):
        resolved(query)
    assert now_s[0] == pytest.approx(query.look_up_ms / 1000)


class Broker:
    """A broker of the test's own that can be stopped, and goes on."""

    def __init__(self, address: str, pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.address, self._pid = address, pid
        self._asked_again: list[float] = []
        for module in (offsets, following):
            monkeypatch.setattr(module, "sleep", self._noting(module.sleep))

    def _noting(self, sleep: Callable[[float], None]) -> Callable[[float], None]:
        def noting(seconds: float) -> None:
            self._asked_again.append(seconds)
            sleep(seconds)

        return noting

    def outlasted(self, ask: Callable[[], object]) -> object:
        """Call this while the broker is stopped until an attempt has failed; return what it answers then."""
        self._asked_again.clear()
        os.kill(self._pid, signal.SIGSTOP)
        with ThreadPoolExecutor(1) as thread:
            try:
                answer = thread.submit(ask)
                until(lambda: self._asked_again or answer.done())
                assert not answer.done()
            finally:
                os.kill(self._pid, signal.SIGCONT)
            return answer.result(WAIT_S)


@pytest.fixture(params=["loadwise", pytest.param("apache", marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """Our coordinator, and a Kafka, each in a process of its own."""
    with contextlib.ExitStack() as stack:
        if request.param == "loadwise":
            address, pid = stack.enter_context(coordinator_with_pid())
        else:
            stack.enter_context(skipped_where_missing())
            kafka = stack.enter_context(kafka_from_jars())
            address, pid = kafka["PLAINTEXT"], kafka.broker.pid
        yield Broker(address, pid, monkeypatch)


@pytest.fixture
def options(broker, topic_name):
    make_topic(broker.address, topic_name, PARTITIONS)
    fill(broker.address, topic_name, [RECORDS] * PARTITIONS)
    return {"kafka.bootstrap.servers": broker.address, "subscribe": topic_name} | PATIENCE


def test_a_batch_that_is_planned_during_an_outage(broker, options):
    plan = broker.outlasted(lambda: planned({**options, "numTasks": "1"}))
    assert sum(len(item) for task in plan.tasks for item in task.ranges) == PARTITIONS * RECORDS


def test_a_batch_that_follows_a_group(broker, options, group_id):
    """The look-up of offsets is over; the group is described next."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.address, "group.id": group_id})
    with contextlib.closing(consumer):
        consumer.subscribe([options["subscribe"]])
        until(lambda: consumer.poll(0.1) or len(consumer.assignment()) == PARTITIONS)
        config = parse(options).client
        owners = broker.outlasted(lambda: following.owners_of(config, group_id, look_up_ms=int(1000 * WAIT_S)))
    assert [len(owner.partitions) for owner in owners] == [PARTITIONS]


def test_a_stream(broker, options):
    reader = LoadwiseStreamReader(options | {"startingOffsets": "earliest"}, full_schema(include_headers=False))
    with contextlib.ExitStack() as stack:
        stack.callback(reader.stop)
        begun = reader.initialOffset()
        assert reader.latestOffset(begun, OURS_TO_LIMIT) == begun
        end = broker.outlasted(lambda: reader.latestOffset(begun, OURS_TO_LIMIT))
    assert end[options["subscribe"]] == {str(number): RECORDS for number in range(PARTITIONS)}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_member(broker, options, group_id, restarts):
    """A query that starts again during the outage looks for a broker before it joins."""
    group = Group(broker.address, options["subscribe"], group_id)
    stream = group.stream(**{name.replace(".", "__"): value for name, value in PATIENCE.items()})
    try:
        stream.until(lambda: sum(stream.read().values()) == PARTITIONS * RECORDS)
        if restarts:
            stream.reader.stop()
            stream.restart()
        broker.outlasted(stream.ask)
        fill(broker.address, options["subscribe"], [1] * PARTITIONS)
        stream.until(lambda: {(number, RECORDS) for number in range(PARTITIONS)} <= stream.read().keys())
    finally:
        stream.end()
