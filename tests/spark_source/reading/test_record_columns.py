"""Record batches that kafka-python and aiokafka wrote, as columns: each row is what those two read."""

from __future__ import annotations

import contextlib
from itertools import accumulate
from typing import NamedTuple

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

import numpy as np
import pyarrow as pa
from aiokafka.record import default_records as aiokafka_records
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record import MemoryRecords, default_records
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.util import encode_varint

from loadwise.protocol import unpacking
from loadwise.protocol.batches import checksummed, end_of_batches, placed
from loadwise.spark_source.errors import BatchError
from loadwise.spark_source.reading import record_sets
from loadwise.spark_source.reading.arrow_batches import BatchBuilder, full_schema
from loadwise.spark_source.reading.record_columns import Records, _starts, _zigzags

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
APPEND_TIME, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20


class Row(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: list[tuple[str, bytes | None]]
    gap: int = 0
    """How many offsets before it hold no record."""


def written(rows, base=0, *, codec=0, writer=aiokafka_records, attributes=0, producer=-1, cut=0):
    """One batch. ``cut``: how many offsets behind the last hold no record."""
    make = writer.DefaultRecordBatchBuilder
    builder = make(2, codec, False, producer, 0, 0, 1 << 30)
    offset = -1
    for row in rows:
        offset += row.gap + 1
        assert builder.append(offset, row.timestamp, row.key, row.value, row.headers) is not None
    data = bytearray(builder.build())
    last = int.from_bytes(data[23:27], "big", signed=True)
    return patched(data, base, attributes=data[22] | attributes, last_offset_delta=max(last, offset) + cut)


def patched(data, base, *, attributes, last_offset_delta):
    """The batch at its place, with other attributes."""
    data[21:23] = attributes.to_bytes(2, "big")
    data[23:27] = last_offset_delta.to_bytes(4, "big")
    data[17:21] = crc32c(checksummed(bytes(data))).to_bytes(4, "big")
    return placed(bytes(data), base, 0)


def record_set(*arguments, **how):
    """The first set, which is all where little is unpacked."""
    return next(record_sets.record_sets(*arguments, **how))


def read(data, start=0, end=1 << 62, *, most_records=10_000, most_bytes=1 << 24, **how):
    """The rows as Spark would get them, batch by batch; raises the problem that ends them."""
    found = record_set(data, start, end, **({"check_crcs": True} | how))
    records = Records(found)
    builder = BatchBuilder(full_schema(include_headers=True))
    batches = []
    for rows in records.slices(most_records=most_records, most_bytes=most_bytes):
        batch = builder.batch("t", 3, rows.stop - rows.start, records.columns(builder.wanted, rows))
        batch.validate(full=True)
        batches.append(batch)
    if found.problem is not None:
        raise found.problem
    return batches


def decoded(data, **how):
    return Records(record_set(data, 0, 1 << 62, **how))


def rows_of(batches):
    return [row for batch in batches for row in batch.to_pylist()]


def expected(record):
    """A record of kafka-python's or aiokafka's as a row of ours."""
    micros = pa.scalar(record.timestamp * 1000, pa.timestamp("us", "UTC")).as_py()
    return {
        "key": record.key,
        "value": record.value,
        "topic": "t",
        "partition": 3,
        "offset": record.offset,
        "timestamp": micros,
        "timestampType": record.timestamp_type,
        "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
    }


binary = st.none() | st.binary(max_size=200) | st.integers(0, 20_000).map(bytes)
row = st.builds(
    Row,
    binary,
    binary,
    st.integers(0, 2**42),
    st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=90)), max_size=3),
    st.sampled_from([0, 0, 0, 1, 70]),
)
batch = st.tuples(
    st.lists(row, min_size=1, max_size=12), st.sampled_from([0, APPEND_TIME]), st.sampled_from([0, 0, 1, 9_000])
)


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=25)
@given(drawn=st.lists(batch, min_size=1, max_size=4), base=st.sampled_from([0, 7, 2**40]), data=st.data())
def test_rows_are_what_kafka_python_and_aiokafka_read(codec, drawn, base, data):
    writer = default_records if codec in ("none", "gzip") and data.draw(st.booleans()) else aiokafka_records
    batches = []
    at = base
    for rows, attributes, cut in drawn:
        batches.append(written(rows, at, codec=CODECS[codec], writer=writer, attributes=attributes, cut=cut))
        at += sum(row.gap + 1 for row in rows) + cut
    reader = aiokafka_records.DefaultRecordBatch
    records = [expected(record) for whole in batches for record in reader(bytearray(whole))]
    if codec in ("none", "gzip"):
        theirs = [expected(record) for unpacked in MemoryRecords(b"".join(batches)) for record in unpacked]
        assert theirs == records
    assert rows_of(read(b"".join(batches), base)) == records
    start, end = sorted(data.draw(st.tuples(*[st.integers(base, at + 3)] * 2)))
    most = data.draw(st.integers(1, 20))
    found = read(b"".join(batches), start, end, most_records=most)
    assert rows_of(found) == [record for record in records if start <= record["offset"] < end]
    assert all(1 <= part.num_rows <= most for part in found)


def test_where_the_next_fetch_goes_on():
    rows = [Row(b"k", b"v", 1, [])] * 3
    data = written(rows, 10, cut=4) + written(rows, 30)
    assert record_set(data, 0, 100, check_crcs=True).next_offset == 33
    assert record_set(data, 0, 25, check_crcs=True).next_offset == 25
    assert record_set(data, 0, 30, check_crcs=True).next_offset == 30
    assert record_set(data, 0, 15, check_crcs=True).next_offset == 17
    assert record_set(data[:-1], 0, 100, check_crcs=True).next_offset == 17
    assert record_set(data[:30], 5, 100, check_crcs=True).next_offset == 5
    assert record_set(b"", 5, 100, check_crcs=True).next_offset == 5


def test_no_more_is_unpacked_than_the_limit(monkeypatch):
    monkeypatch.setattr(record_sets, "MAX_UNPACKED_BYTES", 1_000)
    data = b"".join(written([Row(None, bytes(900), 1, [])], at, codec=4) for at in range(5))
    sets = list(record_sets.record_sets(data, 0, 100, check_crcs=True))
    assert [(found.start, found.next_offset, len(found.headers)) for found in sets] == [(0, 2, 2), (2, 4, 2), (4, 5, 1)]


@pytest.mark.parametrize("codec", [0, 4])
@settings(max_examples=25)
@given(runs=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 300)), min_size=1, max_size=5))
def test_rows_of_one_length_in_a_row_are_what_aiokafka_reads(codec, runs):
    """Such rows are not walked through. Their offsets still make some a byte longer than the others."""
    rows = [Row(b"k", bytes(size), number, []) for size, count in runs for number in range(count)]
    data = written(rows, 7, codec=codec)
    reader = aiokafka_records.DefaultRecordBatch
    assert rows_of(read(data)) == [expected(record) for record in reader(bytearray(data))]


def recounted(data, count):
    """The batch with another number of records in its header."""
    return data[:57] + count.to_bytes(4, "big", signed=True) + data[61:]


@pytest.mark.parametrize("lengths", [b"\x01", b"\x00", b"\x81\x80\x01", b"\xff\xff\xff\xff\x0f"], ids=repr)
@pytest.mark.parametrize("before", [0, 100])
def test_a_record_of_negative_length_is_malformed_and_nobody_goes_back_to_it(lengths, before):
    good = written([Row(None, b"value", 1, [])] * (before + 3))
    data = bytearray(good)
    at = 61 + int(_starts(good[61:], [before + 3], [len(good) - 61])[before])
    data[at : at + len(lengths)] = lengths
    for count in (before + 3, (1 << 31) - 1, -1):
        with pytest.raises(BatchError, match="malformed"):
            decoded(recounted(bytes(data), count), check_crcs=False)


def test_more_records_than_bytes_are_malformed():
    with pytest.raises(BatchError, match="malformed"):
        decoded(recounted(written([Row(None, b"value", 1, [])]), (1 << 31) - 1), check_crcs=False)


@pytest.mark.parametrize("moment", [(1 << 63) - 1, 9_223_372_036_854_776, -(1 << 62)])
def test_a_timestamp_that_spark_cannot_hold_is_refused_where_it_is_asked_for(moment):
    data = bytearray(written([Row(None, b"v", 1, [])]))
    data[27:35] = moment.to_bytes(8, "big", signed=True)  # of the batch; its record adds nothing to it
    records = decoded(bytes(data), check_crcs=False)
    builder = BatchBuilder(full_schema(include_headers=False))
    columns = records.columns(builder.wanted, slice(0, 1))
    assert columns["offset"].to_pylist() == [0]
    with pytest.raises(BatchError, match=f"timestamp {moment} ms"):
        builder.batch("t", 0, 1, columns)


@given(drawn=st.lists(st.integers(1, 5), max_size=5), cut=st.integers(0, 200))
def test_where_the_next_question_begins_the_headers_tell_as_the_records_do(drawn, cut):
    data = b"".join(written([Row(None, b"v", 1, [])] * count, at * 10) for at, count in enumerate(drawn))
    data = data[: max(0, len(data) - cut)]
    assert end_of_batches(data, 0) == record_set(data, 0, 1 << 62, check_crcs=False).next_offset


def test_slices_hold_no_more_bytes_than_wanted():
    data = written([Row(None, bytes(size), 1, []) for size in (400, 400, 400, 5_000, 100)])
    assert [part.num_rows for part in read(data, most_bytes=1_000)] == [2, 1, 1, 1]


@given(data=st.data())
def test_bytes_that_are_no_records_are_refused_or_read(data):
    whole = bytearray(
        written(data.draw(st.lists(row, min_size=1, max_size=5)), codec=data.draw(st.sampled_from([0, 4])))
    )
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(12, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BatchError):
        read(bytes(whole), check_crcs=False)


@pytest.mark.parametrize(
    ("row", "field", "longer"),
    [
        # The value of the first record takes what follows it; the second record would begin in the middle of it.
        (Row(None, b"value", 1, []), b"value", 1),
        (Row(b"key", None, 1, []), b"key", 30),
        (Row(None, None, 1, [("name", b"header")]), b"header", 1),
        (Row(None, None, 1, [("name", b"header")]), b"name", 30),
    ],
    ids=["value", "key", "header", "header name"],
)
def test_a_field_that_is_longer_than_its_record_is_refused(row, field, longer):
    data = bytearray(written([row] * 2))
    at = data.index(field) - 1
    assert data[at] == 2 * len(field)
    data[at] += 2 * longer
    with pytest.raises(BatchError, match="malformed"):
        # Headers are decoded only where somebody asks for them.
        (read if row.headers else decoded)(bytes(data), check_crcs=False)


@given(numbers=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30))
def test_numbers_of_variable_length_are_what_kafka_python_writes(numbers):
    data, places = bytearray(), []
    for number in numbers:
        places.append(len(data))
        encode_varint(number, data.append)
    places.append(len(data))
    found, ends = _zigzags(np.frombuffer(bytes(data), np.uint8), np.array(places[:-1], np.int64))
    assert (found.tolist(), ends.tolist()) == (numbers, places[1:])


@given(rows=st.lists(row, min_size=1, max_size=3), data=st.data())
def test_a_damaged_batch_fails_its_crc_and_those_before_are_read(rows, data):
    good, bad = written(rows, 0), bytearray(written(rows, 5_000))
    place = data.draw(st.integers(17, len(bad) - 1))
    bad[place] ^= data.draw(st.integers(1, 255))
    found = record_set(good + bytes(bad), 0, 10_000, check_crcs=True)
    assert len(Records(found).offset) == len(rows)
    assert found.problem is not None
    assert "kafka.check.crcs=false" in found.problem.remedy


def test_batches_in_old_formats_and_unknown_codecs_are_named():
    old = LegacyRecordBatchBuilder(magic=1, compression_type=0, batch_size=1_000)
    assert old.append(0, timestamp=1, key=None, value=b"v")
    with pytest.raises(BatchError, match=r"message format 1.*reader=messages"):
        read(bytes(old.build()))
    with pytest.raises(BatchError, match=r"codec 6.*startingOffsets"):
        read(written([Row(None, b"v", 1, [])], attributes=6))


def test_a_codec_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(unpacking, "cramjam", None)
    with pytest.raises(BatchError, match=r"pip install cramjam; .*reader=messages$"):
        read(written([Row(None, b"v", 1, [])] * 50, codec=4))


def test_header_names_that_are_no_text_are_read_as_java_reads_them():
    data = bytearray(written([Row(None, None, 1, [("ab", b"1")])]))
    at = data.index(b"ab")
    data[at] = 0xFF
    assert rows_of(read(bytes(data), check_crcs=False))[0]["headers"] == [{"key": "\ufffdb", "value": b"1"}]


@given(
    steps=st.lists(
        st.tuples(st.integers(1, 2), st.sampled_from(["data", "data", "commit", "abort", "plain"])),
        min_size=1,
        max_size=25,
    ),
    ended=st.sampled_from(["commit", "abort", None]),
    data=st.data(),
)
def test_aborted_transactions_and_markers_are_left_out(steps, ended, data):
    """Producers interleaved; a broker tells of each aborted transaction where it began, and sends none that is open."""
    steps += [(producer, ended) for producer in (1, 2) if ended]
    log, visible, aborted = [], [], []
    open_since: dict[int, tuple[int, list[int]]] = {}
    for offset, (producer, what) in enumerate(steps):
        value = Row(None, str(offset).encode(), 1, [])
        if what == "plain":
            log.append(written([value], offset, producer=producer))
            visible.append(offset)
        elif what == "data":
            log.append(written([value], offset, producer=producer, attributes=TRANSACTIONAL))
            open_since.setdefault(producer, (offset, []))[1].append(offset)
        else:
            marker = Row(b"\0\0\0\1" if what == "commit" else b"\0\0\0\0", bytes(6), 1, [])
            log.append(written([marker], offset, producer=producer, attributes=TRANSACTIONAL | CONTROL))
            first, offsets = open_since.pop(producer, (offset, []))
            if what == "commit":
                visible += offsets
            elif offsets:
                aborted.append((producer, first, offset))
    stable = min((first for first, _ in open_since.values()), default=len(steps))
    start = data.draw(st.integers(0, stable))
    # A broker tells of those that touch what it sends, in any order that their ends came in.
    told = [(producer, first) for producer, first, last in aborted if last >= start]
    fetched = b"".join(log[start:stable])
    found = rows_of(read(fetched, start, aborted=told))
    assert [row["offset"] for row in found] == sorted(offset for offset in visible if start <= offset < stable)
    dirty = rows_of(read(fetched, start))
    markers = {offset for offset, (_, what) in enumerate(steps) if what in ("commit", "abort")}
    assert [row["offset"] for row in dirty] == [at for at in range(start, stable) if at not in markers]


def test_the_order_of_offsets_is_kept_over_batches():
    sizes = [1, 128, 300]
    bases = [0, *accumulate(sizes)]
    data = b"".join(
        written([Row(b"k", b"v" * (n % 70), n, []) for n in range(size)], base)
        for size, base in zip(sizes, bases, strict=False)
    )
    assert [row["offset"] for row in rows_of(read(data))] == list(range(sum(sizes)))
