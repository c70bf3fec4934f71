"""One client connection, between the socket and the server.

A request is handled once the previous one is answered (Kafka mutes the channel meanwhile), so answers leave in the
order of the requests. If one read brings several requests that are answered at once, their answers leave in one write.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address
from typing import Any, NamedTuple, Protocol, cast

from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.logins import MAX_TOKEN_BYTES, Login, Stage
from loadwise.coordinator.repeated_heartbeats import RepeatedHeartbeat
from loadwise.protocol.errors import MalformedBytesError
from loadwise.protocol.frames import FrameSplitter

log = logging.getLogger("loadwise.coordinator")

_READ_AHEAD_BYTES = 1024 * 1024
_WRITE_AT_BYTES = 64 * 1024
"""Answers are collected up to this many bytes before they are written."""
_WRITE_IN_A_TURN_BYTES = 1024 * 1024
"""The maximum that is written of a large answer in one turn of the loop."""
_HANDLE_IN_A_TURN_S = 0.005
"""After this time, the next turn of the loop handles the connection's remaining requests."""


def host_in_java(host: str) -> str:
    """Return an address as Java and ACLs write it: ``0:0:0:0:0:0:0:1`` for ``::1``.

    Mirrors ``InetAddress.getHostAddress``.
    """
    if ":" not in host:
        return host
    address = IPv6Address(host)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    text = ":".join(f"{each:x}" for each in struct.unpack(">8H", address.packed))
    return text if address.scope_id is None else f"{text}%{address.scope_id}"


class Peer(NamedTuple):
    """The client of a connection."""

    client_host: str
    """Its address in Java's format, such as ``/127.0.0.1``."""
    name: str
    """Its address and port, for the log."""
    certificate: Mapping[str, Any] | None
    """Its certificate, as ``ssl`` describes it; None if it has none."""

    @classmethod
    def of(cls, transport: asyncio.BaseTransport) -> Peer:
        """Return the peer of an open connection."""
        host, port = (transport.get_extra_info("peername") or ("?", 0))[:2]
        return cls(f"/{host_in_java(host)}", f"{host}:{port}", transport.get_extra_info("peercert") or None)


class _Unsent:
    def __init__(self) -> None:
        self.answers: list[bytes | bytearray] = []
        self.answers_bytes = 0
        self.pieces: deque[bytes] = deque()
        """The rest of an answer that is sent in pieces."""
        self.pieces_bytes = 0


class Receiver(Protocol):
    """The callbacks of a connection; `loadwise.coordinator.server.Server` implements them."""

    def opened(self, connection: Connection) -> None:
        """Called for a new connection."""

    def closed(self, connection: Connection) -> None:
        """Called for a closed connection, whichever side closed it."""

    def received(self, connection: Connection, frame: bytes) -> None:
        """Called for a request on a connection without another one in progress."""

    def count_unread(self, connection: Connection, more_bytes: int) -> None:
        """Called when the bytes of incomplete requests grow, or shrink if negative."""

    def wrote(self, connection: Connection) -> None:
        """Called when a connection has more to send than the peer takes at once."""


class Connection(asyncio.Protocol):
    """One connection. The server sets ``waits_for`` while a request is unanswered."""

    def __init__(self, receiver: Receiver, node_id: int, max_request_bytes: int) -> None:
        self.node_id = node_id
        """The broker that the peer connected to."""
        self.id = 0
        """The server's id of this connection; ids are never reused."""
        self.waits_for: Token | None = None
        """The request in progress; None without one."""
        self.login: Login | None = None
        """The peer's login; None if peers need not log in."""
        self.peer = Peer("", "?", None)
        self.heartbeat: RepeatedHeartbeat | None = None
        """The peer's last heartbeat, for the server; None before the first."""
        self.active_at_s = 0.0
        """When bytes last arrived, by the loop's clock."""
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._splitter = FrameSplitter(max_request_bytes)
        self._transport: asyncio.Transport | None = None
        self._unsent = _Unsent()
        self._is_handling = False
        self._can_write = True
        self._is_reading = True
        self._counted_bytes = 0

    # ---- asyncio's side ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection is open."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are not subclasses
        self.peer = Peer.of(transport)
        self.active_at_s = self._loop.time()
        self._receiver.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's signature)
        """asyncio: the connection is closed."""
        self._transport = None
        self._unsent = _Unsent()
        self._splitter.clear()
        self._count_unread()
        self._receiver.closed(self)

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes arrived."""
        self.active_at_s = self._loop.time()
        self._splitter.feed(data)
        self._handle_requests()

    def pause_writing(self) -> None:
        """asyncio: the peer reads too slowly; handle nothing more for it until it has caught up."""
        self._can_write = False

    def resume_writing(self) -> None:
        """asyncio: the peer has caught up."""
        self._can_write = True
        if self._unsent.pieces:
            self._write_pieces()
        else:
            self._handle_requests()

    # ---- the server's side ----

    def answer(self, data: bytes | bytearray) -> None:
        """Send an answer and accept the next request; does nothing if the peer disconnected."""
        self.free()
        unsent = self._unsent
        unsent.answers.append(data)
        unsent.answers_bytes += len(data)
        if not self._is_handling or unsent.answers_bytes >= _WRITE_AT_BYTES:
            self._write_answers()

    def answer_in_pieces(self, pieces: Iterable[bytes]) -> None:
        """Send a large answer as fast as the peer reads, then accept the next request."""
        self.waits_for = None
        self._unsent.pieces.extend(pieces)
        self._unsent.pieces_bytes = sum(map(len, self._unsent.pieces))
        self._write_pieces()

    def free(self) -> None:
        """End the request in progress, and handle the next one if it is here already."""
        self.waits_for = None
        if not self._is_handling and self._splitter.buffered_bytes:
            # Not at once, because the current turn of the loop belongs to another connection.
            self._loop.call_soon(self._handle_requests)

    def close(self, reason: str) -> None:
        """Close the connection once everything is sent, and log the reason."""
        if self._transport is not None:
            log.warning("%s: closed: %s", self.peer.name, reason)
            self._write_answers()
            self._transport.close()

    def abort(self, reason: str | None = None) -> None:
        """Close the connection at once, and log the reason if there is one."""
        if self._transport is not None:
            if reason is not None:
                log.warning("%s: closed: %s", self.peer.name, reason)
            self._transport.abort()

    @property
    def unsent_bytes(self) -> int:
        """Return the bytes of answers that the peer has not read yet."""
        if self._transport is None:
            return 0
        return self._unsent.pieces_bytes + self._transport.get_write_buffer_size()

    @property
    def descriptor(self) -> int:
        """Return the file descriptor of the socket; -1 if it is closed."""
        socket = None if self._transport is None else self._transport.get_extra_info("socket")
        return -1 if socket is None else int(socket.fileno())

    # ---- inside ----

    @property
    def _is_logging_in(self) -> bool:
        return self.login is not None and self.login.stage is not Stage.DONE

    def _handle_requests(self) -> None:
        """Handle received requests up to the first one whose answer comes later."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._is_handling = True
        until_s = self._loop.time() + _HANDLE_IN_A_TURN_S
        try:
            while self.waits_for is None and self._can_write and not self._unsent.pieces and not transport.is_closing():
                frame = self._splitter.next_frame(MAX_TOKEN_BYTES if self._is_logging_in else None)
                if frame is None:
                    break
                self._receiver.received(self, frame)
                if self._splitter.buffered_bytes and self._loop.time() > until_s:
                    self._loop.call_soon(self._handle_requests)
                    break
        except MalformedBytesError as problem:
            self.close(str(problem))
        except Exception:
            log.exception("%s: closed: the coordinator failed to handle a request", self.peer.name)
            self.abort()
        finally:
            self._is_handling = False
        self._write_answers()
        self._count_unread()
        if not transport.is_closing():
            self._regulate_reading(transport)

    def _write_answers(self) -> None:
        unsent = self._unsent
        answers, unsent.answers, unsent.answers_bytes = unsent.answers, [], 0
        if answers and self._transport is not None:
            self._transport.write(answers[0] if len(answers) == 1 else b"".join(answers))
            if not self._can_write:
                self._receiver.wrote(self)

    def _write_pieces(self) -> None:
        unsent = self._unsent
        if not unsent.pieces:
            return
        written = 0
        transport = self._transport
        while unsent.pieces and self._can_write and transport is not None and not transport.is_closing():
            if written > _WRITE_IN_A_TURN_BYTES:
                self._loop.call_soon(self._write_pieces)
                return
            piece = unsent.pieces.popleft()
            unsent.pieces_bytes -= len(piece)
            written += len(piece)
            transport.write(piece)
        if not self._can_write:
            self._receiver.wrote(self)
        if not unsent.pieces:
            self.free()

    def _count_unread(self) -> None:
        more_bytes = self._splitter.buffered_bytes - self._counted_bytes
        if more_bytes:
            self._counted_bytes += more_bytes
            self._receiver.count_unread(self, more_bytes)

    def _regulate_reading(self, transport: asyncio.Transport) -> None:
        """Stop reading while a busy connection has many bytes waiting."""
        is_busy = self.waits_for is not None or not self._can_write or bool(self._unsent.pieces)
        wants_reading = not (is_busy and self._splitter.buffered_bytes > _READ_AHEAD_BYTES)
        if wants_reading != self._is_reading:
            self._is_reading = wants_reading
            if wants_reading:
                transport.resume_reading()
            else:
                transport.pause_reading()
