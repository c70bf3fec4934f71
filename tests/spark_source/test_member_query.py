"""Spark's own streaming queries as members of a group: they share it, and leave it when they end in whatever way."""

from __future__ import annotations

import importlib.util
import json
import re
import time
from collections import Counter
from pathlib import Path
from threading import Event, Thread

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from confluent_kafka.admin import AdminClient
from started_queries import RunningQuery
from topics import WAIT_S, until

from loadwise import kafka_python_consumer
from loadwise.spark_source.planning.progress import Lag
from loadwise.spark_source.session import lag_of

pytestmark = pytest.mark.spark

PARTITIONS = 4


class Sink:
    """Keeps what each micro-batch brought; a replay takes the place of what it replays."""

    def __init__(self):
        self.batches = {}
        self.fails_at = -1

    def __call__(self, frame, number):
        if number == self.fails_at:
            raise RuntimeError("this micro-batch shall fail")
        self.batches[number] = [(row.partition, row.offset) for row in frame.select("partition", "offset").collect()]

    def came(self):
        return Counter(place for batch in list(self.batches.values()) for place in batch)


def frame(spark, topic, group_id, **options):
    given = {"kafka.group.id": group_id, "kafka.session.timeout.ms": 60_000, "assignment.mode": "member"}
    given |= {"startingOffsets": "earliest", "numTasks": 1}
    return spark.readStream.format("loadwise").options(**topic.options(**given | options)).load()


def query(frame, checkpoint, sink, **trigger):
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(sink)
    return RunningQuery(writer.trigger(**(trigger or {"processingTime": "100 milliseconds"})).start)


def members(topic, group_id):
    admin = AdminClient({"bootstrap.servers": topic.bootstrap_servers})
    return len(admin.describe_consumer_groups([group_id])[group_id].result(WAIT_S).members)


def wait_until_alone(topic, group_id, count=0):
    """Wait until the query's member has left: its session is longer than this waits, so it did leave."""
    deadline = time.monotonic() + 50
    while members(topic, group_id) != count:
        assert time.monotonic() < deadline, "the stopped query is still a member"
        time.sleep(0.05)  # between two looks


@pytest.fixture
def consumer(group_id):
    """Makes a kafka-python consumer in the group that reads on a thread until it is ended."""
    over, came, threads = Event(), [], []

    def make(topic):
        mine = kafka_python_consumer(
            topic.name, group_id=group_id, bootstrap_servers=topic.bootstrap_servers, auto_offset_reset="earliest"
        )

        def read():
            while not over.is_set():
                for batch in mine.poll(timeout_ms=20).values():
                    came.extend((record.partition, record.offset) for record in batch)
            mine.close()

        threads.append(Thread(target=read))
        threads[-1].start()
        return came

    def end():
        over.set()
        for thread in threads:
            thread.join()

    make.end = end
    yield make
    end()


def everything(size):
    return {(partition, offset) for partition in range(PARTITIONS) for offset in range(size)}


def test_a_query_reads_as_a_member_and_leaves_when_it_is_stopped(spark, topic, tmp_path, group_id):
    topic, sink = topic([30] * PARTITIONS), Sink()
    with query(frame(spark, topic, group_id), tmp_path, sink) as running:
        running.wait_for(lambda: set(sink.came()) == everything(30))
        assert members(topic, group_id) == 1
    wait_until_alone(topic, group_id)


@pytest.mark.kafka
def test_a_query_shares_a_group_and_leaves_it_when_it_is_stopped(spark, topic, tmp_path, group_id, consumer):
    topic, sink = topic([30] * PARTITIONS), Sink()
    with query(frame(spark, topic, group_id), tmp_path, sink) as running:
        running.wait_for(lambda: set(sink.came()) == everything(30))
        came = consumer(topic)
        running.wait_for(lambda: members(topic, group_id) == 2)
        topic.write([30] * PARTITIONS)
        running.wait_for(lambda: set(sink.came()) | set(came) == everything(60))
    wait_until_alone(topic, group_id, 1)
    topic.write([30] * PARTITIONS)
    until(lambda: set(sink.came()) | set(came) == everything(90))
    consumer.end()
    topic.write([30] * PARTITIONS)
    with query(frame(spark, topic, group_id), tmp_path, sink) as running:
        running.wait_for(lambda: set(sink.came()) | set(came) == everything(120))
        # The progress of a micro-batch comes a moment after its sink was called.
        running.wait_for(lambda: (last := running.started.lastProgress) and lag_of(last.sources[0]) == Lag(0, 0.0, 0))
        assert json.loads(running.started.lastProgress.sources[0].endOffset)["group"] == group_id
    twice = {place for place, times in (sink.came() + Counter(came)).items() if times > 1}
    assert twice <= everything(60) - everything(30)  # Spark may have stopped it before it asked for more


@pytest.mark.kafka
def test_a_query_that_fails_leaves_its_group_and_replays(spark, topic, tmp_path, group_id):
    topic, sink = topic([30] * PARTITIONS), Sink()
    sink.fails_at = 1
    with query(frame(spark, topic, group_id), tmp_path, sink) as running:
        assert "this micro-batch shall fail" in running.fails()
    wait_until_alone(topic, group_id)
    sink.fails_at = -1
    with query(frame(spark, topic, group_id), tmp_path, sink) as running:
        running.wait_for(lambda: set(sink.came()) == everything(30))
    assert sink.came() == Counter(everything(30))


@pytest.mark.kafka
def test_a_stream_that_a_query_uses_twice_is_one_member(spark, topic, tmp_path, group_id):
    topic, sink = topic([30] * PARTITIONS), Sink()
    stream = frame(spark, topic, group_id)
    with query(stream.union(stream), tmp_path, sink) as running:
        running.wait_for(lambda: set(sink.came()) == everything(30))
        assert members(topic, group_id) == 1
        assert set(sink.came().values()) == {2}  # each side of the union has all of it


@pytest.mark.kafka
def test_a_stream_that_a_query_loads_twice_is_refused(spark, topic, tmp_path, group_id):
    topic = topic([30] * PARTITIONS)
    twice = frame(spark, topic, group_id).union(frame(spark, topic, group_id))
    with query(twice, tmp_path, Sink()) as running:
        assert f"has a stream in group {group_id} already" in running.fails()


@pytest.mark.kafka
def test_available_now_is_refused(spark, topic, tmp_path, group_id):
    topic = topic([30] * PARTITIONS)
    with query(frame(spark, topic, group_id), tmp_path, Sink(), availableNow=True) as running:
        assert "member conflicts with the trigger availableNow" in running.fails()


@pytest.mark.kafka
def test_the_example(spark, coordinator, tmp_path, capsys):
    path = Path(__file__).parents[2] / "examples" / "spark_member.py"
    spec = importlib.util.spec_from_file_location("spark_member", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    page = tmp_path / "page.html"
    readings = example.draw(spark, coordinator.bootstrap_servers, str(tmp_path / "checkpoint"), page, phase_s=1)
    read, written = re.match(r"(\d+) of (\d+) records were read", capsys.readouterr().out).groups()
    assert read == written == str(len(readings.came))
    assert "consumer 2 leaves" in page.read_text()
