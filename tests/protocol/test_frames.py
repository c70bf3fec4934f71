from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.protocol.errors import FrameError
from loadwise.protocol.frames import FrameSplitter


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@given(bodies=st.lists(st.binary(max_size=40), max_size=8), data=st.data())
def test_frames_come_out_however_the_stream_is_cut(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(framed, bodies))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    splitter = FrameSplitter()
    frames = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        splitter.feed(stream[start:stop])
        frames += splitter.frames()
    assert frames == bodies
    assert splitter.buffered_bytes == 0


def test_a_frame_that_has_not_come_whole_is_kept() -> None:
    splitter = FrameSplitter()
    splitter.feed(framed(b"whole") + framed(b"cut off")[:-1])
    assert list(splitter.frames()) == [b"whole"]
    assert splitter.buffered_bytes == len(framed(b"cut off")) - 1
    splitter.feed(b"f")
    assert list(splitter.frames()) == [b"cut off"]


@pytest.mark.parametrize(
    ("size", "complaint"),
    [
        (-1, "-1"),
        (-(2**31), "negative"),
        (101, "101 bytes; the limit is 100"),
        (int.from_bytes(b"\x16\x03\x01\x02"), r"369,295,618 bytes \(a TLS client\?\); the limit is 100"),
    ],
)
def test_a_bad_size_is_refused_before_its_bytes_come(size: int, complaint: str) -> None:
    splitter = FrameSplitter(max_frame_bytes=100)
    splitter.feed(framed(b"good") + struct.pack(">i", size))
    assert splitter.next_frame() == b"good"
    with pytest.raises(FrameError, match=complaint):
        splitter.next_frame()


def test_a_claimed_size_takes_no_memory() -> None:
    splitter = FrameSplitter()
    splitter.feed(struct.pack(">i", 10_000_000) + b"x")
    assert splitter.next_frame() is None
    assert splitter.buffered_bytes == 5


def test_of_a_large_read_only_the_rest_is_kept() -> None:
    splitter = FrameSplitter()
    splitter.feed(framed(b"whole") * 100_000 + b"\0")
    assert list(splitter.frames()) == [b"whole"] * 100_000
    assert splitter._buffer == b"\0", "the frames that were read are still held"
