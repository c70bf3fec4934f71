"""A batch query as Spark drives it: load(), the plan, and the batches of each task; no JVM in it.

`test_query.py` has, in the real tier, what Spark alone can show.
"""

from __future__ import annotations

import datetime
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from confluent_kafka import Producer
from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    _parse_datatype_json_string,
)
from topics import WAIT_S

from loadwise.spark_source.errors import DataLossError, OffsetsUnavailableError, OptionError, ReadError, SchemaError
from loadwise.spark_source.planning.query import planned
from loadwise.spark_source.source import LoadwiseDataSource

VALUE, OFFSET = StructField("value", BinaryType()), StructField("offset", LongType())


def read(topic, schema=None, **options):
    """The rows of each task. ``schema`` is the user's own: with one, Spark does not ask for ours."""
    source = LoadwiseDataSource(topic.options(**options))
    reader = source.reader(schema or source.schema())
    return [[row for batch in reader.read(task) for row in batch.to_pylist()] for task in reader.partitions()]


def tasks(topic, **options):
    """The partitions and offsets that each task reads, sorted."""
    return [sorted((row["partition"], row["offset"]) for row in task) for task in read(topic, **options)]


def promised(topic, **options):
    """What each task should read by the plan, in the same form."""
    return [
        sorted((item.partition, offset) for item in task.ranges for offset in range(item.start, item.end))
        for task in planned(topic.options(**options)).filled
    ]


def test_count_and_contents_are_what_was_produced(topic):
    sizes = [700, 0, 20, 3]
    topic = topic(sizes)
    rows = [row for task in read(topic) for row in task]
    assert Counter((row["key"], row["value"], row["partition"]) for row in rows) == Counter(topic.written)
    assert {row["topic"] for row in rows} == {topic.name}
    for partition, size in enumerate(sizes):
        mine = sorted((row["offset"], row["key"]) for row in rows if row["partition"] == partition)
        assert mine == [(number, f"{partition}/{number}".encode()) for number in range(size)]


def test_the_schema_is_that_of_sparks_kafka_integration():
    """As the JSON of spark-sql-kafka-0-10 4.2.0's own KafkaRecordToRowConverter.kafkaSchema says."""
    columns = [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "integer"),
        ("offset", "long"),
        ("timestamp", "timestamp"),
        ("timestampType", "integer"),
    ]
    fields = ", ".join(f'{{"name":"{name}","type":"{kind}","nullable":true,"metadata":{{}}}}' for name, kind in columns)
    expected = _parse_datatype_json_string(f'{{"type":"struct","fields":[{fields}]}}')
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
    assert LoadwiseDataSource(given).schema() == expected
    with_headers = LoadwiseDataSource(given | {"includeHeaders": "true"}).schema()
    assert with_headers.fields[:7] == expected.fields
    assert with_headers["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"


def test_nulls_headers_and_timestamps(topic):
    topic = topic([0])
    moment = 1_577_934_245_678
    headers = [("a", b"1"), ("a", None), ("b", b"")]
    topic.write([1], headers=headers, timestamp=moment)
    producer = Producer({"bootstrap.servers": topic.bootstrap_servers})
    producer.produce(topic.name, None, None, 0, timestamp=moment)
    assert producer.flush(WAIT_S) == 0
    [[first, second]] = read(topic, includeHeaders="true")
    assert [(header["key"], header["value"]) for header in first["headers"]] == headers
    assert (second["key"], second["value"], second["headers"]) == (None, None, None)
    assert first["timestamp"] == datetime.datetime.fromtimestamp(moment / 1000, datetime.UTC)
    assert first["timestampType"] == 0  # CreateTime


@pytest.mark.parametrize(
    ("assignor", "split"), [("weighted", "true"), ("weighted", "false"), ("range", "false"), ("roundrobin", "true")]
)
def test_task_i_reads_just_what_the_ith_member_was_assigned(topic, assignor, split):
    topic = topic([400, 0, 30, 20, 7])
    options = {"assignor": assignor, "split": split, "numTasks": 3}
    assert tasks(topic, **options) == promised(topic, **options)


def test_a_hot_partition_is_cut_so_that_tasks_are_even(topic):
    assert list(map(len, tasks(topic([900, 10, 10, 10, 10, 20]), numTasks=4))) == [240, 240, 240, 240]


def test_without_split_partitions_stay_whole(topic):
    found = tasks(topic([900, 10, 10, 10, 10, 20]), numTasks=4, split="false")
    assert sorted(partition for task in found for partition in {partition for partition, _ in task}) == [*range(6)]
    assert [(0, offset) for offset in range(900)] in found


def test_the_users_own_assignor(topic, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    found = tasks(topic([5, 5]), assignor="own_assignor.LastTakesAll", numTasks=3)
    assert list(map(len, found)) == [10], "the others have nothing: no tasks"


def test_starting_and_ending_offsets(topic):
    topic = topic([10, 10])
    found = tasks(
        topic,
        startingOffsets=f'{{"{topic.name}":{{"0":3,"1":-2}}}}',
        endingOffsets=f'{{"{topic.name}":{{"0":8,"1":-1}}}}',
    )
    assert sorted(place for task in found for place in task) == [
        *((0, offset) for offset in range(3, 8)),
        *((1, offset) for offset in range(10)),
    ]


@pytest.mark.parametrize("sizes", [[0, 0], [4]], ids=["empty topic", "nothing in the range"])
def test_nothing_to_read_is_one_task_without_rows(topic, sizes):
    """Of no partitions Spark makes one, without a value: `read` would fail."""
    topic = topic(sizes)
    more = {"startingOffsets": f'{{"{topic.name}":{{"0":4}}}}'} if any(sizes) else {}
    assert read(topic, **more) == [[]]


def test_columns_that_nobody_asks_for_are_not_built(topic):
    topic = topic([20])
    rows = [row for task in read(topic, StructType([OFFSET, VALUE])) for row in task]
    assert all(list(row) == ["offset", "value"] for row in rows)
    assert sorted(row["value"] for row in rows) == sorted(value for _, value, _ in topic.written)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([StructField("value", StringType())], "column value is of type binary, not string"),
        ([StructField("valeu", BinaryType())], "there is no column valeu"),
        ([VALUE, OFFSET, VALUE], "column value occurs twice"),
        ([StructField("headers", BinaryType())], "includeHeaders=true"),
    ],
    ids=["another type", "misspelt", "twice", "headers"],
)
def test_a_schema_that_is_not_ours_is_refused(fields, problem):
    source = LoadwiseDataSource({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"})
    with pytest.raises(SchemaError, match=problem):
        source.reader(StructType(fields))


@pytest.mark.parametrize("asked", ["schema", "reader"])
def test_a_misspelt_option_is_refused_with_the_nearest(asked):
    """With a schema of the user's Spark asks for a reader first."""
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "startingOffset": "latest"}
    source = LoadwiseDataSource(given)
    with pytest.raises(OptionError, match=r"(?i)^option startingoffset: .*\(did you mean 'startingOffsets'\?"):
        source.schema() if asked == "schema" else source.reader(StructType([VALUE]))


def test_a_topic_that_is_not_there_is_named(coordinator):
    given = {"kafka.bootstrap.servers": coordinator.bootstrap_servers, "subscribe": "no-such-topic"}
    with pytest.raises(OffsetsUnavailableError, match=r"^cannot look up topic no-such-topic: "):
        LoadwiseDataSource(given).reader(StructType([VALUE])).partitions()


def test_offsets_that_are_not_there_are_named(topic):
    topic = topic([1])
    with pytest.raises(DataLossError, match="is incomplete: the partition holds") as failed:
        read(topic, endingOffsets=f'{{"{topic.name}":{{"0":11}}}}')
    assert f"{topic.name}-0[0, 11) is incomplete: the partition holds [0, 1)" in str(failed.value)


@pytest.mark.usefixtures("corrupt_reads")
def test_a_task_that_cannot_go_on_says_all_in_one_line(topic):
    topic = topic([5])
    with pytest.raises(ReadError) as failed:
        read(topic)
    [line] = str(failed.value).splitlines()
    assert line.startswith(f"cannot read {topic.name}-0 at offset 0 (of {topic.name}-0[0, 5)): ")
    assert "kafka.check.crcs=false" in line
