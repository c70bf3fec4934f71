"""Sampled sizes of records, on batches that another client wrote and on a live broker."""

from __future__ import annotations

import asyncio
import json
from time import monotonic
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

import confluent_kafka
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st
from topics import WAIT_S, make_topic

from loadwise.assignor.model import TopicPartition
from loadwise.coordinator import Coordinator
from loadwise.spark_source.cluster.client import connected
from loadwise.spark_source.planning import query, sampling
from loadwise.spark_source.planning.density import Density
from loadwise.spark_source.planning.query import checked, planned
from loadwise.spark_source.planning.sampling import AGAIN_S, ENOUGH, RECORD_BYTES, Sample, completed, record_bytes
from loadwise.spark_source.task import OffsetRange


@given(
    start=st.integers(0, 1 << 40),
    records=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 10_000)), min_size=1, max_size=50),
)
def test_what_an_offset_weighs_times_the_offsets_is_what_the_records_weigh_and_gaps_weigh_nothing(start, records):
    sample, offset = Sample(start, start + 1000), start
    for gap, size in records:
        sample.add(offset + gap, size)
        offset += gap + 1
    wanted = sum(size + RECORD_BYTES for _, size in records)
    assert sample.weight_of_offset * (offset - start) == pytest.approx(wanted)


def test_nothing_is_learnt_from_nothing():
    assert Sample(7, 10).weight_of_offset is None
    assert completed({}, [OffsetRange("t", 0, 0, 5)]) == {}


def test_a_partition_that_nobody_looked_at_counts_as_its_topics_mean_or_that_of_all():
    found = {TopicPartition("a", 0): 10.0, TopicPartition("a", 1): 30.0, TopicPartition("b", 0): 80.0}
    filled = [OffsetRange(*place, 0, 5) for place in [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0)]]
    assert list(completed(found, filled).values()) == [10.0, 30.0, 20.0, 80.0, 40.0]


SMALL, LARGE, COUNT = 20, 4_000, 2_000


@pytest.fixture(scope="module")
def uneven():
    """A partition of small records beside one of large ones, which are as many."""
    with Coordinator({"t": 2}).in_thread() as running:
        settings = {"bootstrap.servers": running.bootstrap_servers, "batch.num.messages": 100, "log_level": 0}
        producer = Producer(settings)
        for partition, size in enumerate((SMALL, LARGE)):
            for _ in range(COUNT):
                producer.produce("t", bytes(size), partition=partition)
        assert producer.flush(WAIT_S) == 0
        yield running


def bytes_of_tasks(uneven, **more):
    given = {"kafka.bootstrap.servers": uneven.bootstrap_servers, "subscribe": "t", "numTasks": "4"} | more
    tasks = planned(given).tasks
    assert sum(task.records for task in tasks) == 2 * COUNT
    found = [sum(len(item) * (SMALL, LARGE)[item.partition] for item in task.ranges) for task in tasks]
    return max(found) * len(found) / sum(found)


def test_tasks_are_even_in_bytes_however_the_records_differ(uneven):
    assert bytes_of_tasks(uneven, loadBy="records") > 1.9
    assert bytes_of_tasks(uneven, loadBy="bytes") < 1.10


def test_sizes_are_looked_at_by_default_where_there_is_much_to_read(uneven, monkeypatch):
    monkeypatch.setattr(query, "MUCH", 2 * COUNT)
    assert bytes_of_tasks(uneven) > 1.9
    monkeypatch.setattr(query, "MUCH", 2 * COUNT - 1)
    assert bytes_of_tasks(uneven) < 1.10


def test_a_stream_keeps_what_it_has_learned_and_looks_again_after_a_while(uneven):
    options = checked({"kafka.bootstrap.servers": uneven.bootstrap_servers, "subscribe": "t"})
    ranges = [OffsetRange("t", partition, 0, COUNT) for partition in range(2)]
    small, large = TopicPartition("t", 0), TopicPartition("t", 1)
    learned = {}
    with connected(options.client, group_id_prefix="g", reads_samples=True) as client:
        first = record_bytes(options, client, ranges, learned, 1000.0).means
        assert first == {small: SMALL + RECORD_BYTES, large: LARGE + RECORD_BYTES}
        learned[large] = (100.0, 1000.0)
        assert record_bytes(options, client, ranges, learned, 1000.0 + AGAIN_S - 1).means[large] == 100.0
        again = record_bytes(options, client, ranges, learned, 1000.0 + AGAIN_S).means
    assert again[large] == pytest.approx((100 + first[large]) / 2)


def test_a_plan_is_looked_at_where_an_event_loop_runs_already(uneven):
    """As in every cell of a Jupyter notebook."""

    async def cell():
        return bytes_of_tasks(uneven, loadBy="bytes")

    assert asyncio.run(cell()) < 1.10


def test_a_range_that_holds_the_end_of_a_transaction_alone_is_planned(topic_name, broker, caplog):
    """As a micro-batch does that begins between a transaction's last record and its marker."""
    make_topic(broker, topic_name, 1)
    producer = Producer({"bootstrap.servers": broker, "transactional.id": topic_name})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic_name, b"value", partition=0)
    producer.commit_transaction(WAIT_S)
    given = {"kafka.bootstrap.servers": broker, "subscribe": topic_name, "loadBy": "bytes"}
    given["startingOffsets"] = json.dumps({topic_name: {"0": 1}})
    deadline = monotonic() + WAIT_S
    while not (ranges := planned(given).tasks[0].ranges):  # Kafka writes the marker after it has answered the producer
        assert monotonic() < deadline
    assert ranges == (OffsetRange(topic_name, 0, 1, 2),)
    assert "loadBy=bytes: no record came" in caplog.text


def test_without_any_sample_records_are_counted_with_a_warning(uneven, monkeypatch, caplog):
    monkeypatch.setattr(sampling, "PATIENCE_S", 0.3)
    uneven.faults.drop("Fetch", times=None)
    assert bytes_of_tasks(uneven, loadBy="bytes") > 1.9
    uneven.faults.clear()
    assert [record.getMessage() for record in caplog.records if "loadBy=bytes" in record.getMessage()]


def test_a_stream_does_not_wait_at_each_micro_batch_for_what_it_could_not_find_out(uneven, monkeypatch):
    """As where all that a partition has left is the end of a transaction."""
    looks = []

    def nothing(_, ranges):
        looks.append([item.partition for item in ranges])
        return {TopicPartition("t", 1): Density((0, COUNT), (500.0,))} if len(looks) == 2 else {}

    monkeypatch.setattr(sampling, "sampled", nothing)
    options = checked({"kafka.bootstrap.servers": uneven.bootstrap_servers, "subscribe": "t"})
    ranges = [OffsetRange("t", partition, 0, COUNT) for partition in range(2)]
    learned = {}
    with connected(options.client, group_id_prefix="g") as client:
        answers = [
            record_bytes(options, client, ranges, learned, at_s).means for at_s in (0.0, 1.0, AGAIN_S, 2 * AGAIN_S - 1)
        ]
    assert answers == [{}, {}, *[{TopicPartition("t", 0): 500.0, TopicPartition("t", 1): 500.0}] * 2]
    assert looks == [[0, 1], [0, 1]]


def test_a_look_leaves_the_consumer_as_it_was(uneven):
    """A stream's consumer goes on to be asked for offsets, and must not fetch meanwhile."""
    options = checked({"kafka.bootstrap.servers": uneven.bootstrap_servers, "subscribe": "t"})
    with connected(options.client, group_id_prefix="g", reads_samples=True) as client:
        found = sampling.sampled(client, [OffsetRange("t", partition, 0, COUNT) for partition in range(2)])
        assert len(found) == 2
        assert client.consumer.assignment() == []
        assert client.consumer.consume(1, 0.2) == []


def test_packed_records_weigh_what_they_unpack_to(topic_name, broker):
    make_topic(broker, topic_name, 2)
    for partition, codec in enumerate(("none", "lz4")):
        producer = Producer({"bootstrap.servers": broker, "compression.type": codec})
        for _ in range(3 * ENOUGH):
            producer.produce(topic_name, bytes(1000), b"key", partition)
        assert producer.flush(WAIT_S) == 0
    options = checked({"kafka.bootstrap.servers": broker, "subscribe": topic_name})
    with connected(options.client, group_id_prefix="g", reads_samples=True) as client:
        found = sampling.sampled(client, [OffsetRange(topic_name, partition, 0, 3 * ENOUGH) for partition in range(2)])
    assert {density.mean for density in found.values()} == {1003 + RECORD_BYTES}


def test_a_large_partition_is_looked_at_in_several_parts():
    sizes = [50_000, *[5_000] * 10]
    assert sampling.looks([OffsetRange("t", number, 0, size) for number, size in enumerate(sizes)]) == [8, *[1] * 10]
    assert sampling.looks([OffsetRange("t", 0, 0, 500)]) == [1]


def test_what_is_empty_is_known_as_far_as_the_next_record_shows_it():
    """Of 8 parts of 1,000 offsets the first three and a half are empty, and so is all behind 5,400."""
    look = sampling._Look.of(OffsetRange("t", 0, 0, 8_000), 8)
    assert look.position == 500
    assert not look.add(3_400, 90), "the part around 3,500 is to be looked at from there"
    assert look.position == 3_500
    for offset in range(3_500, 3_500 + ENOUGH):
        assert look.add(offset, 90) == (offset < 3_500 + ENOUGH - 1)
    assert look.position == 4_500
    for offset in range(4_500, 4_500 + ENOUGH):
        look.add(offset, 90)
    assert look.position == 5_500
    look.ends(with_all_seen=True)
    assert look.position is None
    assert not look.add(7_000, 90), "no more is looked at"
    weight = 90 + RECORD_BYTES
    assert look.density.edges == (0, 1_000, 2_000, 3_000, 3_400, 4_000, 5_000, 6_000, 7_000, 8_000)
    assert look.density.weights == (0, 0, 0, 0, weight, weight, 0, 0, 0)


def test_what_was_not_seen_in_time_counts_as_what_was():
    look = sampling._Look.of(OffsetRange("t", 0, 0, 4_000), 4)
    for offset in range(500, 500 + ENOUGH):
        look.add(offset, 100)
    look.ends(with_all_seen=False)
    assert look.density.weights == (100 + RECORD_BYTES,) * 4


def test_a_look_that_fails_leaves_nothing_assigned():
    consumer, noted = Mock(), []
    problem = confluent_kafka.KafkaError(confluent_kafka.KafkaError._STATE)
    consumer.consume.side_effect = confluent_kafka.KafkaException(problem)
    client = SimpleNamespace(consumer=consumer, note=noted.append)
    assert sampling.sampled(client, [OffsetRange("t", 0, 0, 10)]) == {}
    assert noted == [problem]
    assert [call[0] for call in consumer.method_calls] == ["assign", "consume", "unassign"]


class _Message:
    """A record of ten bytes without a key."""

    def __init__(self, partition, offset):
        self.topic, self.partition, self.offset = lambda: "t", lambda: partition, lambda: offset
        self.error = self.key = lambda: None

    def __len__(self):
        return 10


def test_what_is_known_of_a_partition_ends_its_fetches():
    """Its further records would come in place of the other partition's."""
    consumer = Mock()
    consumer.consume.side_effect = [[_Message(partition, 500 + at) for at in range(ENOUGH)] for partition in (1, 0)]
    found = sampling.sampled(
        SimpleNamespace(consumer=consumer), [OffsetRange("t", partition, 0, 1_000) for partition in range(2)]
    )
    assert [density.mean for density in found.values()] == [10 + RECORD_BYTES] * 2
    assert [call[0] for call in consumer.method_calls] == [
        "assign",
        "consume",
        "incremental_unassign",
        "consume",
        "unassign",
    ]
    assert consumer.incremental_unassign.call_args.args == ([confluent_kafka.TopicPartition("t", 1)],)
