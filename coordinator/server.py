"""The asyncio server around the broker: the only sockets, one for each broker of the cluster; reads the clock.

One request of a connection is handled at a time, the next when it is answered (Kafka mutes the channel meanwhile), so
answers go out in the order of the requests. A peer that sends bytes which are no request loses its connection, with one
line in the log; nobody else notices. An answer to a connection that is gone is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count

from loadwise.coordinator.apis import api_versions
from loadwise.coordinator.calls import Answer, Call, EncodedBody, HangUp, NoAnswer
from loadwise.coordinator.clock import Clock
from loadwise.coordinator.faults.injector import FaultInjector
from loadwise.coordinator.faults.rules import Faults
from loadwise.coordinator.groups.effects import Reply
from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.errors import MalformedBytesError, UnsupportedVersionError
from loadwise.protocol.frames import MAX_FRAME_BYTES, FrameSplitter
from loadwise.protocol.messages import decode_request, encode_response, frame_body, served

log = logging.getLogger("loadwise.coordinator")
group_log = logging.getLogger("loadwise.coordinator.groups")

_READ_AHEAD_BYTES = 1024 * 1024
_TURNS_TO_OPEN = 5
"""asyncio opens a connection some three turns of its loop after it has accepted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What one server grants its peers."""

    max_connections: int = 10_000
    """Connections beyond this are closed at once."""
    max_frame_bytes: int = MAX_FRAME_BYTES
    """A request larger than this closes its connection (socket.request.max.bytes)."""
    max_buffered_bytes: int = 256 * 1024 * 1024
    """Most bytes of unfinished requests of all connections together; whoever sends more is hung up on.

    Kafka's queued.max.request.bytes, which has no limit there.
    """


class Server:
    """Listens, and carries requests to the broker and answers back."""

    def __init__(
        self, cluster: Cluster, clock: Clock, limits: ServerLimits | None = None, faults: Faults | None = None
    ) -> None:
        self.cluster = cluster
        self.limits = limits or ServerLimits()
        self._clock = clock
        self._apis = served(service.api for service in cluster.services.values())
        self._cluster = FaultInjector(cluster, faults or Faults({api.name for api in self._apis.values()}))
        self._tokens = count(1)
        self._connections: set[Connection] = set()
        self._waiting: dict[Token, Connection] = {}
        self._ready: deque[Connection] = deque()
        self._buffered_bytes = 0
        self._servers: list[asyncio.Server] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._armed_ms: int | None = None
        self._all_gone = asyncio.Event()

    async def start(self, host: str, port: int) -> list[tuple[str, int]]:
        """Listen for every broker, and answer with the addresses that were bound, in the order of the brokers.

        The first listens on ``port``, the others on those after it; 0 takes free ones. Raises OSError where that cannot
        be.
        """
        self._loop = asyncio.get_running_loop()
        bound = []
        try:
            for index, node in enumerate(self.cluster.brokers.nodes):
                accept = partial(Connection, self, node.id)
                listener = await self._loop.create_server(accept, host, port + index if port else 0)
                self._servers.append(listener)
                bound_host, bound_port = listener.sockets[0].getsockname()[:2]
                bound.append((bound_host, bound_port))
        except OSError:
            await self.stop()
            raise
        return bound

    async def stop(self) -> None:
        """Close the listeners and every connection."""
        # Accept no more, and let asyncio open what it has accepted: a closed listener would leave that open for ever.
        for listener in self._servers:
            for listening in listener.sockets:
                asyncio.get_running_loop().remove_reader(listening.fileno())
        for _ in range(_TURNS_TO_OPEN):
            await asyncio.sleep(0)
        for listener in self._servers:
            listener.close()
        self._disarm()
        self._all_gone.clear()
        for connection in list(self._connections):
            connection.abort()
        if self._connections:
            await self._all_gone.wait()
        for listener in self._servers:
            await listener.wait_closed()
        self._servers.clear()

    def carry_on(self) -> None:
        """Send what became due because somebody changed the broker's state from outside."""
        self._deliver(self._cluster.expire(self._clock.now_ms()))
        self._run()

    # ---- what connections tell ----

    def opened(self, connection: Connection) -> None:
        """A peer connected."""
        self._connections.add(connection)
        if len(self._connections) > self.limits.max_connections:
            connection.close(f"there are {self.limits.max_connections:,} connections already, which is the limit")

    def closed(self, connection: Connection) -> None:
        """A peer is gone, whoever closed."""
        self._connections.discard(connection)
        if connection.token is not None:
            self._waiting.pop(connection.token, None)
            self._cluster.forget(connection.token)
        if not self._connections:
            self._all_gone.set()

    def buffered(self, connection: Connection, more_bytes: int) -> None:
        """A connection keeps this many more bytes that no request has been made of yet, or fewer."""
        self._buffered_bytes += more_bytes
        if more_bytes > 0 and self._buffered_bytes > self.limits.max_buffered_bytes:
            limit = f"the limit is {self.limits.max_buffered_bytes:,}"
            connection.close(f"unfinished requests take {self._buffered_bytes:,} bytes together; {limit}")

    def ready(self, connection: Connection) -> None:
        """A connection may have a request to handle."""
        self._ready.append(connection)
        self._run()

    def handle(self, connection: Connection, frame: bytes) -> None:
        """Handle one frame of a connection."""
        try:
            request = decode_request(frame, self._apis)
        except UnsupportedVersionError as problem:
            if problem.api_key != api_versions.SERVICE.api.key:
                raise
            connection.write(encode_response(api_versions.unsupported(self.cluster), problem.correlation_id))
            return
        token = connection.token = next(self._tokens)
        self._waiting[token] = connection
        call = Call(token, request, f"/{connection.host}", connection.node_id)
        self._deliver(self._cluster.receive(call, self._clock.now_ms()), connection)

    # ---- what a test wants ----

    def operate(self, operation: Callable[[Groups, int], Iterable[Reply]]) -> None:
        """Let something that no client asked for happen to the groups; it is given them and the time."""
        self._deliver(self._cluster.operate(operation, self._clock.now_ms()))
        self._run()

    def freeze(self) -> None:
        """Stop the clock: nothing happens by time alone any more."""
        self._clock.freeze()
        self._disarm()

    def resume(self) -> None:
        """Let the clock run on."""
        self._clock.resume()
        self._disarm()
        self._arm()

    def step(self, ms: int) -> None:
        """Set the clock forward, with everything on the way happening at its own time."""
        end_ms = self._clock.now_ms() + ms
        while (deadline_ms := self._cluster.next_deadline_ms) is not None and deadline_ms <= end_ms:
            self._clock.advance_to(deadline_ms)
            self._deliver(self._cluster.expire(self._clock.now_ms()))
        self._clock.advance_to(end_ms)
        self._disarm()
        self._run()

    # ---- answers and time ----

    def _deliver(self, answers: Iterable[Answer], caller: Connection | None = None) -> None:
        for answer in answers:
            connection = self._waiting.pop(answer.call.token, None)
            if connection is None:
                continue  # its client is gone
            connection.token = None
            if isinstance(answer.response, HangUp):
                connection.close(answer.response.reason)
            elif not isinstance(answer.response, NoAnswer):
                connection.write(_encoded(answer))
            if connection is not caller:
                self._ready.append(connection)  # its next request may wait already

    def _run(self) -> None:
        # A loop, not recursion: the answer to one connection may let another go on.
        while self._ready:
            self._ready.popleft().handle_waiting()
        self._log_transitions()
        self._arm()

    def _arm(self) -> None:
        """Let the timer fire at the next deadline, or before: then it is armed again."""
        assert self._loop is not None
        deadline_ms = self._cluster.next_deadline_ms
        if (
            self._clock.is_frozen
            or deadline_ms is None
            or (self._armed_ms is not None and self._armed_ms <= deadline_ms)
        ):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_ms = deadline_ms
        # A loop's clock is finer than our milliseconds: a little late, so that the deadline has come then.
        delay_ms = deadline_ms + 1 - self._clock.now_ms()
        self._timer = self._loop.call_later(max(delay_ms, 0) / 1000, self._on_timer)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._armed_ms = None

    def _on_timer(self) -> None:
        self._timer = self._armed_ms = None
        self.carry_on()

    def _log_transitions(self) -> None:
        for moment in self.cluster.groups.history.take_unlogged():
            fields = {"group_id": moment.group_id, "at_ms": moment.at_ms, **asdict(moment.transition)}
            group_log.info("%(group_id)s: %(before)s -> %(after)s: %(reason)s", fields, extra=fields)


class Connection(asyncio.Protocol):
    """One connection: cuts its stream into requests and waits with each for the answer to the one before."""

    def __init__(self, server: Server, node_id: int) -> None:
        self.node_id = node_id
        """The broker that the peer connected to."""
        self.token: Token | None = None
        """The request that is being handled; None while the connection is free."""
        self.host = ""
        """The peer's address."""
        self._peer = "?"
        self._server = server
        self._splitter = FrameSplitter(server.limits.max_frame_bytes)
        self._transport: asyncio.Transport | None = None
        self._can_write = True
        self._is_reading = True
        self._counted_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the peer is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        host, port = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self.host, self._peer = str(host), f"{host}:{port}"
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's signature)
        """asyncio: the peer is gone."""
        self._transport = None
        self._splitter.clear()
        self._count_buffered()
        self._server.closed(self)

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes have come."""
        self._splitter.feed(data)
        self._server.ready(self)
        self._count_buffered()

    def pause_writing(self) -> None:
        """asyncio: the peer reads too slowly; nothing more is handled for it until it has caught up."""
        self._can_write = False

    def resume_writing(self) -> None:
        """asyncio: the peer has caught up."""
        self._can_write = True
        self._server.ready(self)

    def handle_waiting(self) -> None:
        """Handle the requests that have come, up to one whose answer comes later."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        try:
            while self.token is None and self._can_write and not transport.is_closing():
                frame = self._splitter.next_frame()
                if frame is None:
                    break
                self._server.handle(self, frame)
        except MalformedBytesError as problem:
            self.close(str(problem))
        except Exception:
            log.exception("%s: closed: the coordinator failed at its request", self._peer)
            self.abort()
        if not transport.is_closing():
            self._regulate_reading()
        self._count_buffered()

    def write(self, data: bytes | bytearray) -> None:
        """Send bytes, unless the peer is gone."""
        if self._transport is not None:
            self._transport.write(data)

    def close(self, reason: str) -> None:
        """Hang up, with the reason in the log."""
        if self._transport is not None:
            log.warning("%s: closed: %s", self._peer, reason)
            self._transport.close()

    def abort(self) -> None:
        """Hang up at once."""
        if self._transport is not None:
            self._transport.abort()

    def _count_buffered(self) -> None:
        more_bytes = self._splitter.buffered_bytes - self._counted_bytes
        if more_bytes:
            self._counted_bytes += more_bytes
            self._server.buffered(self, more_bytes)

    def _regulate_reading(self) -> None:
        """Read no further while a busy connection has much waiting already."""
        assert self._transport is not None
        is_busy = self.token is not None or not self._can_write
        wants_reading = not (is_busy and self._splitter.buffered_bytes > _READ_AHEAD_BYTES)
        if wants_reading != self._is_reading:
            self._is_reading = wants_reading
            if wants_reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()


def _encoded(answer: Answer) -> bytes | bytearray:
    correlation_id = answer.call.request.correlation_id
    if isinstance(answer.response, EncodedBody):
        return frame_body(answer.response.data, correlation_id, flexible=answer.response.flexible)
    return encode_response(answer.response, correlation_id)
