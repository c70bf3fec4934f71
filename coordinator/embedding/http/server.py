"""A small HTTP/1.1 server on h11, independent of Kafka.

It is safe next to a browser. It answers only requests whose ``Host`` is its own loopback address, because a page that
rebinds its name to 127.0.0.1 sends another one. It refuses requests whose ``Origin`` is another site, and lets no other
site read its responses.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import cast

import h11

from loadwise.coordinator.errors import NotLoopbackError
from loadwise.coordinator.serving.listening import cannot_listen
from loadwise.coordinator.serving.sharing import make_room

log = logging.getLogger("loadwise.coordinator.http")

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of the HTTP server."""

    max_connections: int = 100
    """Beyond this, a new connection closes the one whose last request is the oldest.

    Peers that have not sent a whole request have half of them at most.
    """
    max_head_bytes: int = 16 * 1024
    """Maximum size of the request line and headers; beyond it the answer is 431."""
    max_body_bytes: int = 64 * 1024
    """Maximum size of a body; beyond it the answer is 413."""
    request_timeout_s: float = 10.0
    """A connection is closed if it sends no whole request for this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One checked and complete request."""

    method: str
    path: str
    """The path as sent: percent-encoded, without the query."""
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """A response."""

    status: HTTPStatus = HTTPStatus.OK
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpServer:
    """Listens on loopback and answers with the results of ``handle``. Raises `NotLoopbackError`."""

    def __init__(
        self, handle: Callable[[HttpRequest], HttpResponse], host: str, port: int, limits: HttpLimits | None = None
    ) -> None:
        if host not in _LOOPBACK:
            raise NotLoopbackError(f"HTTP is served on loopback only (127.0.0.1, localhost, ::1), not on {host!r}")
        self.handle = handle
        self.limits = limits or HttpLimits()
        self.connections: dict[_Connection, None] = {}
        """Oldest first."""
        self.own_addresses: frozenset[str] = frozenset()
        """The valid values of ``Host``."""
        self.url = ""
        """Its URL, such as ``http://127.0.0.1:43567``; empty before the start."""
        self._listen = (host, port)
        self._all_gone: asyncio.Event | None = None
        """Belongs to the current event loop, which changes with a restart."""
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Start to listen. Raises OSError if it cannot."""
        host, port = self._listen
        loop = asyncio.get_running_loop()
        self._all_gone = asyncio.Event()
        try:
            self._server = await loop.create_server(lambda: _Connection(self, loop), host, port)
        except OSError as error:
            raise cannot_listen(host, port, error) from error
        bound = self._server.sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{bound}"
        self.own_addresses = frozenset(f"{name}:{bound}" for name in ("127.0.0.1", "localhost", "[::1]"))

    async def stop(self) -> None:
        """Close the listener and all connections."""
        if self._server is None or self._all_gone is None:
            return
        self._server.close()
        self._all_gone.clear()
        for connection in list(self.connections):
            connection.abort()
        if self.connections:
            await self._all_gone.wait()
        await self._server.wait_closed()
        self._server = None

    def opened(self, connection: _Connection) -> None:
        """Register a new connection; beyond the limit, the longest unused one is closed."""
        self.connections[connection] = None
        leaving, _ = make_room(self.connections, self.limits.max_connections)
        for each in leaving:
            del self.connections[each]
            each.abort()

    def gone(self, connection: _Connection) -> None:
        """Drop a closed connection."""
        self.connections.pop(connection, None)
        if not self.connections and self._all_gone is not None:
            self._all_gone.set()

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Return the handler's response, or an error if Host or Origin are wrong."""
        if request.headers.get("host", "").lower() not in self.own_addresses:
            known = ", ".join(sorted(self.own_addresses))
            return refused(HTTPStatus.MISDIRECTED_REQUEST, f"the header Host must be one of {known}")
        origin = request.headers.get("origin")
        if origin is not None and origin.lower().removeprefix("http://") not in self.own_addresses:
            return refused(HTTPStatus.FORBIDDEN, "requests from other sites' pages are refused")
        try:
            return self.handle(request)
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            return refused(HTTPStatus.INTERNAL_SERVER_ERROR, "the coordinator failed at this request; see its log")


def refused(status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Return an error as JSON: ``{"error": "…"}``."""
    return HttpResponse(status=status, body=json.dumps({"error": message}).encode(), headers=headers or {})


class _Connection(asyncio.Protocol):
    """One connection: h11 parses the bytes, and the server answers."""

    owner = "loopback"

    def __init__(self, server: HttpServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._max_head_bytes = server.limits.max_head_bytes
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=self._max_head_bytes)
        self._transport: asyncio.Transport | None = None
        self._can_write = True
        self._timer: asyncio.TimerHandle | None = None
        self._head: h11.Request | None = None
        self._body = bytearray()
        self.is_stranger = True
        """Whether it has not sent a whole request yet."""
        self.active_at_s = loop.time()
        """When its last whole request came, or it opened."""

    @property
    def unsent_bytes(self) -> int:
        """Return the bytes of responses that the peer has not read yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection is open."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are not subclasses
        self._server.opened(self)
        self._restart_timer()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's signature)
        """asyncio: the connection is closed."""
        self._server.gone(self)
        if self._timer is not None:
            self._timer.cancel()
        self._transport = None

    def pause_writing(self) -> None:
        """asyncio: the peer reads too slowly; read and answer nothing more until it has caught up."""
        self._can_write = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """asyncio: the peer has caught up."""
        self._can_write = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
            self._take_events()

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes arrived."""
        self._http.receive_data(data)
        self._take_events()

    def _take_events(self) -> None:
        """Handle the received events, as far as the peer reads the responses."""
        try:
            while self._can_write and self._transport is not None and not self._transport.is_closing():
                if not self._take_event():
                    break
        except h11.RemoteProtocolError as problem:
            self._send(refused(HTTPStatus(problem.error_status_hint), f"this is not an HTTP request: {problem}"))
            self._close()

    def _take_event(self) -> bool:
        match self._http.next_event():
            case h11.Request() as head:
                self._head = head
                self._body.clear()
                # h11 counts only incomplete data; a head may also arrive complete in one piece.
                if (
                    len(head.target) + sum(len(name) + len(value) for name, value in head.headers)
                    > self._max_head_bytes
                ):
                    limit = f"the limit of a request line with headers is {self._max_head_bytes:,} bytes"
                    self._send(refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, limit))
                    self._close()
            case h11.Data(data=data):
                self._body += data
                if len(self._body) > self._server.limits.max_body_bytes:
                    limit = f"the limit of a body is {self._server.limits.max_body_bytes:,} bytes"
                    self._send(refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit))
                    self._close()
            case h11.EndOfMessage():
                self.is_stranger = False
                self.active_at_s = self._loop.time()
                self._send(self._server.answer(self._request()))
                if self._http.our_state is h11.MUST_CLOSE:
                    self._close()
                else:
                    self._http.start_next_cycle()
                    self._restart_timer()
            case _:
                return False
        return True

    def _request(self) -> HttpRequest:
        assert self._head is not None
        return HttpRequest(
            method=self._head.method.decode("latin-1"),
            path=self._head.target.decode("latin-1").partition("?")[0],
            headers={name.decode("latin-1"): value.decode("latin-1") for name, value in self._head.headers},
            body=bytes(self._body),
        )

    def _send(self, response: HttpResponse) -> None:
        if self._transport is None or self._http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return
        headers = {
            **_HEADERS,
            **response.headers,
            "Content-Type": response.content_type,
            "Content-Length": str(len(response.body)),
        }
        head = h11.Response(status_code=response.status, headers=list(headers.items()), reason=response.status.phrase)
        is_bodiless = self._head is not None and self._head.method == b"HEAD"
        body = h11.Data(data=b"" if is_bodiless else response.body)
        for event in (head, body, h11.EndOfMessage()):
            data = self._http.send(event)
            if data:
                self._transport.write(data)

    def _restart_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(self._server.limits.request_timeout_s, self.abort)

    def abort(self) -> None:
        """Close the connection now, because a peer that does not read would keep it open."""
        if self._transport is not None:
            self._transport.abort()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
