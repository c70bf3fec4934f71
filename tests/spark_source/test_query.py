"""Batch queries of a real Spark through ``format("loadwise")``: what Spark makes of our schema, tasks, rows and errors.

What the source does without Spark is in `test_batches.py`; a smoke test of the default tier in `test_every_pyspark.py`.
"""

from __future__ import annotations

import datetime
import importlib.util
import json
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.functions import spark_partition_id
from topics import WAIT_S

from loadwise.spark_source.planning.query import planned

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

EXAMPLES = Path(__file__).parents[2] / "examples"


def read(spark, topic, **options):
    return spark.read.format("loadwise").options(**topic.options(**options)).load()


def tasks(frame):
    """What each task read: task index to the sorted (partition, offset)."""
    found = {}
    for row in frame.select(spark_partition_id().alias("task"), "partition", "offset").collect():
        found.setdefault(row.task, []).append((row.partition, row.offset))
    return {task: sorted(places) for task, places in found.items()}


def promised(topic, **options):
    """What each task should read by the plan, in the same form."""
    plan = planned(topic.options(**options))
    return {
        index: sorted((item.partition, offset) for item in task.ranges for offset in range(item.start, item.end))
        for index, task in enumerate(plan.filled)
    }


def test_count_and_contents_are_what_was_produced(spark, topic):
    topic = topic([700, 0, 20, 3])
    frame = read(spark, topic)
    assert frame.count() == 723
    rows = frame.collect()
    assert Counter((bytes(row.key), bytes(row.value), row.partition) for row in rows) == Counter(topic.written)
    assert {row.topic for row in rows} == {topic.name}
    for partition, size in enumerate([700, 0, 20, 3]):
        mine = sorted((row for row in rows if row.partition == partition), key=lambda row: row.offset)
        assert [row.offset for row in mine] == list(range(size))
        assert [bytes(row.key) for row in mine] == [f"{partition}/{number}".encode() for number in range(size)]


def test_nulls_headers_and_timestamps(spark, topic):
    topic = topic([0])
    moment = 1_577_934_245_678
    headers = [("a", b"1"), ("a", None), ("b", b"")]
    topic.write([1], headers=headers, timestamp=moment)
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": topic.bootstrap_servers})
    producer.produce(topic.name, None, None, 0, timestamp=moment)
    assert producer.flush(WAIT_S) == 0
    first, second = read(spark, topic, includeHeaders="true").orderBy("offset").collect()
    assert [(header.key, None if header.value is None else bytes(header.value)) for header in first.headers] == headers
    assert (second.key, second.value, second.headers) == (None, None, None)
    written = datetime.datetime.fromtimestamp(moment / 1000, datetime.UTC)
    assert (
        first.timestamp.replace(tzinfo=first.timestamp.tzinfo or datetime.datetime.now().astimezone().tzinfo) == written
    )
    assert first.timestampType == 0  # CreateTime


def test_task_i_reads_just_what_the_ith_member_was_assigned(spark, topic):
    topic = topic([400, 0, 30, 20, 7])
    options = {"numTasks": 3}
    assert tasks(read(spark, topic, **options)) == promised(topic, **options)


def test_by_default_a_task_for_each_slot_if_they_are_worth_it(spark, topic):
    topic = topic([50, 0, 50, 50])
    assert read(spark, topic).rdd.getNumPartitions() == 1
    costly = {"costPerRecord": json.dumps({topic.name: 1000})}
    assert read(spark, topic, **costly).rdd.getNumPartitions() == spark.sparkContext.defaultParallelism == 2
    assert read(spark, topic, minPartitions=5, **costly).rdd.getNumPartitions() == 5


def test_the_users_own_assignor(spark, topic):
    topic = topic([5, 5])
    found = tasks(read(spark, topic, assignor="own_assignor.LastTakesAll", numTasks=3))
    assert {task: len(places) for task, places in found.items()} == {0: 10}, "the others have nothing: no tasks"


@pytest.mark.parametrize("sizes", [[0, 0], [4]], ids=["empty topic", "nothing in the range"])
def test_nothing_to_read(spark, topic, sizes):
    topic = topic(sizes)
    more = {} if not any(sizes) else {"startingOffsets": f'{{"{topic.name}":{{"0":4}}}}'}
    frame = read(spark, topic, **more)
    assert frame.count() == 0
    assert frame.collect() == []


def test_columns_that_nobody_asks_for_are_not_built(spark, topic):
    topic = topic([20])
    frame = spark.read.format("loadwise").schema("offset long, value binary").options(**topic.options()).load()
    assert frame.columns == ["offset", "value"]
    assert sorted(bytes(row.value) for row in frame.collect()) == sorted(value for _, value, _ in topic.written)


def test_a_schema_that_is_not_ours_is_refused(spark, topic):
    topic = topic([1])
    with pytest.raises(PySparkException, match="column value is of type binary, not string"):
        spark.read.format("loadwise").schema("value string").options(**topic.options()).load().collect()


@pytest.mark.parametrize("schema", [None, "value binary"])
def test_a_misspelt_option_is_refused_at_load_with_the_nearest(spark, schema):
    reader = spark.read.format("loadwise").option("kafka.bootstrap.servers", "127.0.0.1:1").option("subscribe", "t")
    reader = reader.option("startingOffset", "latest")
    # With a schema of the user's, Spark asks us nothing before the first action.
    query = reader.load if schema is None else lambda: reader.schema(schema).load().count()
    with pytest.raises(AnalysisException, match=r"option startingoffset: .*\(did you mean 'startingOffsets'\?"):
        query()


def test_a_topic_that_is_not_there_is_named(spark, coordinator):
    options = {"kafka.bootstrap.servers": coordinator.bootstrap_servers, "subscribe": "no-such-topic"}
    with pytest.raises(PySparkException, match="cannot look up topic no-such-topic: "):
        spark.read.format("loadwise").options(**options).load().count()


@pytest.mark.usefixtures("corrupt_reads")
def test_a_task_that_cannot_go_on_says_all_in_the_last_line_of_pythons_text(spark, topic):
    topic = topic([5])
    frame = spark.read.format("loadwise").options(**topic.options()).load()
    with pytest.raises(PySparkException) as failed:
        frame.collect()
    (line,) = (line for line in str(failed.value).splitlines() if "ReadError" in line)
    assert f"ReadError: cannot read {topic.name}-0 at offset 0 (of {topic.name}-0[0, 5)): " in line
    assert "kafka.check.crcs=false" in line


def test_the_plan_is_in_sparks_log_of_its_python_processes(spark, topic):
    topic = topic([30, 10])
    assert read(spark, topic, split="false", numTasks=2, maxOffsetsPerTrigger=5).count() == 40
    logged = {row.msg for row in spark.tvf.python_worker_logs().collect()}
    assert "weighted plan of 2 tasks, max/mean 1.500: slot-0 30 in 1 ranges, slot-1 10 in 1 ranges" in logged
    assert "ignored options: maxOffsetsPerTrigger (has no effect in a batch query)" in logged


def test_the_example(spark, coordinator, capsys):
    spec = importlib.util.spec_from_file_location("spark_batch", EXAMPLES / "spark_batch.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    shares = example.compare(spark, coordinator.bootstrap_servers)
    assert sorted(shares["false"]) == [2_500, 2_500, 3_750, 11_250]
    assert sum(shares["true"]) == 20_000
    assert shares["true"] == [pytest.approx(5_000, rel=0.01)] * 4, "even in bytes, and these hardly differ"
    assert "the longest has 2.25 times the mean" in capsys.readouterr().out


def test_the_example_that_draws_task_times(spark, coordinator, tmp_path):
    spec = importlib.util.spec_from_file_location("spark_task_times", EXAMPLES / "spark_task_times.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    page = tmp_path / "times.html"
    times = example.draw(spark, coordinator.bootstrap_servers, 2000, page)
    assert {name: len(mine) for name, mine in times.items() if name != "kafka"} == {
        "loadwise, split=false": 8,
        "loadwise, split=true": 8,
    }
    assert page.read_text().count("<rect") >= 16
