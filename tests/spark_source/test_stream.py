"""Streaming queries of a real Spark through ``format("loadwise")``: triggers, limits, restarts, checkpoints."""

from __future__ import annotations

import importlib.util
import json
import uuid
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")


from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQueryListener
from started_queries import RunningQuery, run_to_its_end
from topics import committed, until

from loadwise.spark_source.planning.progress import Lag, ids_in
from loadwise.spark_source.session import imbalance_of, lag_of
from loadwise.spark_source.stream import BEGUN_HERE

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


class Sink:
    """Keeps what each micro-batch brought, as an idempotent sink: a replay takes the place of what it replays."""

    def __init__(self):
        self.batches = {}

    def __call__(self, frame, number):
        self.batches[number] = sorted(
            (row.partition, row.offset) for row in frame.select("partition", "offset").collect()
        )

    def offsets(self):
        return sorted(place for batch in self.batches.values() for place in batch)

    def sizes(self):
        return [len(self.batches[number]) for number in sorted(self.batches)]


def start(spark, topic, checkpoint, sink, *, trigger=None, **options):
    frame = spark.readStream.format("loadwise").options(**topic.options(**options)).load()
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(sink)
    return writer.trigger(**(trigger or {"availableNow": True})).start()


def run(*arguments, **options):
    return run_to_its_end(lambda: start(*arguments, **options))


def everything(*sizes):
    return [(partition, offset) for partition, size in enumerate(sizes) for offset in range(size)]


def test_available_now_reads_what_is_there_and_goes_on_from_the_checkpoint(spark, topic, tmp_path):
    topic, sink = topic([40, 0, 7]), Sink()
    options = {"startingOffsets": "earliest", "numTasks": 2}
    query = run(spark, topic, tmp_path, sink, **options)
    assert sink.offsets() == everything(40, 0, 7)
    (source,) = query.lastProgress.sources
    positions, ids = json.loads(source.endOffset), ids_in(json.loads(source.endOffset))
    assert positions.pop(topic.name) == {"0": 40, "1": 0, "2": 7}
    assert list(positions) == [f"(id of {topic.name}: {ids[topic.name]})"]
    topic.write([5, 3])
    run(spark, topic, tmp_path, sink, **options)
    assert sink.offsets() == everything(45, 3, 7)
    assert (tmp_path / "offsets" / "0").read_text().splitlines()[2] == json.dumps(
        {topic.name: {"0": 0, "1": 0, "2": 0}} | positions | BEGUN_HERE
    )


def test_processing_time_reads_live_traffic_and_shows_its_lag(spark, topic, tmp_path, group_id):
    """Stopped and started again: nothing is lost or doubled, and the group has all of it."""
    topic, sink = topic([5, 2]), Sink()
    options = {"numTasks": 2, "commitGroup": "true", "kafka__group__id": group_id, "maxOffsetsPerTrigger": 20}

    def runs_until(*ends):
        trigger = {"processingTime": "100 milliseconds"}
        here = [(partition, offset) for partition, offset in everything(*ends) if offset >= [5, 2][partition]]
        with RunningQuery(lambda: start(spark, topic, tmp_path, sink, trigger=trigger, **options)) as query:
            query.wait_for(lambda: query.started.lastProgress is not None)  # it has looked where "latest" is
            topic.write([30, 10])
            query.wait_for(lambda: len(sink.offsets()) >= len(here))
            assert sink.offsets() == here
            query.wait_for(lambda: committed(topic.bootstrap_servers, group_id, topic.name, 2) == [*ends])
            query.wait_for(lambda: lag_of(query.started.lastProgress.sources[0]) == Lag(0, 0.0, 0))

    runs_until(35, 12)
    runs_until(65, 22)
    assert max(sink.sizes()) <= 22  # no partition starves: at least one offset of each


def test_a_listener_is_told_the_lag_and_the_imbalance(spark, topic, tmp_path):
    told = []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event):  # noqa: N802 - as Spark calls it
            """Nothing of this is asked for."""

        def onQueryProgress(self, event):  # noqa: N802 - as Spark calls it
            (source,) = event.progress.sources
            told.append((event.progress.numInputRows, lag_of(source), imbalance_of(source)))

        def onQueryTerminated(self, event):  # noqa: N802 - as Spark calls it
            """Nothing of this is asked for."""

    topic, listener = topic([60, 0, 30]), Listener()
    spark.streams.addListener(listener)
    try:
        run(spark, topic, tmp_path, Sink(), startingOffsets="earliest", maxOffsetsPerTrigger=45)
        until(lambda: len([rows for rows, _, _ in told if rows]) == 2)
    finally:
        spark.streams.removeListener(listener)
    assert [each for each in told if each[0]] == [(45, Lag(0, 15.0, 30), 2.0), (45, Lag(0, 0.0, 0), 2.0)]


def test_trigger_once(spark, topic, tmp_path):
    topic, sink = topic([4]), Sink()
    run(spark, topic, tmp_path, sink, trigger={"once": True}, startingOffsets="earliest", maxOffsetsPerTrigger=1)
    assert sink.sizes() == [4]


def test_a_refusal_is_the_last_line_and_hidden_by_nothing(spark, topic, tmp_path):
    topic = topic([1])
    options = {"endingOffsets": "latest"}
    with pytest.raises(StreamingQueryException) as refused:
        run(spark, topic, tmp_path, Sink(), **options)
    text = str(refused.value)
    assert "option endingOffsets: has no meaning in a streaming query, which does not end; leave it out" in text
    assert "UnboundLocalError" not in text


def test_a_loss_is_named(spark, topic, tmp_path):
    topic, sink = topic([6]), Sink()
    options = {"startingOffsets": "earliest", "fetchOffset__retryIntervalMs": 1}
    run(spark, topic, tmp_path, sink, **options)
    topic.delete()
    topic.create(1)
    topic.write([8])
    with pytest.raises(
        StreamingQueryException, match=f"{topic.name}-0 was deleted and created again, .* from offset 6 on"
    ):
        run(spark, topic, tmp_path, sink, **options)
    assert sink.sizes() == [0, 6]


def test_a_checkpoint_of_sparks_kafka_source_goes_on_here(spark, topic, tmp_path):
    """The files are written as HDFSMetadataLog and KafkaSourceInitialOffsetWriter do: a zero byte, a version, JSON."""
    topic, sink = topic([10, 4]), Sink()
    conf = {"spark.sql.shuffle.partitions": "1"}  # without it PySpark 4.2 takes no unfinished micro-batch up
    metadata = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": conf, "sourceMetadataInfo": {}})
    at = {0: [3, 1], 1: [7, 1]}
    for folder in ("offsets", "commits", "sources/0"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    text = {batch: f'{{"{topic.name}":{{"0":{first},"1":{second}}}}}' for batch, (first, second) in at.items()}
    (tmp_path / "sources" / "0" / "0").write_bytes(b"\0v1\n" + f'{{"{topic.name}":{{"0":3,"1":1}}}}'.encode())
    for batch, offsets in text.items():
        (tmp_path / "offsets" / str(batch)).write_text(f"v1\n{metadata}\n{offsets}")
        if batch == 0:  # the second micro-batch was planned and not finished: it is replayed
            (tmp_path / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    run(spark, topic, tmp_path, sink, numTasks=2)
    assert sink.batches[1] == [(0, offset) for offset in range(3, 7)]
    assert sink.offsets() == [(0, offset) for offset in range(3, 10)] + [(1, offset) for offset in range(1, 4)]
    *_, newest = sorted((tmp_path / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    (positions,) = newest.read_text().splitlines()[2:]
    assert positions.startswith(json.dumps({topic.name: {"0": 10, "1": 4}})[:-1])


def test_the_example(spark, coordinator, tmp_path, capsys):
    path = Path(__file__).parents[2] / "examples" / "spark_stream.py"
    spec = importlib.util.spec_from_file_location("spark_stream", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    counts = example.follow_the_clicks(spark, coordinator.bootstrap_servers, str(tmp_path))
    assert counts == {"home": 1800, "basket": 600, "search": 400}
    assert "lag min 0, avg 0.0, max 0" in capsys.readouterr().out
