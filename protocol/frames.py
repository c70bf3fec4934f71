"""Cuts a stream of bytes into frames: a signed 32-bit size, then that many bytes.

Mirrors Kafka's ``NetworkReceive``: a size that is negative or above ``socket.request.max.bytes`` ends the connection.
Memory is allocated for bytes that have arrived, never for a size that was only claimed.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from loadwise.protocol.errors import FrameError

MAX_FRAME_BYTES = 100 * 1024 * 1024
"""The default for the largest accepted frame: Kafka's default of ``socket.request.max.bytes``."""

_SIZE = Struct(">i")
_TLS_HANDSHAKE = 0x1603
"""The first bytes of a TLS connection: a record of the type handshake, and TLS's major version."""


class FrameSplitter:
    """The incoming half of one connection: give it bytes with `feed`, take whole frames out with `frames`."""

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer: bytes | bytearray = b""
        """The bytes of one read, since most often that is one request; a bytearray once more are added."""
        self._start = 0
        """Where in ``bytes`` the next frame begins; frames taken out of a bytearray are deleted."""

    @property
    def buffered_bytes(self) -> int:
        """How many bytes have come that no frame has been made of yet."""
        return len(self._buffer) - self._start

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take bytes as they come from the peer, however they are cut."""
        if self._buffer:
            self._keep_rest()
            self._buffer += data
        else:
            self._buffer = bytes(data)

    def clear(self) -> None:
        """Drop the bytes that have arrived."""
        self._buffer = b""
        self._start = 0

    def next_frame(self, max_bytes: int | None = None) -> bytes | None:
        """The next whole frame without its size; None until more bytes come. ``max_bytes`` is a smaller limit.

        Raises `FrameError` as soon as the size is known to be bad; the stream cannot be read any further then.
        """
        buffer = self._buffer
        start = self._start + _SIZE.size
        if len(buffer) < start:
            self._keep_rest()
            return None
        (size,) = _SIZE.unpack_from(buffer, self._start)
        if size < 0:
            raise FrameError(f"a frame announces a size of {size} bytes; sizes are not negative")
        limit = self._max_frame_bytes if max_bytes is None else min(max_bytes, self._max_frame_bytes)
        if size > limit:
            hint = " (a TLS client?)" if size >> 16 == _TLS_HANDSHAKE else ""
            raise FrameError(f"a frame announces {size:,} bytes{hint}; the limit is {limit:,}")
        end = start + size
        if len(buffer) < end:
            self._keep_rest()
            return None
        if isinstance(buffer, bytes):
            self._start = end
            if end == len(buffer):
                self.clear()
            return buffer[start:end]
        with memoryview(buffer) as view:
            frame = bytes(view[start:end])
        del buffer[:end]
        return frame

    def frames(self) -> Iterator[bytes]:
        """All whole frames that there are now, in order. Raises `FrameError` as `next_frame` does."""
        while (frame := self.next_frame()) is not None:
            yield frame

    def _keep_rest(self) -> None:
        """Hold no more than what is still to be read, and let more be added to it."""
        if self._buffer and isinstance(self._buffer, bytes):
            with memoryview(self._buffer) as view:
                self._buffer = bytearray(view[self._start :])
            self._start = 0
