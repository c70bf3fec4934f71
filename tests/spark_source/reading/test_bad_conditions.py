"""Reading while things go wrong: leaders that move, brokers that vanish, rights that are missing; no Spark in it."""

from __future__ import annotations

import re
import socket
from itertools import chain, count
from select import select
from time import monotonic

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from resolved_ranges import resolved
from topics import fill

from loadwise.coordinator import Coordinator
from loadwise.coordinator.apis import fetch_1 as fetch
from loadwise.protocol.error_codes import ErrorCode
from loadwise.spark_source.cluster.brokers import Brokers
from loadwise.spark_source.errors import OffsetsUnavailableError, ReadError, ReadTimeoutError
from loadwise.spark_source.options import query as parsing
from loadwise.spark_source.options.query import parse
from loadwise.spark_source.reading import position
from loadwise.spark_source.reading.arrow_batches import full_schema
from loadwise.spark_source.reading.tasks import read_task
from loadwise.spark_source.task import OffsetRange, Task

SIZE = 20_000
SMALL_BATCHES = {"kafka.max.poll.records": "100", "kafka.max.partition.fetch.bytes": "2000"}


@pytest.fixture(params=["batches", "messages"], autouse=True)
def which(request, monkeypatch):
    """Both readers pass every test."""
    monkeypatch.setattr(parsing, "DEFAULT_READER", request.param)
    return request.param


@pytest.fixture
def cluster():
    """Two brokers of its own: what is done to them must not be felt by other tests."""
    with Coordinator({"t": 1}, brokers=2).in_thread() as running:
        # In small batches: a fetch brings at least a whole one, and no reader may have read all of it ahead.
        fill(running.bootstrap_servers, "t", [SIZE], batch_records=50)
        yield running


def options(cluster, **more):
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "t"} | SMALL_BATCHES
    return given | {name.replace("__", "."): str(value) for name, value in more.items()}


def reading(cluster, **more):
    """The offsets of a task that reads everything, batch by batch."""
    task = Task("slot-0", (OffsetRange("t", 0, 0, SIZE),), float(SIZE))
    for batch in read_task(task, parse(options(cluster, **more)), full_schema(include_headers=False)):
        yield batch["offset"].to_pylist()


def test_a_leader_that_moves_in_the_middle_of_a_task(cluster):
    found = []
    for number, offsets in enumerate(reading(cluster)):
        found += offsets
        if number in (3, 30):
            cluster.move_leader("t", 0)
    assert found == list(range(SIZE))


def test_errors_that_pass_are_waited_out(cluster):
    for error in ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "KAFKA_STORAGE_ERROR"):
        cluster.faults.answer("Fetch", error=error, times=1)
    cluster.faults.disconnect("Fetch", times=1)
    assert list(chain(*reading(cluster))) == list(range(SIZE))
    assert not cluster.faults.pending


def test_a_reader_that_is_above_its_quota_is_answered_without_partitions(cluster, monkeypatch):
    """Kafka's ``FetchContext.getThrottledResponse``: no error, and no topic either; the next answer has the records."""
    respond, answers = fetch._response, count()

    def throttled(call, cluster, wanted):
        if next(answers) % 40:
            return respond(call, cluster, wanted)
        none = ErrorCode.NONE
        return call.response(throttle_time_ms=100, error_code=none, session_id=0, responses=[], node_endpoints=[])

    monkeypatch.setattr(fetch, "_response", throttled)
    assert list(chain(*reading(cluster))) == list(range(SIZE))


def test_a_broker_that_vanishes_in_the_middle_of_a_task(cluster, monkeypatch):
    """librdkafka need not report that connections were lost: whether the message has a last error is left open."""
    batches = reading(cluster, kafkaConsumer__pollTimeoutMs=2000)
    monkeypatch.setattr(position, "monotonic", lambda: 0.0)  # the first batch may take its time
    assert next(batches)[0] == 0
    monkeypatch.setattr(position, "monotonic", monotonic)
    for broker in (1, 2):
        cluster.stop_broker(broker)
    with pytest.raises(ReadTimeoutError) as failed:
        list(batches)
    assert re.fullmatch(
        r"no record of t-0 at offset \d+ \(of t-0\[0, 20000\)\) arrived for 2000 ms( \(the client's last error: .*\))?;"
        r" check kafka.bootstrap.servers and the brokers, or raise kafkaConsumer.pollTimeoutMs",
        str(failed.value),
    )


def test_an_answer_that_never_comes(cluster):
    cluster.faults.drop("Fetch")
    with pytest.raises(ReadTimeoutError, match=r"^no record of t-0 at offset 0 .* arrived for 500 ms"):
        next(reading(cluster, kafkaConsumer__pollTimeoutMs=500))


@pytest.mark.parametrize("which", ["batches"], indirect=True)
def test_a_broker_that_answers_nothing_is_named(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        given = {"kafka.bootstrap.servers": address, "subscribe": "t", "kafkaConsumer.pollTimeoutMs": "100"}
        task = Task("slot-0", (OffsetRange("t", 0, 0, 1),), 1.0)
        # The time is over once the client has connected.
        monkeypatch.setattr(position, "monotonic", lambda: monotonic() if select([silent], [], [], 0)[0] else 0.0)
        with pytest.raises(ReadTimeoutError, match=rf"client's last error: {address} has not answered\); check"):
            list(read_task(task, parse(given), full_schema(include_headers=False)))


def test_rights_that_are_missing_are_named(cluster, monkeypatch):
    """Kafka says so for each partition, which a fault of the coordinator does not."""
    row = fetch._row
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    monkeypatch.setattr(fetch, "_row", lambda wanted, _, **how: row(wanted._replace(error=denied), b"", **how))
    with pytest.raises(ReadError, match=r"^cannot read t-0 at offset 0 .*uthorization.* the right to READ the topic$"):
        next(reading(cluster))
    cluster.faults.answer("ListOffsets", error=denied, times=None)
    with pytest.raises(OffsetsUnavailableError, match=r"^cannot look up the offsets of t-0: .* READ on the topic"):
        resolved(parse(options(cluster, kafka__default__api__timeout__ms=60_000)))


@pytest.mark.parametrize("which", ["batches"], indirect=True)
def test_leaders_of_all_topics_of_a_task_are_asked_for_at_once(monkeypatch):
    names = [f"t{number}" for number in range(8)]
    asked = []
    ask = Brokers._ask_any

    async def counted(brokers, request):
        asked.append(request)
        return await ask(brokers, request)

    monkeypatch.setattr(Brokers, "_ask_any", counted)
    with Coordinator(dict.fromkeys(names, 2), brokers=3).in_thread() as running:
        for name in names:
            fill(running.bootstrap_servers, name, [5, 5])
        ranges = tuple(OffsetRange(name, partition, 0, 5) for name in names for partition in (0, 1))
        given = {"kafka.bootstrap.servers": running.bootstrap_servers, "subscribe": ",".join(names)}
        schema = full_schema(include_headers=False)
        read = list(read_task(Task("slot-0", ranges, 80.0), parse(given), schema))
    assert sum(batch.num_rows for batch in read) == 80
    assert len(asked) == 1
