"""A stream whose topic was deleted and created again with as many records is recognised by its id (KIP-516). No JVM."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from topics import delete_topic, fill, make_topic

from loadwise.spark_source.cluster.offsets import Cluster
from loadwise.spark_source.errors import DataLossError
from loadwise.spark_source.planning.progress import ids_in
from loadwise.spark_source.reading.arrow_batches import full_schema
from loadwise.spark_source.session import lag_of
from loadwise.spark_source.stream import OURS_TO_LIMIT, LoadwiseStreamReader

BY = ("subscribe", "subscribePattern", "assign")


class Scene:
    """A topic with two partitions, and the processes of a query that reads it, one after the other."""

    def __init__(self, broker, name, by):
        self.broker, self.name = broker, name
        self.options = {"kafka.bootstrap.servers": broker, "startingOffsets": "earliest", "numTasks": "1"}
        self.options["fetchOffset.retryIntervalMs"] = "1"
        self.options[by] = json.dumps({name: [0, 1]}) if by == "assign" else name
        self.readers = []
        self.make(5, 2)

    def make(self, *sizes):
        make_topic(self.broker, self.name, len(sizes))
        fill(self.broker, self.name, sizes)

    def make_anew(self, *sizes):
        delete_topic(self.broker, self.name)
        self.make(*sizes)

    def start(self, **options):
        """A new process of the query; the last one is gone with all that it knew."""
        self.readers.append(LoadwiseStreamReader(self.options | options, full_schema(include_headers=False)))
        return self.readers[-1]

    def at(self, *offsets):
        return {self.name: {str(partition): offset for partition, offset in enumerate(offsets)}}


@pytest.fixture(params=BY)
def scene(request, broker, topic_name):
    made = Scene(broker, topic_name, request.param)
    yield made
    for reader in made.readers:
        reader.stop()


def end_of(reader, start):
    """The end of the next micro-batch, as the checkpoint keeps it."""
    return json.loads(json.dumps(reader.latestOffset(start, OURS_TO_LIMIT)))


def read(reader, start, end):
    """What a micro-batch reads: partition, start and end of its ranges."""
    return [
        (item.partition, item.start, item.end)
        for task in reader.partitions(start, end)
        for item in task.value.ranges
        if item.end > item.start
    ]


def begun(scene):
    """The checkpoint of a query that has read all there was, and was stopped."""
    reader = scene.start()
    initial = reader.initialOffset()
    assert end_of(reader, initial) == initial
    end = end_of(reader, initial)
    assert read(reader, initial, end) == [(0, 0, 5), (1, 0, 2)]
    return end


@pytest.mark.parametrize("sizes", [(9, 7), (5, 2)])
def test_a_topic_that_was_made_anew_with_no_fewer_records_is_a_loss(scene, sizes):
    stopped = begun(scene)
    scene.make_anew(*sizes)
    for _ in range(2):  # and again after a restart
        reader = scene.start()
        end = end_of(reader, stopped)
        with pytest.raises(
            DataLossError, match=f"^{scene.name}-0 was deleted and created again, .* offset 5 on .* id was"
        ):
            reader.partitions(stopped, end)
    for another in (reader, scene.start()):
        with pytest.raises(DataLossError, match="deleted and created again"):
            another.partitions(stopped, end)


def test_where_losses_are_allowed_the_new_topic_is_read_from_its_beginning(scene, caplog):
    stopped = begun(scene)
    scene.make_anew(9, 7)
    reader = scene.start(failOnDataLoss="false", maxOffsetsPerTrigger="10")
    end = end_of(reader, stopped)
    first = read(reader, stopped, end)
    assert caplog.text.count("was deleted and created again, and its records from offset") == 2
    caplog.clear()
    last = end_of(reader, end)
    assert sorted(first + read(reader, end, last)) == [(0, 0, 5), (0, 5, 9), (1, 0, 4), (1, 4, 7)]
    assert end_of(reader, last) == last
    assert read(scene.start(failOnDataLoss="false"), stopped, end) == first  # a replay reads the same
    assert "deleted" in caplog.text


def test_an_unfinished_micro_batch_is_not_read_from_another_topic(scene, caplog):
    stopped = begun(scene)
    fill(scene.broker, scene.name, [3, 1])
    unfinished = end_of(scene.start(), stopped)
    scene.make_anew(9, 7)
    with pytest.raises(DataLossError, match=f"{scene.name}-1 was deleted and created again, .* from offset 2 on"):
        scene.start().partitions(stopped, unfinished)
    reader = scene.start(failOnDataLoss="false")
    assert read(reader, stopped, unfinished) == []
    assert "deleted and created again" in caplog.text
    assert read(reader, unfinished, end_of(reader, unfinished)) == [(0, 0, 9), (1, 0, 7)]


@pytest.mark.parametrize("losses", ["refused", "allowed"])
def test_what_is_available_now_is_nothing_of_a_topic_made_anew_in_the_run(scene, losses, caplog):
    stopped = begun(scene)
    fill(scene.broker, scene.name, [6, 0])
    options = {"maxOffsetsPerTrigger": "2", "failOnDataLoss": str(losses == "refused")}
    reader = scene.start(**options)
    reader.prepareForTriggerAvailableNow()
    end = end_of(reader, stopped)
    assert read(reader, stopped, end) == [(0, 5, 7)]
    scene.make_anew(20)  # with fewer partitions
    last = end_of(reader, end)
    if losses == "refused":
        with pytest.raises(DataLossError, match=f"^{scene.name}-0 was deleted and created again, .* offset 7 on"):
            reader.partitions(end, last)
        return
    assert read(reader, end, last) == []
    assert caplog.text.count("was deleted and created again, and its records from offset") == 2
    assert end_of(reader, last) == last  # the run is over
    reader = scene.start()
    assert read(reader, last, end_of(reader, last)) == [(0, 0, 20)]


def test_a_broker_that_tells_an_old_id_for_a_moment_makes_no_loss(scene, monkeypatch):
    stopped = begun(scene)
    fill(scene.broker, scene.name, [3, 0])
    ask, asked = Cluster._topics, []

    def behind(self, *arguments):
        """What this has answered first was asked of a broker that is behind."""
        asked.append(arguments)
        found = ask(self, *arguments)
        old = {name: replace(topic, id="b2xk") for name, topic in found.items()}
        return old if len(asked) % 2 else found

    monkeypatch.setattr(Cluster, "_topics", behind)
    reader = scene.start(maxOffsetsPerTrigger="2")
    reader.prepareForTriggerAvailableNow()
    end = end_of(reader, stopped)
    last = end_of(reader, end)
    assert read(reader, end, last) == [(0, 7, 8)]
    assert read(scene.start(), stopped, end) == [(0, 5, 7)]
    assert len(asked) == 6  # each was asked for again, and believed then


def test_an_unfinished_first_micro_batch_is_as_empty_as_it_was(scene):
    first = scene.start()
    end = end_of(first, first.initialOffset())
    scene.make_anew(9, 7)
    reader = scene.start(failOnDataLoss="false")
    assert read(reader, reader.initialOffset(), end) == []
    assert read(reader, end, end_of(reader, end)) == [(0, 0, 9), (1, 0, 7)]


def test_a_checkpoint_without_ids_goes_on_and_has_them_from_the_next_micro_batch_on(scene):
    reader = scene.start()
    start = scene.at(3, 2)
    end = end_of(reader, start)
    assert read(reader, start, end) == [(0, 3, 5)]
    assert ids_in(end).keys() == {scene.name}
    reader = scene.start()
    assert end_of(reader, scene.at(5, 2)) == scene.at(5, 2)  # no micro-batch for the id alone
    assert read(scene.start(), scene.at(5, 1), scene.at(5, 2)) == [(1, 1, 2)]  # a replay of one without


def test_a_topic_that_is_the_same_is_no_loss(scene):
    stopped = begun(scene)
    fill(scene.broker, scene.name, [3])
    reader = scene.start()
    end = end_of(reader, stopped)
    assert read(reader, stopped, end) == [(0, 5, 8)]
    assert read(scene.start(), stopped, end) == [(0, 5, 8)]


def test_lag_is_told_of_offsets_with_ids(scene):
    class Source:
        startOffset = None  # noqa: N815 - as Spark calls it
        endOffset = json.dumps(begun(scene))  # noqa: N815
        latestOffset = json.dumps(scene.at(9, 2))  # noqa: N815

    assert lag_of(Source).most == 4
