"""Batches in another codec or with the broker's time, read by aiokafka, which has all codecs."""

from __future__ import annotations

import pytest
from aiokafka.record.memory_records import MemoryRecords
from kafka.record.util import calc_crc32c
from record_batches import batch

from loadwise.protocol import recompression
from loadwise.protocol.batches import HEADER_BYTES, read_header
from loadwise.protocol.errors import MissingCodecError
from loadwise.protocol.recompression import (
    CODECS,
    recompressed,
    with_append_time,
    with_crc,
    without_append_time,
)

VALUES = [bytes([65 + number]) * 9_000 for number in range(8)]  # snappy takes 32 KiB in a block


def read(data: bytes) -> list[tuple[int, int, bytes]]:
    found = MemoryRecords(data).next_batch()
    assert found.validate_crc()
    return [(record.offset, record.timestamp, record.value) for record in found]


@pytest.mark.parametrize("level", [None, 1])
@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("name", CODECS)
def test_the_records_stay_the_same_in_every_codec(name: str, before: int, level: int | None) -> None:
    data = batch(VALUES, compression=before, producer=(77, 3, 40))
    header = read_header(data)
    assert header is not None
    packed = with_crc(recompressed(data, header, CODECS[name], level), calc_crc32c)
    assert read(packed) == read(data)
    new = read_header(packed)
    assert new is not None
    assert (new.compression, new.size_bytes) == (CODECS[name], len(packed))
    assert (new.producer_id, new.producer_epoch, new.base_sequence) == (77, 3, 40)
    assert (len(packed) < len(b"".join(VALUES))) == (name != "uncompressed")
    if name == "lz4":  # aiokafka reads any frame, Java only one whose blocks are independent: bit 5 of its flags
        assert packed[HEADER_BYTES + 4] & 0x20


def test_the_brokers_time_comes_and_goes() -> None:
    data = batch([b"a", b"b"], timestamp=1000)
    header = read_header(data)
    assert header is not None
    stamped = with_crc(with_append_time(data, header, 5_000_000), calc_crc32c)
    assert read(stamped) == [(0, 5_000_000, b"a"), (1, 5_000_000, b"b")]
    header = read_header(stamped)
    assert header is not None
    assert header.has_append_time
    back = read_header(with_crc(without_append_time(stamped, header), calc_crc32c))
    assert back is not None
    assert (back.has_append_time, back.first_timestamp, back.record_count) == (False, 1000, 2)


def test_a_codec_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recompression, "cramjam", None)
    data = batch([b"a"])
    header = read_header(data)
    assert header is not None
    assert recompressed(data, header, CODECS["uncompressed"], None) == data
    with pytest.raises(MissingCodecError, match="pip install cramjam"):
        recompressed(data, header, CODECS["gzip"], None)
