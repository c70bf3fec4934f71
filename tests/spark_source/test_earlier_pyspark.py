"""What a stream answers as PySpark 4.0 and 4.1 ask, which name neither start nor limit; no JVM in it.

In ``python_streaming_source_runner`` of 4.0.5 the question is ``reader.latestOffset()``. Spark asks it before it asks
for the initial offset, and after a restart without any question before it (``MicroBatchExecution``).
"""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from loadwise.spark_source import pyspark_version, source, stream
from loadwise.spark_source.errors import DataLossError, OptionError
from loadwise.spark_source.planning.query import checked
from loadwise.spark_source.reading.arrow_batches import full_schema
from loadwise.spark_source.source import LoadwiseDataSource
from loadwise.spark_source.stream import LoadwiseStreamReader


@pytest.fixture(autouse=True)
def _asks_as_before(monkeypatch):
    for module in (pyspark_version, source, stream):
        monkeypatch.setattr(module, "NAMES_START", False)
    monkeypatch.setattr(pyspark_version, "_installed", "4.0.5")


@pytest.fixture
def process():
    """Makes the reader of a process that Spark has just started."""
    made = []

    def make(topic, **options):
        given = {"numTasks": "1", "fetchOffset.retryIntervalMs": "1"} | topic.options(**options)
        made.append(LoadwiseStreamReader(given, full_schema(include_headers=False)))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()


def written(offset):
    """An offset as it comes back out of a checkpoint."""
    return json.loads(json.dumps(offset))


def read(reader, start, end):
    """The partition and offset of each record of a micro-batch."""
    return sorted(
        place
        for task in reader.partitions(written(start), written(end))
        for batch in reader.read(task)
        for place in zip(batch["partition"].to_pylist(), batch["offset"].to_pylist(), strict=True)
    )


def everything(*sizes):
    return [(partition, offset) for partition, size in enumerate(sizes) for offset in range(size)]


def test_a_new_query_reads_what_there_is_and_a_restart_what_came_since(topic, process):
    topic = topic([5, 2])
    first = process(topic, startingOffsets="earliest")
    end = first.latestOffset()
    assert read(first, first.initialOffset(), end) == everything(5, 2)
    topic.write([1, 1])
    restarted = process(topic, startingOffsets="earliest")
    later = restarted.latestOffset()
    assert read(restarted, end, later) == [(0, 5), (1, 2)]
    assert json.dumps(written(restarted.latestOffset())) == json.dumps(written(later)), "no micro-batch without records"
    assert json.dumps(process(topic, startingOffsets="earliest").latestOffset()) == json.dumps(later)


@pytest.mark.parametrize("start", ["latest", "earliest", '{"%s": {"0": 3, "1": -1}}'])
def test_a_first_micro_batch_that_is_replayed_loses_nothing(topic, process, start):
    """The process that planned it was killed, and "latest" has moved on. With ``availableNow`` the end comes first."""
    topic = topic([5, 2])
    start = start.replace("%s", topic.name)
    first = process(topic, startingOffsets=start)
    end = first.latestOffset()
    found = read(first, first.initialOffset(), end)
    topic.write([4, 4])
    expected = {"latest": [], "earliest": everything(5, 2)}.get(start, [(0, 3), (0, 4)])
    assert found == expected
    for available_now in (False, True):
        again = process(topic, startingOffsets=start)
        target = again.latestOffset() if available_now else None
        assert read(again, again.initialOffset(), end) == expected
        assert read(again, end, target or again.latestOffset()) == [
            *((0, offset) for offset in range(5, 9)),
            *((1, offset) for offset in range(2, 6)),
        ]


def test_a_topic_that_is_gone_before_the_first_micro_batch_was_read_is_a_loss(topic, process):
    topic = topic([5])
    first = process(topic, startingOffsets="earliest")
    end = written(first.latestOffset())
    topic.delete()
    topic.create(1)
    topic.write([2])
    again = process(topic, startingOffsets="earliest")
    with pytest.raises(DataLossError, match=f"{topic.name}-0 .*failOnDataLoss=false"):
        again.partitions(written(again.initialOffset()), end)


def test_fewer_offsets_than_wanted_are_waited_on(topic, process):
    topic = topic([5])
    reader = process(topic, startingOffsets="earliest", minOffsetsPerTrigger=3)
    end = reader.latestOffset()
    read(reader, reader.initialOffset(), end)
    topic.write([2])
    assert reader.latestOffset() == end
    topic.write([1])
    assert read(reader, end, reader.latestOffset()) == [(0, 5), (0, 6), (0, 7)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"maxOffsetsPerTrigger": "5"},
            "option maxOffsetsPerTrigger: needs PySpark 4.2 or later, and 4.0.5 is installed",
        ),
        ({"COMMITGROUP": "true"}, "option commitGroup: needs PySpark 4.2 or later, and 4.0.5 is installed"),
        ({"assignment.mode": "Member"}, "option assignment.mode: member needs PySpark 4.2 or later, and 4.0.5 is inst"),
    ],
    ids=["maxOffsetsPerTrigger", "commitGroup", "member"],
)
def test_an_option_that_cannot_be_kept_is_refused_by_name_in_a_stream(options, problem):
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "kafka.group.id": "g"} | options
    with pytest.raises(OptionError, match=f"^{problem}"):
        checked(given, streaming=True)
    reader = LoadwiseDataSource(given).streamReader(full_schema(include_headers=False))
    with pytest.raises(OptionError, match=f"^{problem}"):
        reader.latestOffset()
    if "assignment.mode" in options:
        with pytest.raises(OptionError, match=f"^{problem}"):
            LoadwiseDataSource(given).schema()
    else:
        checked(given)  # in a batch they mean nothing, as ever
