"""What a batch and a stream do in every PySpark from 4.0 on: `.ci/extras` runs this file in the oldest one too.

Spark is needed for what Spark does alone: how it calls the source, what it makes of our batches, and its checkpoint.
The default tier has a batch and a stream of it, the real tier the rest.
"""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql.functions import spark_partition_id
from started_queries import RunningQuery, run_to_its_end

from loadwise.spark_source.pyspark_version import NAMES_START

pytestmark = pytest.mark.spark

SIZES = [700, 0, 20, 3]


@pytest.fixture
def topic(broker, topic_on):
    """As `topic` of the other tests, on our coordinator and on Apache Kafka."""
    return topic_on(broker)


class Sink:
    """Keeps the offsets that each micro-batch brought; a replay takes the place of what it replays."""

    def __init__(self):
        self.batches = {}

    def __call__(self, frame, number):
        self.batches[number] = [(row.partition, row.offset) for row in frame.select("partition", "offset").collect()]

    def came(self):
        return Counter(place for batch in list(self.batches.values()) for place in batch)


def start(spark, topic, checkpoint, sink, trigger, **options):
    frame = spark.readStream.format("loadwise").options(**topic.options(**options)).load()
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    return writer.trigger(**trigger).start()


def run(spark, topic, checkpoint, sink, trigger, **options):
    run_to_its_end(lambda: start(spark, topic, checkpoint, sink, {trigger: True}, **options))


def everything(*sizes):
    return Counter((partition, offset) for partition, size in enumerate(sizes) for offset in range(size))


@pytest.mark.parametrize("reader", ["batches", "messages"])
def test_a_batch_has_each_record_once_in_as_many_tasks_as_are_asked_for(spark, topic, reader):
    topic = topic(SIZES, headers=[("a", b"1"), ("b", None)])
    options = topic.options(reader=reader, includeHeaders="true", minPartitions=3, loadBy="bytes")
    frame = spark.read.format("loadwise").options(**options).load()
    rows = frame.withColumn("task", spark_partition_id()).collect()
    assert Counter((bytes(row.key), bytes(row.value), row.partition) for row in rows) == Counter(topic.written)
    assert Counter((row.partition, row.offset) for row in rows) == everything(*SIZES)
    assert {row.task for row in rows} == {0, 1, 2}
    assert {tuple((name, value and bytes(value)) for name, value in row.headers) for row in rows} == {
        (("a", b"1"), ("b", None))
    }
    assert {row.topic for row in rows} == {topic.name}


def test_a_stream_goes_on_from_its_checkpoint_and_reads_each_record_once(spark, topic, tmp_path):
    topic, sink = topic([40, 0, 7]), Sink()
    options = {"startingOffsets": "earliest", "numTasks": 2}
    run(spark, topic, tmp_path, sink, "availableNow", **options)
    assert sink.came() == everything(40, 0, 7)
    topic.write([5, 3])
    run(spark, topic, tmp_path, sink, "once", **options)
    assert sink.came() == everything(45, 3, 7)


@pytest.mark.kafka
def test_a_stream_that_runs_on_reads_each_record_once_and_goes_on_after_a_stop(spark, topic, tmp_path):
    topic, sink = topic([40, 0, 7]), Sink()
    options = {"startingOffsets": "earliest", "numTasks": 2}

    def runs(before, new, after):
        trigger = {"processingTime": "0 seconds"}
        with RunningQuery(lambda: start(spark, topic, tmp_path, sink, trigger, **options)) as query:
            query.wait_for(lambda: sink.came() == everything(*before))
            topic.write(new)
            query.wait_for(lambda: sink.came() == everything(*after))
            assert query.error() is None

    runs([40, 0, 7], [5, 3, 0], [45, 3, 7])
    runs([45, 3, 7], [0, 0, 2], [45, 3, 9])


@pytest.mark.kafka
def test_a_stream_from_latest_reads_what_comes_after_its_start(spark, topic, tmp_path):
    topic, sink = topic([4]), Sink()
    run(spark, topic, tmp_path, sink, "availableNow")
    assert sink.came() == everything()
    topic.write([3])
    run(spark, topic, tmp_path, sink, "availableNow")
    assert sink.came() == everything(7) - everything(4)
    batches = len(sink.batches)
    run(spark, topic, tmp_path, sink, "availableNow")
    assert len(sink.batches) == batches, "nothing is new, so there is no micro-batch"


@pytest.mark.kafka
def test_an_unfinished_first_micro_batch_is_replayed_and_loses_nothing(spark, topic, tmp_path):
    """Its process planned it and is no more. The next one finds "latest" somewhere else."""
    topic, sink = topic([4]), Sink()
    run(spark, topic, tmp_path, sink, "availableNow")
    (tmp_path / "commits" / "0").unlink()
    (tmp_path / "commits" / ".0.crc").unlink(missing_ok=True)
    topic.write([3])
    run(spark, topic, tmp_path, sink, "availableNow")
    if not NAMES_START:  # there Spark ends such a run behind the unfinished micro-batch, whatever there is
        assert sink.came() == everything()
        run(spark, topic, tmp_path, sink, "availableNow")
    assert sink.came() == everything(7) - everything(4)


@pytest.mark.skipif(NAMES_START, reason="this PySpark keeps all options")
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"maxOffsetsPerTrigger": 5}, "maxOffsetsPerTrigger: needs PySpark 4.2 or later"),
        ({"commitGroup": "true", "kafka.group.id": "g"}, "commitGroup: needs PySpark 4.2 or later"),
        ({"assignment.mode": "member", "kafka.group.id": "g"}, "assignment.mode: member needs PySpark 4.2 or later"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_option_that_this_pyspark_cannot_keep_is_refused_by_name(spark, topic, tmp_path, options, problem):
    topic = topic([1])
    with pytest.raises((AnalysisException, StreamingQueryException), match=problem) as refused:
        run(spark, topic, tmp_path, Sink(), "availableNow", **options)
    assert "UnboundLocalError" not in str(refused.value)
