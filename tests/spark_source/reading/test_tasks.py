"""How a task reads its ranges from a live broker: batches, ends, losses, and never hanging; no Spark in it."""

from __future__ import annotations

import re
import time
import uuid

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.record.util import calc_crc32c
from own_log import own_log
from resolved_ranges import resolved
from topics import WAIT_S, make_topic

from loadwise.coordinator import Coordinator
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.spark_source.errors import DataLossError, ReadError, ReadTimeoutError
from loadwise.spark_source.options import client_config
from loadwise.spark_source.options import query as parsing
from loadwise.spark_source.options.query import parse
from loadwise.spark_source.reading import message_reader, position, tasks
from loadwise.spark_source.reading.arrow_batches import full_schema
from loadwise.spark_source.task import OffsetRange, Task


@pytest.fixture(params=["batches", "messages"], autouse=True)
def which(request, monkeypatch):
    """Both readers pass every test."""
    monkeypatch.setattr(parsing, "DEFAULT_READER", request.param)
    return request.param


def batches(given, *ranges):
    parsed = parse(given)
    task = Task("slot-0", tuple(OffsetRange(*item) for item in ranges), 0.0)
    yield from tasks.read_task(task, parsed, full_schema(include_headers=parsed.include_headers))


def places(given, *ranges):
    found = []
    for batch in batches(given, *ranges):
        found += zip(
            batch["topic"].to_pylist(), batch["partition"].to_pylist(), batch["offset"].to_pylist(), strict=True
        )
    return found


def test_what_only_librdkafka_reads_it_takes_over_with_one_warning(topic, monkeypatch, caplog, which):
    """A batch in the format from before Kafka 0.11, between two others; librdkafka is not given it, but the records."""
    topic = topic([5, 4])
    topic.write([5])
    topic.write([5])
    read = PartitionLog.read
    seen = []

    def old(self, offset, max_bytes, **more):
        whole = bytearray(read(self, offset, max_bytes, **more))
        if offset == 5 and not seen and which == "batches":
            seen.append(offset)
            whole[16] = 1
        return bytes(whole)

    monkeypatch.setattr(PartitionLog, "read", old)
    given = topic.options(kafka__max__partition__fetch__bytes=100)
    wanted = [(topic.name, 0, 0, 15), (topic.name, 1, 0, 4)]
    assert places(given, *wanted) == [(topic.name, part, at) for part, size in ((0, 15), (1, 4)) for at in range(size)]
    warnings = [record.getMessage() for record in caplog.records if "reader=messages" in record.getMessage()]
    assert len(warnings) == (which == "batches")
    seen.clear()
    if which == "batches":
        with pytest.raises(ReadError, match=r"at offset 5 .* message format 1, .*reader=messages"):
            places({**given, "reader": "batches"}, *wanted)


def test_ranges_are_read_one_after_the_other_and_no_further(topic):
    topic = topic([50, 50])
    found = places(topic.options(), (topic.name, 0, 5, 9), (topic.name, 0, 20, 50), (topic.name, 1, 0, 3))
    assert found == [
        *((topic.name, 0, offset) for offset in [*range(5, 9), *range(20, 50)]),
        *((topic.name, 1, offset) for offset in range(3)),
    ]


def test_a_task_without_ranges_asks_nobody():
    assert places({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}) == []


def test_a_batch_holds_no_more_records_than_wanted(topic):
    topic = topic([25])
    sizes = [batch.num_rows for batch in batches(topic.options(kafka__max__poll__records=10), (topic.name, 0, 0, 25))]
    assert sizes == [10, 10, 5]


def test_a_batch_holds_no_more_bytes_than_wanted(topic, monkeypatch):
    """And few records more than that: how many is learnt from those before."""
    monkeypatch.setattr(position, "BATCH_BYTES", 100_000)
    monkeypatch.setattr(message_reader, "FIRST_FETCH", 5)
    topic = topic([0])
    producer = Producer({"bootstrap.servers": topic.bootstrap_servers})
    for _ in range(100):
        producer.produce(topic.name, b"x" * 10_000, partition=0)
    assert producer.flush(WAIT_S) == 0
    sizes = [batch.nbytes for batch in batches(topic.options(), (topic.name, 0, 0, 100))]
    assert sum(sizes) >= 1_000_000
    assert max(sizes) <= 150_000


def test_records_that_never_come_are_a_timeout_that_names_the_place_and_the_option(topic, monkeypatch):
    topic = topic([10])
    # One batch holds all that is there. Until it has come, the clock stands still: however slow the machine is.
    monkeypatch.setattr(position, "monotonic", lambda: 0.0)
    given = topic.options(kafkaConsumer__pollTimeoutMs=300, kafka__max__poll__records=6)
    found = batches(given, (topic.name, 0, 4, 20))
    assert next(found).num_rows == 6
    monkeypatch.setattr(position, "monotonic", time.monotonic)
    with pytest.raises(ReadTimeoutError) as failed:
        next(found)
    message = str(failed.value)
    assert message.startswith(f"no record of {topic.name}-0 at offset 10 (of {topic.name}-0[4, 20)) arrived for 300 ms")
    assert "kafkaConsumer.pollTimeoutMs" in message
    assert "\n" not in message


def test_a_broker_that_goes_away_is_a_timeout_too(topic_name, monkeypatch, caplog):
    with Coordinator({topic_name: 1}).in_thread() as coordinator:
        address = coordinator.bootstrap_servers
    given = {"kafka.bootstrap.servers": address, "subscribe": topic_name, "kafkaConsumer.pollTimeoutMs": "60000"}
    # The time is over once the client has logged its error, which the message then names.
    monkeypatch.setattr(position, "monotonic", lambda: time.monotonic() if own_log(caplog) else 0.0)
    with pytest.raises(ReadTimeoutError, match=f"{topic_name}-0 at offset 0 .*the client's last error: .*{address}"):
        places(given, (topic_name, 0, 0, 5))


def test_offsets_out_of_range(topic, caplog):
    topic = topic([10])
    wanted = [(topic.name, 0, 100, 110), (topic.name, 0, 8, 10)]
    with pytest.raises(DataLossError, match=f"^{topic.name}-0 at offset 100 .* is lost: .* set failOnDataLoss=false"):
        places(topic.options(), *wanted)
    caplog.clear()
    assert places(topic.options(failOnDataLoss="false"), *wanted) == [(topic.name, 0, 8), (topic.name, 0, 9)]
    assert [f"{topic.name}-0 at offset 100" in record.getMessage() for record in own_log(caplog)] == [True]


@pytest.mark.parametrize("gone", ["topic", "partition"])
def test_a_topic_or_partition_that_was_deleted(topic, caplog, monkeypatch, gone):
    monkeypatch.setitem(client_config.DEFAULTS, "topic.metadata.propagation.max.ms", "100")
    topic = topic([2])
    wanted = ("never-there" if gone == "topic" else topic.name, 7, 0, 5)
    with pytest.raises(DataLossError, match=f"^{wanted[0]}-7 at offset 0 .* is lost: "):
        places(topic.options(), wanted)
    caplog.clear()
    found = places(topic.options(failOnDataLoss="false"), wanted, (topic.name, 0, 0, 2))
    assert found == [(topic.name, 0, 0), (topic.name, 0, 1)]
    assert [record.getMessage().split(" ")[0] for record in caplog.records if record.name.endswith("position")] == [
        f"{wanted[0]}-7"
    ]


@pytest.mark.parametrize(
    ("change", "problem", "option"),
    [((70, None), "CRC", "kafka.check.crcs=false"), ((22, 7), "codec|compression", "startingOffsets")],
    ids=["corrupt", "unknown codec"],
)
def test_a_batch_that_cannot_be_read_is_named_with_the_option(topic, monkeypatch, change, problem, option):
    """The second of two batches is broken on the way: a byte of a record, or the codec in its attributes."""
    topic = topic([5])
    topic.write([5])
    read = PartitionLog.read
    at, value = change

    def broken(self, offset, max_bytes, **more):
        whole = bytearray(read(self, offset, max_bytes, **more))
        second = 12 + int.from_bytes(whole[8:12], "big")
        if len(whole) > second:
            whole[second + at] = whole[second + at] ^ 0xFF if value is None else value
            if value is not None:
                size = int.from_bytes(whole[second + 8 : second + 12], "big")
                checked = bytes(whole[second + 21 : second + 12 + size])
                whole[second + 17 : second + 21] = calc_crc32c(checked).to_bytes(4, "big")
        return bytes(whole)

    monkeypatch.setattr(PartitionLog, "read", broken)
    found = batches(topic.options(kafka__max__poll__records=5), (topic.name, 0, 0, 10))
    assert next(found)["offset"].to_pylist() == [0, 1, 2, 3, 4]
    with pytest.raises(ReadError) as failed:
        next(found)
    text = str(failed.value)
    assert text.startswith(f"cannot read {topic.name}-0 at offset 5 (of {topic.name}-0[0, 10)): ")
    assert re.search(problem, text, re.IGNORECASE)
    assert option in text
    if option == "startingOffsets":
        assert re.search(
            r"set reader=(batches|messages), or use Spark's format\('kafka'\).*start a new query after", text
        )
    assert "\n" not in text


def served_packed(monkeypatch, records, size):
    """Let brokers answer with one batch of zeros, so many records of so many bytes, packed by zstd to very little."""
    builder = DefaultRecordBatchBuilder(2, 4, False, -1, 0, 0, 1 << 30)
    for number in range(records):
        builder.append(number, 1, None, bytes(size), [])
    packed = bytes(builder.build())

    def zeros(self, offset, max_bytes, **more):
        return packed if offset < records else b""

    monkeypatch.setattr(PartitionLog, "read", zeros)


def test_a_batch_that_unpacks_to_more_than_librdkafkas_own_limit_is_read(topic, monkeypatch):
    """A few kilobytes of zeros, packed by zstd, are 140 MB; Spark's Kafka source reads them."""
    topic = topic([140])
    served_packed(monkeypatch, 140, 1 << 20)
    assert places(topic.options(), (topic.name, 0, 0, 140)) == [(topic.name, 0, offset) for offset in range(140)]


@pytest.mark.parametrize("which", ["messages"], indirect=True)
def test_who_follows_the_remedy_for_a_batch_that_librdkafka_cannot_unpack_loses_nothing(topic, monkeypatch):
    topic = topic([40])
    served_packed(monkeypatch, 40, 1 << 17)
    monkeypatch.setattr(message_reader, "LARGEST_BATCH", {"receive.message.max.bytes": "2000000"})
    given, wanted = topic.options(kafka__fetch__max__bytes=1_000_000), (topic.name, 0, 0, 40)
    with pytest.raises(ReadError, match=r"cannot decompress the batch there: .*: set (reader=batches), or") as failed:
        places(given, wanted)
    assert str(failed.value).index("reader=batches") < str(failed.value).index("startingOffsets")
    assert places(given | {"reader": "batches"}, wanted) == [(topic.name, 0, offset) for offset in range(40)]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records(topic, codec):
    topic = topic([0])
    topic.write([300], codec=codec)
    (batch,) = batches(topic.options(), (topic.name, 0, 7, 300))
    assert batch["offset"].to_pylist() == list(range(7, 300))
    assert list(zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)) == [
        (key, value) for key, value, _ in topic.written[7:]
    ]


@pytest.mark.kafka
def test_gaps_at_the_end_of_a_range_end_it(apache_kafka):
    """An aborted transaction and the markers of both are offsets that are never delivered to read_committed."""
    name = f"gaps-{uuid.uuid4()}"
    admin = AdminClient({"bootstrap.servers": apache_kafka})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(WAIT_S)
    producer = Producer({"bootstrap.servers": apache_kafka, "transactional.id": name})
    producer.init_transactions()
    for finish in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for _ in range(10):
            producer.produce(name, b"v", partition=0)
        producer.flush()
        finish()
    given = {"kafka.bootstrap.servers": apache_kafka, "subscribe": name, "kafka.isolation.level": "read_committed"}
    assert places(given, (name, 0, 0, 22)) == [(name, 0, offset) for offset in range(10)]
    assert places(given, (name, 0, 10, 22)) == []
    assert places(given, (name, 0, 0, 15)) == [(name, 0, offset) for offset in range(10)]
    dirty = given | {"kafka.isolation.level": "read_uncommitted"}
    assert places(dirty, (name, 0, 0, 11)) == [(name, 0, offset) for offset in range(10)]
    assert places(dirty, (name, 0, 0, 22)) == [(name, 0, offset) for offset in [*range(10), *range(11, 21)]]


@pytest.mark.kafka
def test_a_query_ends_before_an_open_transaction(apache_kafka):
    """What is not yet committed is not yet there for read_committed; no task waits on it."""
    name = f"open-{uuid.uuid4()}"
    make_topic(apache_kafka, name, 1)
    producer = Producer({"bootstrap.servers": apache_kafka, "transactional.id": name})
    producer.init_transactions()
    given = {"kafka.bootstrap.servers": apache_kafka, "subscribe": name}
    committed = given | {"kafka.isolation.level": "read_committed"}
    producer.begin_transaction()
    producer.produce(name, b"v", partition=0)
    producer.commit_transaction()
    producer.begin_transaction()
    producer.produce(name, b"v", partition=0)
    assert producer.flush(WAIT_S) == 0
    assert [(item.start, item.end) for item in resolved(parse(committed))] == [(0, 2)]
    assert [(item.start, item.end) for item in resolved(parse(given))] == [(0, 3)]
    assert places(committed, (name, 0, 0, 2)) == [(name, 0, 0)]
    producer.abort_transaction()


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_gaps_of_compaction_are_read_over(apache_kafka):
    """All records have one key, so that the cleaner leaves the newest and what is in the active segment."""
    name = f"compacted-{uuid.uuid4()}"
    admin = AdminClient({"bootstrap.servers": apache_kafka})
    eager = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.ms": "100"}
    admin.create_topics([NewTopic(name, 1, 1, config=eager | {"min.compaction.lag.ms": "0"})])[name].result(WAIT_S)
    producer = Producer({"bootstrap.servers": apache_kafka})
    given = {"kafka.bootstrap.servers": apache_kafka, "subscribe": name}
    written = 0
    deadline = time.monotonic() + 240
    found = list(range(10))
    # A segment is closed when a record comes after segment.ms; the cleaner comes by every 15 s.
    while len(found) == written or written < 20:
        for _ in range(10):
            producer.produce(name, str(written).encode(), b"key", 0)
            written += 1
        assert producer.flush(WAIT_S) == 0
        found = [offset for _, _, offset in places(given, (name, 0, 0, written))]
        assert time.monotonic() < deadline
        time.sleep(1)
    assert 0 not in found
    assert places(given, (name, 0, 0, 1)) == []
    assert found[-1] == written - 1


@pytest.mark.kafka
def test_deleted_records_are_a_loss_and_the_rest_is_read(apache_kafka):
    name = f"deleted-{uuid.uuid4()}"
    admin = AdminClient({"bootstrap.servers": apache_kafka})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(WAIT_S)
    producer = Producer({"bootstrap.servers": apache_kafka})
    for _ in range(20):
        producer.produce(name, b"v", partition=0)
    assert producer.flush(WAIT_S) == 0
    (deleted,) = admin.delete_records([Place(name, 0, 12)]).values()
    deleted.result(WAIT_S)
    given = {"kafka.bootstrap.servers": apache_kafka, "subscribe": name}
    with pytest.raises(DataLossError, match=f"^{name}-0 at offset 5 "):
        places(given, (name, 0, 5, 20))
    tolerant = given | {"failOnDataLoss": "false"}
    assert places(tolerant, (name, 0, 5, 20)) == [(name, 0, offset) for offset in range(12, 20)]
    assert places(tolerant, (name, 0, 5, 12)) == []
