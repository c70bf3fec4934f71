"""One client connection, between the socket and the server.

A request is handled once the previous one is answered (Kafka mutes the channel meanwhile), so answers leave in the
order of the requests. If one read brings several requests that are answered at once, their answers leave in one write.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from ipaddress import IPv6Address
from typing import Any, NamedTuple, Protocol, cast

from loadwise.coordinator.calls.logins import MAX_TOKEN_BYTES, Login, Stage
from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.routing.repeated_heartbeats import RepeatedHeartbeat
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
_HANDSHAKE_TIMEOUT_S = 5.0
"""A peer that is silent in its TLS handshake is disconnected after this time."""


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
    def at(cls, address: tuple[Any, ...]) -> Peer:
        """Return the peer at the address of a socket."""
        host, port = address[:2]
        return cls(f"/{host_in_java(host)}", f"{host}:{port}", None)


class _Unsent:
    def __init__(self) -> None:
        self.answers: list[bytes | bytearray] = []
        self.answers_bytes = 0
        self.pieces: deque[bytes] = deque()
        """The rest of an answer that is sent in pieces."""
        self.pieces_bytes = 0


class Receiver(Protocol):
    """The callbacks of a connection; `loadwise.coordinator.serving.server.Server` implements them."""

    def arrived(self, connection: Connection) -> None:
        """Called for a new connection, before its TLS handshake."""

    def opened(self, connection: Connection) -> None:
        """Called once a new connection can carry requests."""

    def closed(self, connection: Connection) -> None:
        """Called for a closed connection, whichever side closed it."""

    def received(self, connection: Connection, frame: bytes) -> None:
        """Called for a request on a connection without another one in progress."""

    def holds(self, connection: Connection, size_bytes: int) -> None:
        """Called with the bytes of requests that are incomplete or have no answer yet, when they change."""

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
        self.received_at_s = 0.0
        """When bytes last arrived, by the loop's clock."""
        self.incomplete_since_s: float | None = None
        """Since when a request is incomplete because of its peer; None if none is."""
        self.since_s = 0.0
        """When the request or the answer in progress began, by the loop's clock; meaningless without one."""
        self._receiver = receiver
        self._opening: asyncio.Task[None] | None = None
        """Makes the transport; None once it is made."""
        self._socket: socket.socket | None = None
        """None before it opens and once it is closed."""
        self._connected_at_s = 0.0
        self._has_asked = False
        """Whether a whole request has arrived."""
        self._request_bytes = 0
        """The size of the request in progress."""
        self._loop = asyncio.get_running_loop()
        self._splitter = FrameSplitter(max_request_bytes)
        self._transport: asyncio.Transport | None = None
        self._unsent = _Unsent()
        self._is_handling = False
        self._can_write = True
        self._is_reading = True
        self._held_bytes = 0

    # ---- asyncio's side ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection is open; with TLS, its handshake is complete."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are not subclasses
        self.peer = self.peer._replace(certificate=transport.get_extra_info("peercert") or None)
        self._receiver.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's signature)
        """asyncio: the connection is closed."""
        if self._socket is None:
            return
        self._transport = self._socket = None
        self._unsent = _Unsent()
        self._splitter.clear()
        self._request_bytes = 0
        self._note_held()
        self._receiver.closed(self)

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes arrived."""
        self.received_at_s = self._loop.time()
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

    async def open(self, client: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Connect with an accepted socket, by TLS if there is a context."""
        self._opening, self._socket = asyncio.current_task(), client
        with suppress(OSError):  # the peer is gone already
            self.peer = Peer.at(client.getpeername())
        self._connected_at_s = self.received_at_s = self._loop.time()
        self._receiver.arrived(self)
        is_open = False
        try:
            # Not create_server(ssl=…), which hides a peer until its handshake is complete.
            await self._loop.connect_accepted_socket(
                lambda: self,
                client,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else _HANDSHAKE_TIMEOUT_S,
            )
            is_open = True
        except (ssl.SSLError, ConnectionAbortedError) as problem:  # the latter after the timeout
            log.warning("%s: closed: no TLS handshake: %s", self.peer.name, problem)
        except OSError:
            pass  # the peer disconnected
        finally:
            self._opening = None
            if not is_open:  # uvloop does not call it then
                self.connection_lost(None)

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
        self.since_s = self._loop.time()
        self._write_answers()
        self._unsent.pieces.extend(pieces)
        self._unsent.pieces_bytes = sum(map(len, self._unsent.pieces))
        self._write_pieces()

    def hold(self, size_bytes: int) -> None:
        """Count bytes that the request in progress takes in memory, besides its own."""
        self._request_bytes += size_bytes
        self._note_held()

    def free(self) -> None:
        """End the request in progress, and handle the next one if it is here already."""
        self.waits_for = None
        self.since_s = self._loop.time()
        self._request_bytes = 0
        if not self._is_handling:
            self._note_held()
            if self._splitter.buffered_bytes:
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
        if self._transport is None and self._opening is None:
            return
        if reason is not None:
            log.warning("%s: closed: %s", self.peer.name, reason)
        if self._transport is not None:
            self._transport.abort()
        elif self._opening is not None:
            self._opening.cancel()

    @property
    def unsent_bytes(self) -> int:
        """Return the bytes of answers that the peer has not read yet."""
        if self._transport is None:
            return 0
        return self._unsent.pieces_bytes + self._transport.get_write_buffer_size()

    @property
    def descriptor(self) -> int:
        """Return the file descriptor of the socket; -1 if it is closed."""
        return -1 if self._socket is None else self._socket.fileno()

    @property
    def is_logging_in(self) -> bool:
        """Return whether the peer must log in, and has not done so."""
        return self.login is not None and self.login.stage is not Stage.DONE

    @property
    def is_stranger(self) -> bool:
        """Return whether neither a login nor a first request is complete."""
        return self.is_logging_in or not self._has_asked

    @property
    def owner(self) -> str:
        """Return the peer's user; its address if it need not log in, or has not yet."""
        user = None if self.login is None else self.login.user
        return self.peer.client_host if user is None else user

    @property
    def active_at_s(self) -> float:
        """Return when bytes last arrived; of a stranger, when it connected."""
        return self._connected_at_s if self.is_stranger else self.received_at_s

    # ---- inside ----

    @property
    def _is_busy(self) -> bool:
        return self.waits_for is not None or not self._can_write or bool(self._unsent.pieces)

    def _handle_requests(self) -> None:
        """Handle received requests up to the first one whose answer comes later."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._is_handling = True
        until_s = self._loop.time() + _HANDLE_IN_A_TURN_S
        try:
            while self.waits_for is None and self._can_write and not self._unsent.pieces and not transport.is_closing():
                frame = self._splitter.next_frame(MAX_TOKEN_BYTES if self.is_logging_in else None)
                if frame is None:
                    break
                self._has_asked = True
                self.incomplete_since_s = None
                self._request_bytes = len(frame)
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
        self._note_held()
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

    def _note_held(self) -> None:
        buffered_bytes = self._splitter.buffered_bytes
        if self._is_busy or not buffered_bytes:
            self.incomplete_since_s = None
        elif self.incomplete_since_s is None:
            self.incomplete_since_s = self._loop.time()
        held_bytes = buffered_bytes + self._request_bytes
        if held_bytes != self._held_bytes:
            if not self._held_bytes:
                self.since_s = self._loop.time()
            self._held_bytes = held_bytes
            self._receiver.holds(self, held_bytes)

    def _regulate_reading(self, transport: asyncio.Transport) -> None:
        """Stop reading while a busy connection has many bytes waiting."""
        wants_reading = not (self._is_busy and self._splitter.buffered_bytes > _READ_AHEAD_BYTES)
        if wants_reading != self._is_reading:
            self._is_reading = wants_reading
            if wants_reading:
                transport.resume_reading()
            else:
                transport.pause_reading()
