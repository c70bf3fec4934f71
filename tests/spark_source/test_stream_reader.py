"""What a stream answers to Spark's questions, on a live broker: ends, limits, losses, replays; no JVM in it."""

from __future__ import annotations

import json
import pickle
from contextlib import contextmanager
from itertools import chain
from threading import Thread
from time import monotonic

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from confluent_kafka import Consumer
from kafka_process import kafka_from_jars
from own_log import own_log
from pyspark.sql.streaming.datasource import ReadAllAvailable
from topics import WAIT_S, committed, fill, make_topic

from loadwise.coordinator import Coordinator
from loadwise.spark_source.cluster import offsets
from loadwise.spark_source.errors import DataLossError, OptionError
from loadwise.spark_source.reading.arrow_batches import full_schema
from loadwise.spark_source.stream import BEGUN_HERE, OURS_TO_LIMIT, LoadwiseStreamReader

NO_WAIT = {"fetchOffset.retryIntervalMs": "1"}


@pytest.fixture
def stream():
    """Makes the reader of a new query, as Spark would have it in a process of its own."""
    made = []

    def make(topic, **options):
        given = {"startingOffsets": "earliest", "numTasks": "2"} | NO_WAIT | topic.options(**options)
        made.append(LoadwiseStreamReader(given, full_schema(include_headers=False)))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()


def begin(reader):
    """What Spark does first in a new query: the first micro-batch is empty."""
    initial = reader.initialOffset()
    assert reader.latestOffset(initial, OURS_TO_LIMIT) == initial
    return initial


def at(topic, *offsets):
    return {topic.name: {str(partition): offset for partition, offset in enumerate(offsets)}}


def ends(reader, start, limit=OURS_TO_LIMIT):
    """Where the micro-batch behind ``start`` ends, without the ids of topics."""
    return without_ids(reader.latestOffset(start, limit))


def without_ids(offset):
    return {name: part for name, part in offset.items() if not name.startswith("(id of ")}


def planned(reader, start, end):
    """What each task reads: partition, start and end of its ranges."""
    return [
        [(item.partition, item.start, item.end) for item in task.value.ranges] for task in reader.partitions(start, end)
    ]


def test_the_first_micro_batch_is_empty_so_that_the_initial_offset_is_in_the_checkpoint(topic, stream):
    topic = topic([3, 1])
    reader = stream(topic, startingOffsets="latest")
    initial = begin(reader)
    assert without_ids(initial) == at(topic, 3, 1) | BEGUN_HERE
    assert reader.partitions(initial, initial) == []
    assert reader.latestOffset(initial, OURS_TO_LIMIT) == initial  # no micro-batch for the mark's sake
    topic.write([2])
    assert reader.initialOffset() == initial  # Spark asks twice
    assert ends(reader, initial) == at(topic, 5, 1)
    assert planned(reader, initial, at(topic, 5, 1)) == [[(0, 3, 4)], [(0, 4, 5)]]


def test_a_replay_of_the_first_micro_batch_under_live_traffic_loses_nothing(topic, stream):
    """The process was killed in it. Its replay asks for the initial offset again, and "latest" has moved on."""
    topic = topic([3])
    end = begin(stream(topic, startingOffsets="latest"))
    topic.write([4])
    restarted = stream(topic, startingOffsets="latest")
    assert without_ids(restarted.initialOffset()) == at(topic, 7) | BEGUN_HERE
    assert restarted.partitions(restarted.initialOffset(), end) == []
    assert ends(restarted, end) == at(topic, 7)
    assert planned(restarted, end, at(topic, 7)) == [[(0, 3, 5)], [(0, 5, 7)]]


@pytest.mark.parametrize("start", ["latest", "earliest", '{"%s": {"0": 1, "1": -1}}'])
def test_another_sources_unfinished_first_micro_batch_is_refused_where_it_began_nobody_knows(topic, stream, start):
    """Spark's Kafka source wrote its end into the checkpoint, and its beginning where no Python source can see it."""
    topic = topic([5, 2])
    reader = stream(topic, startingOffsets=start.replace("%s", topic.name))
    with pytest.raises(OptionError, match=r"^option startingOffsets: .*Spark's Kafka source began it.*sources/0/0"):
        reader.partitions(reader.initialOffset(), at(topic, 4, 2))


def test_another_sources_unfinished_first_micro_batch_is_read_from_where_the_user_says_it_began(topic, stream):
    topic = topic([5, 2])
    reader = stream(topic, startingOffsets=json.dumps(at(topic, 1, 2)), numTasks=1)
    assert planned(reader, reader.initialOffset(), at(topic, 4, 2)) == [[(0, 1, 4)]]


def test_another_sources_unfinished_first_micro_batch_knows_no_partition_that_was_added_since(topic, stream):
    topic = topic([5, 2])
    reader = stream(topic, startingOffsets=json.dumps(at(topic, 1, -2)), numTasks=1)
    assert planned(reader, reader.initialOffset(), at(topic, 4)) == [[(0, 1, 4)]]
    assert ends(reader, at(topic, 4)) == at(topic, 5, 2)


def test_trigger_once_reads_in_its_only_micro_batch_and_knows_no_limit(topic, stream):
    topic = topic([5, 2])
    reader = stream(topic, maxOffsetsPerTrigger=1)
    assert ends(reader, reader.initialOffset(), ReadAllAvailable()) == at(topic, 5, 2) | BEGUN_HERE
    partly = stream(topic, startingOffsets=json.dumps(at(topic, 2, -1)))
    initial = partly.initialOffset()
    topic.write([1, 1])
    assert without_ids(initial) == at(topic, 2, 2) | BEGUN_HERE
    assert ends(partly, initial, ReadAllAvailable()) == at(topic, 6, 2) | BEGUN_HERE


def test_available_now_ends_where_the_partitions_ended_at_its_first_question(topic, stream):
    topic = topic([5, 2])
    reader = stream(topic, maxOffsetsPerTrigger=4, minOffsetsPerTrigger=4)
    reader.prepareForTriggerAvailableNow()
    place = begin(reader)
    topic.write([3, 3])
    seen = []
    while (end := reader.latestOffset(place, OURS_TO_LIMIT)) != place:
        seen.append(end)
        place = end
    assert without_ids(place) == at(topic, 5, 2)
    assert len(seen) == 2  # 4 and then 3, although at least 4 are asked for: nothing may be left


def test_max_offsets_per_trigger_in_proportion_and_none_starves(topic, stream):
    """As KafkaMicroBatchStream.rateLimit: floor of the share, or 1 where it is below."""
    topic = topic([900, 90, 3, 0])
    reader = stream(topic, maxOffsetsPerTrigger=100)
    start = begin(reader)
    assert ends(reader, start) == at(topic, 90, 9, 1, 0)
    assert reader.reportLatestOffset() == at(topic, 900, 90, 3, 0)


def test_min_offsets_per_trigger_waits_no_longer_than_max_trigger_delay(topic, stream):
    topic = topic([5])
    patient = stream(topic, minOffsetsPerTrigger=4)
    hasty = stream(topic, minOffsetsPerTrigger=4, maxTriggerDelay="0ms")
    for reader in (patient, hasty):
        assert ends(reader, begin(reader)) == at(topic, 5)
    topic.write([3])
    assert ends(patient, at(topic, 5)) == at(topic, 5)
    assert ends(hasty, at(topic, 5)) == at(topic, 8)
    topic.write([1])
    assert ends(patient, at(topic, 5)) == at(topic, 9)


def test_the_plan_is_the_same_in_a_replay_by_another_process(topic, stream):
    topic = topic([1000, 10, 20, 30, 0])
    start, end = at(topic, 0, 0, 0, 0, 0), at(topic, 1000, 10, 20, 30, 0)
    first = planned(stream(topic, numTasks=4), start, end)
    topic.write([500, 500])
    assert planned(stream(topic, numTasks=4), start, end) == first
    covered = sorted((partition, offset) for task in first for partition, *ends in task for offset in range(*ends))
    assert covered == [(0, offset) for offset in range(1000)] + [
        (partition, offset) for partition, size in ((1, 10), (2, 20), (3, 30)) for offset in range(size)
    ]


def test_partitions_keep_their_task_between_micro_batches(topic, stream):
    """The loads drift by a tenth; nothing forces a partition to another task."""
    topic = topic([0] * 8)
    reader = stream(topic, numTasks=4)
    homes = set()
    for batch in range(5):
        sizes = [100 + (7 * batch + 5 * partition) % 10 for partition in range(8)]
        tasks = planned(reader, at(topic, *[0] * 8), at(topic, *sizes))
        homes.add(tuple(tuple(partition for partition, _, _ in task) for task in tasks))
    assert homes == {((0, 4), (1, 5), (2, 6), (3, 7))}


def test_partitions_that_are_added_are_read_from_their_beginning(topic, stream):
    topic = topic([2])
    reader = stream(topic, startingOffsets="latest")
    start = begin(reader)
    topic.grow(3)
    topic.write([1, 3, 0])
    end = reader.latestOffset(start, OURS_TO_LIMIT)
    assert without_ids(end) == at(topic, 3, 3, 0)
    assert sorted(chain(*planned(reader, start, end))) == [(0, 2, 3), (1, 0, 2), (1, 2, 3)]


def test_a_topic_that_was_made_anew_is_a_loss_that_names_partition_and_offsets(topic, stream, caplog):
    topic = topic([9])
    start = at(topic, 9)
    topic.delete()
    topic.create(1)
    topic.write([4])
    reader = stream(topic)
    end = reader.latestOffset(start, OURS_TO_LIMIT)
    assert without_ids(end) == at(topic, 4)
    with pytest.raises(DataLossError, match=f"^{topic.name}-0 was read up to offset 9 and now ends at 4: .*failOnData"):
        reader.partitions(start, end)
    caplog.clear()
    assert stream(topic, failOnDataLoss="false").partitions(start, end) == []
    assert [record.levelname for record in own_log(caplog)] == ["WARNING"]


def test_a_topic_that_is_gone_is_a_loss_that_names_partition_and_offset(topic, stream):
    topic = topic([9])
    start = at(topic, 5)
    reader = stream(topic)
    topic.delete()
    end = reader.latestOffset(start, OURS_TO_LIMIT)
    assert without_ids(end) == {}
    with pytest.raises(
        DataLossError, match=f"^{topic.name}-0 was deleted, and its records from offset 5 on are lost; set failOn"
    ):
        reader.partitions(start, end)
    assert stream(topic, failOnDataLoss="false").partitions(start, end) == []


@pytest.mark.parametrize("by", ["subscribe", "assign"])
def test_a_topic_that_is_gone_stays_away_for_as_long_as_it_likes(topic, stream, by):
    """From the second micro-batch on, no offset has it any more."""
    topic = topic([9])
    tolerant = stream(topic, failOnDataLoss="false")
    if by == "assign":
        given = {**topic.options(failOnDataLoss="false"), "assign": json.dumps({topic.name: [0]})}
        del given["subscribe"]
        tolerant = LoadwiseStreamReader(given | NO_WAIT, full_schema(include_headers=False))
    topic.delete()
    end = tolerant.latestOffset(at(topic, 9), OURS_TO_LIMIT)
    assert without_ids(end) == {}
    assert ends(tolerant, end) == {}
    topic.create(1)
    topic.write([4])
    assert ends(tolerant, end) == at(topic, 4)
    assert sum(task.value.records for task in tolerant.partitions(end, at(topic, 4))) == 4
    tolerant.stop()


def test_a_new_topic_that_is_gone_before_its_micro_batch_was_read_is_a_loss(topic, stream, monkeypatch):
    """The micro-batch is in the checkpoint and the query was killed: its replay must not fail again and again."""
    monkeypatch.setattr(offsets, "UNKNOWN_S", 0.1)
    topic = topic([3])
    start, end = at(topic, 1), at(topic, 3) | {f"{topic.name}-new": {"0": 5}}
    with pytest.raises(
        DataLossError, match=f"{topic.name}-new-0 was new, and was deleted with its offsets up to 5; set"
    ):
        stream(topic).partitions(start, end)
    assert planned(stream(topic, failOnDataLoss="false"), start, end) == [[(0, 1, 2)], [(0, 2, 3)]]


def test_a_topic_that_is_gone_fails_the_query_again_after_a_restart_unless_losses_are_allowed(topic, stream):
    topic = topic([9])
    topic.delete()
    for _ in range(2):
        reader = stream(topic)
        with pytest.raises(DataLossError):
            reader.partitions(at(topic, 9), reader.latestOffset(at(topic, 9), OURS_TO_LIMIT))


def test_a_first_micro_batch_is_replayed_as_often_as_the_query_uses_the_stream(topic, stream):
    """``df.union(df)`` has one reader, which is asked for the tasks of each micro-batch twice."""
    topic = topic([3])
    end = begin(stream(topic, startingOffsets="latest"))
    topic.write([4])
    restarted = stream(topic, startingOffsets="latest")
    start = restarted.initialOffset()
    assert [restarted.partitions(start, end) for _ in range(2)] == [[], []]
    assert planned(restarted, end, restarted.latestOffset(end, OURS_TO_LIMIT)) == [[(0, 3, 5)], [(0, 5, 7)]]


PASSING = ("NOT_LEADER_OR_FOLLOWER", "LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION", "FENCED_LEADER_EPOCH")


@pytest.mark.parametrize("error", [*PASSING, None])
def test_a_leader_that_moves_or_a_connection_that_breaks_is_waited_out_in_planning(error):
    with Coordinator({"t": 2}, brokers=2).in_thread() as cluster:
        fill(cluster.bootstrap_servers, "t", [5, 2])
        given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "t", "startingOffsets": "earliest"}
        reader = LoadwiseStreamReader(given, full_schema(include_headers=False))
        start = begin(reader)
        if error is None:
            cluster.faults.disconnect("ListOffsets", times=2)
        else:
            cluster.faults.answer("ListOffsets", error=error, times=3)
        cluster.move_leader("t", 0)
        assert ends(reader, start) == {"t": {"0": 5, "1": 2}}
        assert not cluster.faults.pending
        reader.stop()


@pytest.mark.kafka
def test_a_broker_that_crashes_and_comes_back_is_waited_out_in_planning_and_in_reading():
    """Two questions to a broker that is down: one of a query that has begun, one of a task."""
    with kafka_from_jars() as addresses:
        name, bootstrap = "t", addresses["PLAINTEXT"]
        make_topic(bootstrap, name, 2)
        fill(bootstrap, name, [3_000, 2_000], batch_records=100)
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": name, "startingOffsets": "earliest"} | NO_WAIT
        given |= {"numTasks": "1", "kafka.max.partition.fetch.bytes": "2000", "kafka.max.poll.records": "100"}
        reader = LoadwiseStreamReader(given, full_schema(include_headers=False))
        start = begin(reader)
        with crashed(addresses.broker):
            end = reader.latestOffset(start, OURS_TO_LIMIT)
        assert without_ids(end) == {name: {"0": 3_000, "1": 2_000}}
        (task,) = reader.partitions(start, end)
        batches = reader.read(task)
        found = [next(batches).num_rows]
        with crashed(addresses.broker):
            found += [batch.num_rows for batch in batches]
        assert sum(found) == 5_000
        reader.stop()


@contextmanager
def crashed(broker):
    """The broker is down when the with block begins, and comes back during it."""
    broker.kill()
    again = Thread(target=broker.start)
    again.start()
    yield
    again.join()


def test_refusals_come_with_the_first_question_and_not_before(topic):
    """PySpark's own process would hide what a reader raises while it is made."""
    reader = LoadwiseStreamReader({"subscribe": "t", "endingOffsets": "latest"}, full_schema(include_headers=False))
    with pytest.raises(OptionError, match=r"^option endingOffsets: has no meaning in a streaming query"):
        reader.initialOffset()
    reader.stop()


def test_the_reader_travels_to_the_workers(topic, stream):
    topic = topic([5, 5])
    reader = stream(topic)
    (task, _) = reader.partitions(at(topic, 0, 0), at(topic, 5, 5))
    there = pickle.loads(pickle.dumps(stream(topic)))
    assert sum(batch.num_rows for batch in there.read(task)) == 5


def test_a_broker_that_is_behind_for_a_moment_is_asked_again(topic, stream, monkeypatch):
    topic = topic([5])
    reader = stream(topic)
    cluster = type(reader._kafka)
    true_offsets, calls = cluster.offsets, []

    def behind_at_first(self, when, places):
        calls.append(when)
        found = true_offsets(self, when, places)
        return {place: offset - 2 for place, offset in found.items()} if len(calls) == 1 else found

    monkeypatch.setattr(cluster, "offsets", behind_at_first)
    assert ends(reader, at(topic, 5)) == at(topic, 5)
    assert len(calls) == 2


def test_the_group_has_what_is_processed_whenever_spark_asks_for_more(topic, stream, group_id):
    topic = topic([5, 2])
    reader = stream(topic, commitGroup="true", kafka__group__id=group_id)
    start = begin(reader)
    assert committed(topic.bootstrap_servers, group_id, topic.name, 2) == [0, 0]
    end = reader.latestOffset(start, OURS_TO_LIMIT)
    assert committed(topic.bootstrap_servers, group_id, topic.name, 2) == [0, 0]  # not before it has been processed
    reader.latestOffset(end, OURS_TO_LIMIT)
    assert committed(topic.bootstrap_servers, group_id, topic.name, 2) == [5, 2]


def test_without_commit_group_nothing_is_committed(topic, stream, group_id):
    topic = topic([5])
    reader = stream(topic, kafka__group__id=group_id)
    reader.latestOffset(begin(reader), OURS_TO_LIMIT)
    assert committed(topic.bootstrap_servers, group_id, topic.name, 1) == [-1001]


def test_a_failing_commit_is_a_warning_and_tried_again(topic, stream, group_id, caplog):
    """The group has a member of its own, so Kafka refuses what a stranger commits to it."""
    topic = topic([5])
    member = Consumer({"bootstrap.servers": topic.bootstrap_servers, "group.id": group_id})
    member.subscribe([topic.name])
    deadline = monotonic() + WAIT_S
    while not member.assignment() and monotonic() < deadline:
        member.poll(0.1)
    reader = stream(topic, commitGroup="true", kafka__group__id=group_id)
    start = begin(reader)
    assert [record.levelname for record in caplog.records if "commits" in record.name] == ["WARNING"]
    assert f"cannot commit offsets to group {group_id}: " in caplog.text
    assert ends(reader, start) == at(topic, 5)
    member.close()
    caplog.clear()
    reader.latestOffset(at(topic, 5), OURS_TO_LIMIT)
    assert committed(topic.bootstrap_servers, group_id, topic.name, 1) == [5]
    assert not own_log(caplog)
