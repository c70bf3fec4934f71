"""One checkpoint, written by Spark's own Kafka source and by ours in turn: nothing is lost and nothing doubled.

Both run for real, on Apache Kafka. A micro-batch is left unfinished wherever one hands over to the other.
"""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException
from started_queries import run_to_its_end
from topics import WAIT_S, grow_topic, make_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


class Log:
    """A topic, and every record that was written to it: its partition, offset and value."""

    def __init__(self, brokers, name, partitions):
        self.brokers, self.name, self.records = brokers, name, []
        make_topic(brokers, name, partitions)

    def write(self, *sizes):
        """So many records to each partition, each with a value of its own."""

        def delivered(error, message):
            assert error is None, error
            self.records.append((message.partition(), message.offset(), message.value().decode()))

        producer = Producer({"bootstrap.servers": self.brokers, "log_level": 0})
        for partition, size in enumerate(sizes):
            for number in range(size):
                value = f"{len(self.records)}/{partition}/{number}"
                producer.produce(self.name, value, partition=partition, on_delivery=delivered)
        assert producer.flush(WAIT_S) == 0

    def since(self, *offsets):
        """What was written from these offsets on; from 0 on in partitions that are not named."""
        first = dict(enumerate(offsets))
        return sorted(record for record in self.records if record[1] >= first.get(record[0], 0))


class SinkError(Exception):
    """What the sink fails with."""


class Sink:
    """Keeps the rows of each micro-batch by its number, so that a replay takes the place of what it replays."""

    def __init__(self):
        self.batches, self.unfinished = {}, {}
        self.fail_at = None

    def __call__(self, frame, number):
        rows = sorted(tuple(row) for row in frame.selectExpr("partition", "offset", "CAST(value AS STRING)").collect())
        if number == self.fail_at:
            self.unfinished[number] = rows
            self.batches[number] = rows[: len(rows) // 2]
            raise SinkError
        self.batches[number] = rows

    def rows(self):
        return sorted(row for rows in self.batches.values() for row in rows)


@pytest.fixture
def run(spark, connector, tmp_path):
    """Runs a query from the one checkpoint through a source, to the end of what there is or until its sink fails."""

    def run(source, log, sink, *, fail_at=None, **options):
        given = {"kafka.bootstrap.servers": log.brokers, "subscribe": log.name} | options
        sink.fail_at = fail_at
        writer = spark.readStream.format(source).options(**given).load().writeStream.foreachBatch(sink)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        try:
            run_to_its_end(writer.start)
            assert fail_at is None
        except StreamingQueryException as error:
            if fail_at not in sink.unfinished or "SinkError" not in str(error):
                raise

    return run


@pytest.fixture
def log(apache_kafka, topic_name):
    return Log(apache_kafka, topic_name, 3)


def begun(tmp_path):
    """Where Spark's Kafka source says that its first micro-batch began: behind a zero byte and a version, JSON."""
    return (tmp_path / "checkpoint" / "sources" / "0" / "0").read_text().removeprefix("\0").removeprefix("v1\n")


def test_a_checkpoint_goes_from_sparks_kafka_source_to_ours_and_back(run, log, tmp_path):
    sink, options = Sink(), {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "60"}
    log.write(90, 10, 5)
    run("kafka", log, sink, fail_at=1, **options)
    log.write(0, 40, 7)
    run("loadwise", log, sink, fail_at=2, **options)
    grow_topic(log.brokers, log.name, 4)
    log.write(70, 0, 3, 11)
    run("kafka", log, sink, fail_at=4, **options)
    log.write(20, 20, 20, 20)
    run("loadwise", log, sink, **options)
    log.write(1, 2, 3, 4)
    run("kafka", log, sink, **options)
    assert sink.rows() == log.since(0)
    assert {number: sink.batches[number] for number in sink.unfinished} == sink.unfinished
    assert sink.unfinished.keys() == {1, 2, 4}
    assert all(sink.unfinished.values())


def test_the_first_micro_batch_of_sparks_kafka_source_is_finished_by_ours_from_where_it_began(run, log, tmp_path):
    """What "latest" meant then, nobody can ask Kafka for. The checkpoint says it, but to no Python source."""
    sink = Sink()
    log.write(9, 5, 1)
    before = json.dumps({log.name: {"0": 3, "1": 5, "2": 0}})
    run("kafka", log, sink, fail_at=0, startingOffsets=before)
    log.write(4, 0, 2)
    with pytest.raises(StreamingQueryException, match=r"option startingOffsets: .*sources/0/0"):
        run("loadwise", log, sink, startingOffsets="latest")
    run("loadwise", log, sink, startingOffsets=begun(tmp_path))
    run("loadwise", log, sink, startingOffsets="latest")
    assert sink.batches[0] == sink.unfinished[0]
    assert sink.rows() == log.since(3, 5, 0)


def test_our_first_micro_batch_is_followed_by_those_of_sparks_kafka_source(run, log):
    sink = Sink()
    log.write(9, 5, 1)
    run("loadwise", log, sink, startingOffsets="latest")
    assert sink.batches == {0: []}
    log.write(4, 0, 2)
    run("kafka", log, sink, startingOffsets="latest")
    assert sink.rows() == log.since(9, 5, 1)


def test_our_first_micro_batch_unfinished_is_refused_by_sparks_kafka_source_and_then_nothing_is_lost(run, log):
    """It finds the start behind the end, takes that for a loss, and says so; there is none, so it may be let go on."""
    sink = Sink()
    log.write(9, 5, 1)
    run("loadwise", log, sink, fail_at=0, startingOffsets="latest")
    log.write(4, 0, 2)
    with pytest.raises(StreamingQueryException, match=f"{log.name}-0.*offset was changed from 13 to 9"):
        run("kafka", log, sink, startingOffsets="latest")
    run("kafka", log, sink, startingOffsets="latest", failOnDataLoss="false")
    assert sink.rows() == log.since(9, 5, 1)
