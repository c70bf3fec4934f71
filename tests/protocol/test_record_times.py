"""Offsets and timestamps of records in batches that kafka-python wrote, and in batches that nobody should write."""

from __future__ import annotations

import contextlib
import gzip
import struct
from collections.abc import Callable

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords, MemoryRecordsBuilder
from record_batches import batch

from loadwise.protocol import unpacking
from loadwise.protocol.batches import HEADER_BYTES, placed, read_header
from loadwise.protocol.errors import MalformedBytesError, MissingCodecError
from loadwise.protocol.record_times import ReadingBudget, largest_timestamp, record_times

keys = st.none() | st.just(b"") | st.binary(min_size=1, max_size=10)
records = st.lists(st.tuples(st.integers(0, 500), keys, st.binary(max_size=300)), min_size=1, max_size=20)


@given(
    records=records, timestamp=st.integers(0, 2**42), base=st.integers(0, 2**40), compression=st.sampled_from([0, 1])
)
def test_times_are_those_that_kafka_python_reads(
    records: list[tuple[int, bytes | None, bytes]], timestamp: int, base: int, compression: int
) -> None:
    builder = MemoryRecordsBuilder(magic=2, compression_type=compression, batch_size=1_000_000)
    for later_ms, key, value in records:
        builder.append(timestamp=timestamp + later_ms, key=key, value=value)
    builder.close()
    data = placed(bytes(builder.buffer()), base, 0)
    read = [
        (record.offset, record.timestamp, record.key is not None)
        for unpacked in MemoryRecords(data)
        for record in unpacked
    ]
    assert [tuple(each) for each in record_times(data)] == read
    header = read_header(data)
    assert header is not None
    assert largest_timestamp(data, header) == max(time_ms for _, time_ms, _ in read)


@pytest.mark.parametrize("size_bytes", [0, 56, 57, 58, 300, 10_000])
def test_the_largest_timestamp_is_found_behind_records_of_any_size(size_bytes: int) -> None:
    """From 64 bytes on, the length of a record takes two."""
    data = batch([bytes(size_bytes)] * 3)
    header = read_header(data)
    assert header is not None
    assert largest_timestamp(data, header) == header.max_timestamp == 1002


@given(values=st.lists(st.binary(max_size=30), min_size=1, max_size=5), data=st.data())
def test_bytes_that_are_no_records_are_refused_or_read(values: list[bytes], data: st.DataObject) -> None:
    whole = batch(values, compression=data.draw(st.sampled_from([0, 1])))
    position = data.draw(st.integers(HEADER_BYTES, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[position] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MalformedBytesError):
        assert len(list(record_times(bytes(damaged)))) == len(values)


@pytest.mark.parametrize("length", [0, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 3])
def test_a_batch_that_ends_early_is_refused(length: int) -> None:
    with pytest.raises(MalformedBytesError):
        list(record_times(batch([b"a", b"b"])[:length]))


@pytest.mark.parametrize(("length", "told"), [(b"\x01", "-1 bytes"), (b"\x7e", "63 bytes")])
def test_a_record_that_does_not_fit_into_its_batch_is_refused(length: bytes, told: str) -> None:
    data = bytearray(batch([b"a" * 20]))
    data[HEADER_BYTES : HEADER_BYTES + 1] = length  # zigzag
    with pytest.raises(MalformedBytesError, match=f"a record of {told} does not fit"):
        list(record_times(bytes(data)))


def pack_as_xerial(data: bytes) -> bytes:
    """As Java packs snappy: a header, then blocks behind their sizes."""
    blocks = [bytes(cramjam.snappy.compress_raw(data[start : start + 50])) for start in range(0, len(data), 50)]
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)


PACKERS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (1, gzip.compress),
    "snappy": (2, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "snappy as Java": (2, pack_as_xerial),
    "lz4": (3, lambda data: bytes(cramjam.lz4.compress(data))),
    "zstd": (4, lambda data: bytes(cramjam.zstd.compress(data))),
}


@pytest.mark.parametrize("name", PACKERS)
def test_every_codec_is_unpacked_and_none_beyond_the_limit(name: str) -> None:
    codec, pack = PACKERS[name]
    plain = batch([b"a" * 100, b"b" * 100, b"c" * 100])
    expected = list(record_times(plain))
    packed = with_records(plain, pack(plain[HEADER_BYTES:]), codec)
    assert list(record_times(packed)) == expected
    for length in range(HEADER_BYTES + 1, len(packed), 7):
        with pytest.raises(MalformedBytesError):
            list(record_times(packed[:length]))
    size_bytes = len(plain) - HEADER_BYTES
    for bytes_left in (0, 200, size_bytes - 1):
        with pytest.raises(MalformedBytesError):
            list(record_times(packed, ReadingBudget(bytes_left=bytes_left)))
    budget = ReadingBudget(bytes_left=size_bytes, records_left=5)
    assert list(record_times(packed, budget)) == expected
    assert budget == ReadingBudget(bytes_left=0, records_left=2)
    with pytest.raises(MalformedBytesError, match="more records"):
        list(record_times(plain, budget))


def with_records(plain: bytes, records: bytes, codec: int) -> bytes:
    """The batch with other bytes behind its header."""
    head = bytearray(plain[:HEADER_BYTES])
    head[8:12] = (HEADER_BYTES - 12 + len(records)).to_bytes(4, "big")
    head[22] = codec
    return bytes(head) + records


def test_a_codec_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = with_records(batch([b"x"]), b"anything", 4)
    with pytest.raises(MalformedBytesError, match="codec 7"):
        list(record_times(with_records(batch([b"x"]), b"anything", 7)))
    monkeypatch.setattr(unpacking, "cramjam", None)
    with pytest.raises(MissingCodecError, match="pip install cramjam"):
        list(record_times(packed))
    assert len(list(record_times(batch([b"x"])))) == 1
