"""What a batch and a stream do in every PySpark from 4.0 on: `.ci/extras` runs this file in 4.0 and 4.1 too.

The table of docs/spark-deploying.md says in what the versions differ; each of its rows has a test here.

Spark is needed for what Spark does alone: how it calls the source, what it makes of our batches, and its checkpoint.
The default tier has a batch and a stream of it, the real tier the rest.
"""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

import pyspark
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql.functions import spark_partition_id
from pyspark.sql.streaming import StreamingQueryListener
from started_queries import RunningQuery, run_to_its_end
from topics import WAIT_S, until

from loadwise.spark_source.planning.progress import Lag
from loadwise.spark_source.pyspark_version import NAMES_START
from loadwise.spark_source.session import imbalance_of, lag_of

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
    return run_to_its_end(lambda: start(spark, topic, checkpoint, sink, {trigger: True}, **options))


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


def test_a_second_action_reads_the_offsets_of_the_first_but_in_pyspark_4_0(spark, topic):
    topic = topic([3])
    frame = spark.read.format("loadwise").options(**topic.options()).load()
    assert frame.count() == 3
    topic.write([2])
    assert frame.count() == (5 if pyspark.__version__.startswith("4.0.") else 3)


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


@pytest.mark.kafka
@pytest.mark.parametrize("starting", ["earliest", "latest"])
def test_the_first_micro_batch_is_empty_or_before_4_2_all_there_is(spark, topic, tmp_path, starting):
    topic, sink = topic([4, 2]), Sink()
    run(spark, topic, tmp_path, sink, "availableNow", startingOffsets=starting)
    everything_there = starting == "earliest" and not NAMES_START
    assert Counter(sink.batches.get(0, ())) == (everything(4, 2) if everything_there else everything())


@pytest.mark.kafka
def test_available_now_is_one_micro_batch_or_from_4_2_on_as_many_as_a_limit_makes(spark, topic, tmp_path):
    topic, sink = topic([9]), Sink()
    limit = {"maxOffsetsPerTrigger": 3} if NAMES_START else {}
    run(spark, topic, tmp_path, sink, "availableNow", startingOffsets="earliest", **limit)
    assert [len(batch) for _, batch in sorted(sink.batches.items()) if batch] == ([3, 3, 3] if NAMES_START else [9])


@pytest.mark.kafka
def test_records_deleted_before_an_unfinished_first_micro_batch_is_replayed(spark, topic, tmp_path):
    topic, sink = topic([9]), Sink()
    options = {"startingOffsets": "earliest"}
    run(spark, topic, tmp_path, sink, "availableNow", **options)
    for commit in (tmp_path / "commits").iterdir():
        commit.unlink()
    admin = AdminClient({"bootstrap.servers": topic.bootstrap_servers})
    [deleted] = admin.delete_records([TopicPartition(topic.name, 0, 4)]).values()
    deleted.result(WAIT_S)
    sink.batches.clear()
    if NAMES_START:
        with pytest.raises(StreamingQueryException, match="failOnDataLoss"):
            run(spark, topic, tmp_path, sink, "availableNow", **options)
    else:
        run(spark, topic, tmp_path, sink, "availableNow", **options)
        assert sink.came() == everything(9) - everything(4)


def test_a_progress_has_the_lag_and_the_imbalance(spark, topic, tmp_path):
    """That of a query and that of a listener, which earlier versions put in other words."""
    told = []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event):  # noqa: N802 - as Spark calls it
            """Nothing of this is asked for."""

        def onQueryProgress(self, event):  # noqa: N802 - as Spark calls it
            told.append(event.progress)

        def onQueryTerminated(self, event):  # noqa: N802 - as Spark calls it
            """Nothing of this is asked for."""

    topic, listener = topic([4, 0, 1]), Listener()
    run(spark, topic, tmp_path, Sink(), "availableNow", startingOffsets="earliest")
    topic.write([5, 3, 1])
    spark.streams.addListener(listener)
    try:
        query = run(spark, topic, tmp_path, Sink(), "availableNow", startingOffsets="earliest")
        until(lambda: any(progress.numInputRows for progress in told))
    finally:
        spark.streams.removeListener(listener)
    for progress in (*query.recentProgress, *told):
        (source,) = progress.sources
        assert lag_of(source) in (Lag(0, 0.0, 0), None)
        if progress.numInputRows:
            assert lag_of(source) == Lag(0, 0.0, 0)
            assert imbalance_of(source) == pytest.approx(5 / 3)


def test_writing_is_refused_by_name(spark, tmp_path):
    told = r"loadwise reads; write with format\('kafka'\)"
    frame = spark.range(1).selectExpr("cast(id as string) value")
    with pytest.raises(PySparkException, match=told):
        frame.write.format("loadwise").option("topic", "t").mode("append").save()
    stream = spark.readStream.format("rate").load().writeStream.format("loadwise")
    with pytest.raises(PySparkException, match=told):
        stream.option("checkpointLocation", str(tmp_path)).start().processAllAvailable()


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
