"""What each task reads, in bytes: of records that differ much, packed, in transactions, and where offsets are gone."""

from __future__ import annotations

import random
import time

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

import pyarrow.compute as pc
from confluent_kafka import Producer
from topics import WAIT_S, make_topic

from loadwise.spark_source.planning.query import checked, planned_by
from loadwise.spark_source.reading.arrow_batches import full_schema
from loadwise.spark_source.reading.tasks import read_task

SMALL, LARGE = 20, 5_000
COUNT = 3_000
"""Records of each size, unless a test tells another number."""
EVEN = 1.10


def write(broker, topic, partition, sizes, *, codec="none", key=None, transactions=()):
    """Records of these sizes; ``transactions`` has for each how many of them, and whether they are committed."""
    # Without idempotence, a batch that a busy broker refuses at first would come after later ones.
    settings = {"bootstrap.servers": broker, "compression.type": codec, "enable.idempotence": True}
    settings |= {"batch.num.messages": 500, "linger.ms": 5}
    if transactions:
        settings["transactional.id"] = f"{topic}-{partition}"
    producer = Producer(settings)
    bytes_of = random.Random(partition).randbytes
    left = iter(sizes)
    if transactions:
        producer.init_transactions(WAIT_S)
    for count, committed in transactions or [(len(sizes), True)]:
        if transactions:
            producer.begin_transaction()
        for _, size in zip(range(count), left, strict=False):
            # Half of it packs well.
            value = bytes_of(size // 2) + bytes(size - size // 2)
            while True:
                try:
                    producer.produce(topic, value, key, partition)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(WAIT_S) == 0
        if transactions:
            (producer.commit_transaction if committed else producer.abort_transaction)(WAIT_S)


def read(given):
    """Bytes of values, and records, of each task of a query with these options."""
    options = checked(given)
    found = []
    for task in planned_by(options).tasks:
        batches = list(read_task(task, options, full_schema(include_headers=False)))
        sizes = [pc.sum(pc.binary_length(batch["value"])).as_py() for batch in batches]
        found.append((sum(sizes), sum(batch.num_rows for batch in batches)))
    return found


def unevenness(given, tasks=4, **more):
    """The most bytes that a task reads, by the mean of all."""
    found = [size for size, _ in read(given | {"numTasks": str(tasks)} | more)]
    return max(found) * len(found) / sum(found)


@pytest.fixture
def query(broker, topic_name):
    make_topic(broker, topic_name, 2)
    return {"kafka.bootstrap.servers": broker, "subscribe": topic_name}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_large_records_beside_small_ones(broker, topic_name, query, codec):
    for partition, size in enumerate((SMALL, LARGE)):
        write(broker, topic_name, partition, [size] * COUNT, codec=codec)
    assert unevenness(query) <= EVEN
    assert unevenness(query, loadBy="records") > 1.9


def test_transactions_of_few_records_and_their_markers(broker, topic_name, query):
    """Every third offset of the one partition is a marker, and of the other next to none."""
    write(broker, topic_name, 0, [LARGE] * 600, transactions=[(2, True)] * 300)
    write(broker, topic_name, 1, [LARGE] * 600, transactions=[(600, True)])
    assert unevenness(query, loadBy="bytes") <= EVEN


def test_a_partition_whose_records_have_grown(broker, topic_name, query):
    write(broker, topic_name, 0, [SMALL] * COUNT + [LARGE] * COUNT)
    write(broker, topic_name, 1, [LARGE] * COUNT)
    assert unevenness(query) <= EVEN


def test_a_partition_of_which_a_part_was_never_committed(broker, topic_name, query):
    """To one who reads committed records only, its first half is empty. So is what compaction leaves."""
    write(broker, topic_name, 0, [LARGE] * 2 * COUNT, transactions=[(COUNT, False), (COUNT, True)])
    write(broker, topic_name, 1, [LARGE] * COUNT)
    assert unevenness(query, **{"kafka.isolation.level": "read_committed"}) <= EVEN


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_a_compacted_partition(apache_kafka, topic_name):
    """Of what was cleaned one record in a hundred is left, and of the rest all."""
    eager = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"}
    make_topic(apache_kafka, topic_name, 1, eager | {"min.compaction.lag.ms": "0"})
    given = {"kafka.bootstrap.servers": apache_kafka, "subscribe": topic_name}
    write(apache_kafka, topic_name, 0, [LARGE] * 2 * COUNT, key=b"key")
    deadline = time.monotonic() + 240
    while sum(records for _, records in read(given | {"numTasks": "1"})) > COUNT:
        assert time.monotonic() < deadline
        time.sleep(1.1)  # a segment is closed by a record that comes a segment.ms after its first
        write(apache_kafka, topic_name, 0, [SMALL], key=b"key")
    producer = Producer({"bootstrap.servers": apache_kafka})
    for number in range(COUNT):
        producer.produce(topic_name, bytes(LARGE), str(number).encode(), 0)
    assert producer.flush(WAIT_S) == 0
    assert unevenness(given) <= EVEN
