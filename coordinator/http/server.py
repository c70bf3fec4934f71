"""A small HTTP/1.1 server on h11, for control from other languages and for the view. It knows nothing of Kafka.

Made to be safe next to a browser: it answers only requests whose ``Host`` is its own loopback address (a page that
rebinds its name to 127.0.0.1 sends another one), refuses those whose ``Origin`` is another site's, and allows no other
site to read its answers.
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
    """What the HTTP server grants its peers."""

    max_connections: int = 100
    """Beyond this, a new connection closes the one whose last request is the longest ago."""
    max_head_bytes: int = 16 * 1024
    """A longer request line with headers is answered 431."""
    max_body_bytes: int = 64 * 1024
    """A longer body is answered 413."""
    request_timeout_s: float = 10.0
    """A connection without a whole request for so long is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request, checked and complete."""

    method: str
    path: str
    """As it came: percent-encoded, without the query."""
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """What is answered."""

    status: HTTPStatus = HTTPStatus.OK
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpServer:
    """Listens on loopback, and answers with what ``handle`` makes of each request. Raises `NotLoopbackError`."""

    def __init__(
        self, handle: Callable[[HttpRequest], HttpResponse], host: str, port: int, limits: HttpLimits | None = None
    ) -> None:
        if host not in _LOOPBACK:
            raise NotLoopbackError(f"HTTP is served on loopback only (127.0.0.1, localhost, ::1), not on {host!r}")
        self.handle = handle
        self.limits = limits or HttpLimits()
        self.connections: dict[asyncio.Transport, None] = {}
        """Begins with the one whose last request, or whose opening, is the longest ago."""
        self.own_addresses: frozenset[str] = frozenset()
        """What ``Host`` may be."""
        self.url = ""
        """Where it listens, as ``http://127.0.0.1:43567``; empty before the start."""
        self._listen = (host, port)
        self._all_gone: asyncio.Event | None = None
        """Of the loop that it listens on, which is another one after a restart."""
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen. Raises OSError where that cannot be."""
        host, port = self._listen
        loop = asyncio.get_running_loop()
        self._all_gone = asyncio.Event()
        self._server = await loop.create_server(lambda: _Connection(self, loop), host, port)
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
        for transport in list(self.connections):
            transport.abort()
        if self.connections:
            await self._all_gone.wait()
        await self._server.wait_closed()
        self._server = None

    def opened(self, transport: asyncio.Transport) -> None:
        """A peer connected; beyond the limit, the connection that was unused for longest makes room."""
        if len(self.connections) >= self.limits.max_connections:
            longest_unused = next(iter(self.connections))
            del self.connections[longest_unused]
            longest_unused.abort()
        self.connections[transport] = None

    def used(self, transport: asyncio.Transport) -> None:
        """A peer sent a whole request."""
        if transport in self.connections:
            del self.connections[transport]
            self.connections[transport] = None

    def gone(self, transport: asyncio.Transport) -> None:
        """A peer is gone, whoever closed."""
        self.connections.pop(transport, None)
        if not self.connections and self._all_gone is not None:
            self._all_gone.set()

    def answer(self, request: HttpRequest) -> HttpResponse:
        """What a request gets: a refusal if it comes from where it should not, else the handler's answer."""
        if request.headers.get("host", "").lower() not in self.own_addresses:
            known = ", ".join(sorted(self.own_addresses))
            return refused(HTTPStatus.MISDIRECTED_REQUEST, f"the header Host has to be one of {known}")
        origin = request.headers.get("origin")
        if origin is not None and origin.lower().removeprefix("http://") not in self.own_addresses:
            return refused(HTTPStatus.FORBIDDEN, "requests of other sites' pages are not answered")
        try:
            return self.handle(request)
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            return refused(HTTPStatus.INTERNAL_SERVER_ERROR, "the coordinator failed at this request; see its log")


def refused(status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """A refusal as JSON: ``{"error": "…"}``."""
    return HttpResponse(status=status, body=json.dumps({"error": message}).encode(), headers=headers or {})


class _Connection(asyncio.Protocol):
    """One connection: h11 tells what came, the server what to answer."""

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

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the peer is there."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are none by their class
        self._server.opened(self._transport)
        self._restart_timer()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's signature)
        """asyncio: the peer is gone."""
        assert self._transport is not None
        self._server.gone(self._transport)
        if self._timer is not None:
            self._timer.cancel()
        self._transport = None

    def pause_writing(self) -> None:
        """asyncio: the peer reads too slowly; nothing more is read or answered until it has caught up."""
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
        """asyncio: bytes have come."""
        self._http.receive_data(data)
        self._take_events()

    def _take_events(self) -> None:
        """Handle what has come, as far as the peer reads the answers."""
        try:
            while self._can_write and self._transport is not None and not self._transport.is_closing():
                if not self._take_event():
                    break
        except h11.RemoteProtocolError as problem:
            self._send(refused(HTTPStatus(problem.error_status_hint), f"this is no HTTP request: {problem}"))
            self._close()

    def _take_event(self) -> bool:
        """Handle the next event; False if there is none."""
        match self._http.next_event():
            case h11.Request() as head:
                self._head = head
                self._body.clear()
                # h11 counts what is not whole yet; a head may also come whole, in one piece.
                if (
                    len(head.target) + sum(len(name) + len(value) for name, value in head.headers)
                    > self._max_head_bytes
                ):
                    limit = f"a request line and its headers have at most {self._max_head_bytes:,} bytes"
                    self._send(refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, limit))
                    self._close()
            case h11.Data(data=data):
                self._body += data
                if len(self._body) > self._server.limits.max_body_bytes:
                    limit = f"a body has at most {self._server.limits.max_body_bytes:,} bytes"
                    self._send(refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit))
                    self._close()
            case h11.EndOfMessage():
                assert self._transport is not None
                self._server.used(self._transport)
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
        self._timer = self._loop.call_later(self._server.limits.request_timeout_s, self._give_up)

    def _give_up(self) -> None:
        """Hang up now: a peer that does not read its answers would keep its connection until it has read them."""
        if self._transport is not None:
            self._transport.abort()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
