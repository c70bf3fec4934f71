"""The job of ``loadwise loads`` on a real Spark: what it counts beside what was written."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

import pyarrow.parquet as pq
from command_line import invoke
from confluent_kafka import Producer
from topics import WAIT_S

from loadwise.assignor.load.history import history
from loadwise.loads.job import write_batch

pytestmark = pytest.mark.spark

HOUR_MS = 3_600_000
FIRST_MS = 1_700_000_000_000 // HOUR_MS * HOUR_MS
EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_loads.py"


def publish(topic, records):
    """Write (key, value, hour), each to the partition that librdkafka's murmur2 gives its key."""
    producer = Producer({"bootstrap.servers": topic.bootstrap_servers, "partitioner": "murmur2_random"})
    placed = []

    def note(error, message):
        assert error is None, error
        placed.append((message.partition(), message.key(), len(message.value() or b"")))

    for number, (key, value, hour) in enumerate(records):
        producer.produce(topic.name, value, key, timestamp=FIRST_MS + hour * HOUR_MS + number, on_delivery=note)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    return placed


RECORDS = sorted(
    [
        *[(b"hot", b"v" * 90, number % 3) for number in range(60)],
        *[(b"key-%d" % (number % 7), b"v" * number, 1) for number in range(40)],
        (b"gone", None, 2),
    ],
    key=lambda record: record[2],
)
"""Key, value and hour, in the order of time."""


def test_what_is_written_is_counted_by_partition_hour_and_key(spark, topic, tmp_path):
    topic = topic([0, 0, 0])
    placed = publish(topic, RECORDS)
    write_batch(spark, topic.options(), str(tmp_path / "loads"), hot_keys=2)
    rows = pq.read_table(tmp_path / "loads").to_pylist()
    assert sum(row["records"] for row in rows) == len(RECORDS)
    assert {row["hour"].timestamp() * 1000 for row in rows} == {FIRST_MS + hour * HOUR_MS for hour in range(3)}
    size, sizes = Counter(), Counter()
    for partition, key, value in placed:
        size[partition] += len(key) + value
        sizes[partition, key] += len(key) + value
    (found,) = history(tmp_path / "loads")
    assert found.load == tuple(float(size[partition]) for partition in range(3))
    assert found.hot[0].key == b"hot"
    assert found.hot[0].load == sizes[found.hot[0].partition, b"hot"]
    for row in rows:
        here = {key for partition, key, _ in placed if partition == row["partition"]}
        assert len(row["hot"]) <= 2
        assert {each["key"] for each in row["hot"]} <= here
        assert row["keys"] <= len(here)


@pytest.mark.kafka
def test_records_without_a_key_are_no_hot_key(spark, topic, tmp_path):
    topic = topic([0])
    publish(topic, [*[(None, b"v" * 100, 0)] * 5, (b"k", b"v", 0)])
    write_batch(spark, topic.options(), str(tmp_path / "loads"), hot_keys=1)
    (row,) = pq.read_table(tmp_path / "loads").to_pylist()
    assert (row["records"], row["bytes"], row["keys"]) == (6, 502, 1)
    assert row["hot"] == [{"key": b"k", "records": 1, "bytes": 2}]


@pytest.mark.kafka
def test_a_key_that_is_alone_in_its_topic_is_seen_beside_the_empty_partitions(spark, topic, tmp_path):
    topic = topic([0] * 6)
    publish(topic, [(b"alone", b"v", 0)] * 5)
    write_batch(spark, topic.options(), str(tmp_path / "loads"))
    (found,) = history(tmp_path / "loads")
    assert sorted(found.load) == [0.0] * 5 + [30.0]


@pytest.mark.kafka
def test_the_example_adds_what_has_arrived_since_its_last_run(spark, topic, tmp_path):
    topic = topic([0, 0])
    specification = importlib.util.spec_from_file_location("spark_loads", EXAMPLE)
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)
    paths = str(tmp_path / "loads"), str(tmp_path / "checkpoint")
    for count in (10, 5):
        publish(topic, [(b"k", b"v" * 9, 0)] * count)
        example.main(topic.bootstrap_servers, topic.name, *paths)
    assert sorted(history(paths[0])[0].load) == [0.0, 150.0]


@pytest.mark.kafka
def test_the_command_reads_writes_and_reports(spark, topic, tmp_path, monkeypatch):
    monkeypatch.setattr("loadwise.spark_source.session.local_session", lambda _: nullcontext(spark))
    topic = topic([0, 0, 0])
    publish(topic, RECORDS)
    arguments = ["loads", str(tmp_path / "loads"), "--bootstrap-servers", topic.bootstrap_servers]
    done = invoke([*arguments, "--topic", topic.name, "--json"])
    assert done.exit_code == 0, done.output
    (told,) = json.loads(done.stdout)
    assert told["placed_by_hash"], "librdkafka placed the keys"
    assert told["hot_keys"][0]["key"] == "hot"
    assert told["advice"].startswith("The hottest key alone has 8")
    since = ["--since", "2023-11-14T23:00:00", "--until", "2023-11-15T00:00:00", "--by", "records"]
    done = invoke([*arguments, "--topic", topic.name, *since])
    assert done.exit_code == 0, done.output
    assert ": 60 records in " in done.stdout, "of the second hour"
    done = invoke([*arguments, "--topic", "no-such-topic"])
    assert done.exit_code == 1
    assert done.stderr.startswith("loadwise loads: no-such-topic cannot be read: cannot look up topic no-such-topic")
