"""Offsets and timestamps of records in batches that kafka-python wrote, and in batches that nobody should write."""

from __future__ import annotations

import contextlib
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords
from record_batches import batch

from loadwise.protocol import record_times as module
from loadwise.protocol.batches import HEADER_BYTES, placed
from loadwise.protocol.errors import MalformedBytesError, MissingCodecError
from loadwise.protocol.record_times import record_times


@given(
    values=st.lists(st.binary(max_size=300), min_size=1, max_size=20),
    timestamp=st.integers(0, 2**42),
    base=st.integers(0, 2**40),
    compression=st.sampled_from([0, 1]),
)
def test_times_are_those_that_kafka_python_reads(
    values: list[bytes], timestamp: int, base: int, compression: int
) -> None:
    data = placed(batch(values, timestamp=timestamp, compression=compression), base, 0)
    read = [(record.offset, record.timestamp) for unpacked in MemoryRecords(data) for record in unpacked]
    assert [tuple(each) for each in record_times(data)] == read


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


def with_records(records: bytes, codec: int) -> bytes:
    head = bytearray(batch([b"x"])[:HEADER_BYTES])
    head[8:12] = (HEADER_BYTES - 12 + len(records)).to_bytes(4, "big")
    head[22] = codec
    return bytes(head) + records


@pytest.mark.parametrize("codec", [2, 3, 4, 7])
def test_a_codec_that_is_not_there_is_named(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("has_snappy", "has_lz4", "has_zstd"):
        monkeypatch.setattr(module.codecs, name, lambda: False)
    with pytest.raises(MissingCodecError, match="pip install" if codec < 5 else "codec 7"):
        list(record_times(with_records(b"anything", codec)))


def test_a_batch_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNPACKED_BYTES", 10_000)
    with pytest.raises(MalformedBytesError, match="more than 10,000"):
        list(record_times(with_records(gzip.compress(bytes(10_000_000)), 1)))
    with pytest.raises(MalformedBytesError, match="ends early"):
        list(record_times(with_records(gzip.compress(bytes(9_000))[:-12], 1)))
