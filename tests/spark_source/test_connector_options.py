"""Which options Spark's own Kafka source takes and which it refuses, and ours: asked of both, on Apache Kafka.

What both refuse or take is meant to stay so. Where they differ, it is on purpose, and the table says why.
"""

from __future__ import annotations

from uuid import uuid4

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from topics import WAIT_S, fill, make_topic

from loadwise.spark_source.errors import SparkSourceError
from loadwise.spark_source.planning.query import checked, planned

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

AT_ONCE = {"fetchOffset.retryIntervalMs": "1"}
IMPATIENT = {"kafkaConsumer.pollTimeoutMs": "1000"}
"""Only where both refuse: what is refused for being late must be refused anyhow."""


def to(first, second, name="startingOffsets"):
    return {name: f'{{"TOPIC": {{"0": {first}, "1": {second}}}}}'}


BOTH_REFUSE = [
    {"subscribe": None},
    {"assign": '{"TOPIC":[0]}'},
    {"subscribePattern": "TOPIC"},
    {"subscribe": " , "},
    {"subscribe": None, "subscribePattern": ""},
    {"subscribe": None, "subscribePattern": "["},
    {"subscribe": None, "assign": "TOPIC"},
    {"subscribe": None, "assign": '["TOPIC"]'},
    {"subscribe": None, "assign": '{"TOPIC":0}'},
    {"subscribe": None, "assign": '{"TOPIC":["0"]}'},
    {"subscribe": "TOPIC-that-is-not-there"},
    {"kafka.bootstrap.servers": None},
    {"kafka.bootstrap.servers": ""},
    {"startingOffsets": "latest"},
    {"startingOffsets": "LATEST"},
    {"startingOffsets": ""},
    {"startingOffsets": "newest"},
    {"startingOffsets": '{"TOPIC":{"0":1'},
    {"startingOffsets": '{"TOPIC":{"0":1}}'},
    {"startingOffsets": '{"TOPIC":{"0":"1","1":1}}'},
    {"startingOffsets": '{"TOPIC":{"0":1,"1":1,"2":1}}'},
    to(-1, 0),
    to(-3, 0),
    to(99, 0),
    to(5, 0) | to(3, 5, "endingOffsets"),
    {"endingOffsets": "earliest"},
    {"endingOffsets": " "},
    to(-2, 5, "endingOffsets"),
    to(99, 5, "endingOffsets") | IMPATIENT,
    {"startingTimestamp": "yesterday"},
    {"startingTimestamp": ""},
    {"startingTimestamp": "9999999999999"},
    {"endingTimestamp": "x"},
    {"startingOffsetsByTimestamp": "latest"},
    {"startingOffsetsByTimestamp": '{"TOPIC":{"0":0}}'},
    {"startingOffsetsByTimestampStrategy": "none"},
    {"minPartitions": "0"},
    {"minPartitions": "1.5"},
    {"maxRecordsPerPartition": "0"},
    {"failOnDataLoss": "yes"},
    {"includeHeaders": "1"},
    {"kafkaConsumer.pollTimeoutMs": "x"},
    {"fetchOffset.numRetries": "-1"},
    {"kafka.auto.offset.reset": "earliest"},
    {"kafka.key.deserializer": "x"},
    {"kafka.value.deserializer": "x"},
    {"kafka.enable.auto.commit": "false"},
    {"kafka.interceptor.classes": "x"},
    {"kafka.isolation.level": "half"},
    {"kafka.fetch.min.bytes": "-1"},
    {"kafka.check.crcs": "no"},
    {"kafka.security.protocol": "TCP"},
]
BOTH_TAKE = [
    {"subscribe": " TOPIC ,, TOPIC-more , TOPIC"},
    {"subscribe": None, "subscribePattern": "TOPIC"},
    {"subscribe": None, "assign": '{"TOPIC":[1,1]}'},
    {"startingOffsets": " Earliest "},
    to(3, "2.0"),
    to(-2, 19) | to(-1, 20, "endingOffsets"),
    {"startingTimestamp": "9999999999999", "startingOffsetsByTimestampStrategy": "LATEST"},
    {"startingTimestamp": "0", "startingOffsets": "newest"},
    {"endingTimestamp": "9999999999999"},
    {"maxOffsetsPerTrigger": "5"},
    {"groupIdPrefix": "p", "kafka.group.id": "g"},
    {"kafka.group.id": ""},
    {"kafka.client.id": " me ", "KAFKA.Client.DNS.lookup": "use_all_dns_ips"},
    {"kafka.receive.buffer.bytes": "-1", "kafka.connections.max.idle.ms": "-1", "kafka.retry.backoff.ms": "0"},
    {"kafka.fetch.max.bytes": "100", "kafka.max.poll.interval.ms": "1000"},
    {"kafka.acks": "all", "kafka.key.serializer": "x"},
]
ONLY_THE_CONNECTOR_TAKES = {
    "a name that does not exist is a mistake": [{"startingOffset": "latest"}, {"kafka.fetch.min.byte": "1"}],
    "what there is for writing is none for reading": [{"topic": "TOPIC"}],
    "what names nothing is a mistake, no empty answer": [
        {"subscribe": None, "assign": "{}"},
        {"subscribe": None, "assign": '{"TOPIC":[-1]}'},
        {"startingTimestamp": "-1"},
    ],
    "a number cut short, or text behind the JSON, is not what was meant": [
        to(1.5, 0),
        {"startingOffsets": '{"TOPIC":{"0":1,"1":1}} x'},
    ],
    "a value that is wrong is wrong, also where it is not used": [
        {"maxOffsetsPerTrigger": "x"},
        {"fetchOffset.retryIntervalMs": "-1"},
    ],
    "Java's": [{"subscribe": None, "subscribePattern": r"TOPIC-\p{Lower}"}, {"kafka.security.providers": ""}],
    "beyond what librdkafka allows": [{"kafka.request.timeout.ms": "400000", "kafka.default.api.timeout.ms": "400000"}],
}
ONLY_WE_TAKE = {
    "no retry is a number of retries too": [{"fetchOffset.numRetries": "0"}],
    "spaces around a number say nothing": [{"minPartitions": " 4 "}],
    "failOnDataLoss=false reads what there is": [to(99, 5) | {"failOnDataLoss": "FALSE"}],
    "a task joins no group, so nothing is wrong": [{"kafka.session.timeout.ms": "1"}],
}
STREAMS_BOTH_REFUSE = [
    {"endingOffsets": "latest"},
    {"endingOffsetsByTimestamp": "{}"},
    {"maxOffsetsPerTrigger": "x"},
    {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"},
    {"minOffsetsPerTrigger": "3", "maxTriggerDelay": "soon"},
    {"kafka.enable.auto.commit": "true"},
]
STREAMS_BOTH_TAKE = [
    {"startingOffsets": "latest"},
    to(-1, -2),
    {"minOffsetsPerTrigger": "0", "maxTriggerDelay": "5us"},
]
STREAMS_ONLY_THE_CONNECTOR_TAKES = {
    "as endingOffsets": [{"endingTimestamp": "5"}],
    "nothing would ever be read": [{"maxOffsetsPerTrigger": "0"}],
}


def rows(table):
    """Each row with its options as its name, so that a failure tells them."""
    flat = table if isinstance(table, list) else [row for rows in table.values() for row in rows]
    return pytest.mark.parametrize("row", flat, ids=lambda row: " ".join(f"{name}={row[name]}" for name in row))


@pytest.fixture(scope="module")
def topic(apache_kafka):
    """A topic of 10 and 20 records, and another one of 5 whose name goes on after this one's."""
    name = f"topic-{uuid4().hex[:8]}"
    for more, sizes in {"": [10, 20], "-more": [5]}.items():
        make_topic(apache_kafka, name + more, len(sizes))
        fill(apache_kafka, name + more, sizes)
    return name


@pytest.fixture
def options(apache_kafka, topic, row):
    given = {"kafka.bootstrap.servers": apache_kafka, "subscribe": "TOPIC"} | AT_ONCE | row
    return {name: value.replace("TOPIC", topic) for name, value in given.items() if value is not None}


@pytest.fixture
def theirs(spark, connector, options, tmp_path):
    """Asks Spark's own source: what it reads, or what it says against it."""

    def ask(*, streaming=False):
        try:
            if not streaming:
                return spark.read.format("kafka").options(**options).load().count()
            writer = spark.readStream.format("kafka").options(**options).load().writeStream.format("noop")
            query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
            assert query.awaitTermination(WAIT_S)
            return sum(progress.numInputRows for progress in query.recentProgress)
        except (PySparkException, Py4JJavaError) as refusal:
            return refusal

    return ask


@pytest.fixture
def refused(options, row):
    """Asks ours, a stream for its options and a batch for its plan too: what of the row its refusal names, or None."""

    def ask(*, streaming=False):
        try:
            checked(options, streaming=True) if streaming else planned(options)
        except SparkSourceError as refusal:
            return [name for name in row if name in str(refusal) or (options.get(name) or name) in str(refusal)]
        return None

    return ask


@rows(BOTH_REFUSE)
def test_refused_by_both(theirs, refused):
    assert isinstance(theirs(), Exception)
    assert refused()


@rows(BOTH_TAKE)
def test_taken_by_both_and_as_many_records_read(theirs, options):
    assert theirs() == sum(len(item) for task in planned(options).tasks for item in task.ranges)


@rows(ONLY_THE_CONNECTOR_TAKES)
def test_taken_by_the_connector_only(theirs, refused):
    assert isinstance(theirs(), int)
    assert refused()


@rows(ONLY_WE_TAKE)
def test_taken_by_ours_only(theirs, refused):
    assert isinstance(theirs(), Exception)
    assert refused() is None


@rows(STREAMS_BOTH_REFUSE)
def test_refused_by_both_in_a_stream(theirs, refused):
    assert isinstance(theirs(streaming=True), Exception)
    assert refused(streaming=True)


@rows(STREAMS_BOTH_TAKE)
def test_taken_by_both_in_a_stream(theirs, refused):
    assert isinstance(theirs(streaming=True), int)
    assert refused(streaming=True) is None


@rows(STREAMS_ONLY_THE_CONNECTOR_TAKES)
def test_taken_by_the_connector_only_in_a_stream(theirs, refused):
    assert isinstance(theirs(streaming=True), int)
    assert refused(streaming=True)
