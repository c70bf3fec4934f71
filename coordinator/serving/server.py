"""The asyncio server around the cluster: sockets, clock and pending answers.

Each broker has a listening socket. A request comes from its connection as a frame (`received`), becomes a `Call`, and
goes to the cluster; `_deliver` encodes the answers and sends them. Malformed bytes close their connection with one line
in the log, and no other connection is affected. An answer to a closed connection is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict

from loadwise.coordinator.apis import api_versions_18 as api_versions
from loadwise.coordinator.calls.call import Answer, Call, EncodedBody, HangUp, LastAnswer, Later, NoAnswer, Outcome
from loadwise.coordinator.calls.logins import Login, Stage
from loadwise.coordinator.clock import Clock
from loadwise.coordinator.errors import DataDirError, LoginRefusedError
from loadwise.coordinator.faults.injector import FaultInjector
from loadwise.coordinator.faults.rules import Faults
from loadwise.coordinator.groups.effects import Reply
from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.groups.service.history import printable
from loadwise.coordinator.handling.refusals import refusal, rows_inward
from loadwise.coordinator.keeper import DataDirectory, Snapshot
from loadwise.coordinator.routing.repeated_heartbeats import RepeatedHeartbeat
from loadwise.coordinator.routing.router import Router
from loadwise.coordinator.serving.alarm import Alarm
from loadwise.coordinator.serving.connection import Connection
from loadwise.coordinator.serving.connections import Connections, ServerLimits
from loadwise.coordinator.serving.forks import close_in_children
from loadwise.coordinator.serving.listening import Listeners
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.errors import MalformedBytesError, TooManyElementsError, UnsupportedVersionError
from loadwise.protocol.messages import (
    Request,
    decode_request,
    encode_response,
    frame_of,
    request_in_turns,
    served,
    without_body,
)
from loadwise.protocol.structs import Struct

log = logging.getLogger("loadwise.coordinator")
group_log = logging.getLogger("loadwise.coordinator.groups")

_API_VERSIONS = 18
_MAX_WHOLE_BYTES = 1024 * 1024
"""A larger answer that is encoded already is sent in pieces."""
_ELEMENT_BYTES = 250
"""Memory that an element of a request takes, with its part of the response."""
_COUNTED_ELEMENTS = 1000
"""So many are counted together."""
_CHECK_S = 1.0
"""How often connections are checked for silent peers."""


class Server:
    """Listens, passes requests to the cluster and sends the answers."""

    def __init__(
        self,
        router: Router,
        clock: Clock,
        limits: ServerLimits | None = None,
        faults: Faults | None = None,
        tls: ssl.SSLContext | None = None,
        *,
        directory: DataDirectory | None = None,
    ) -> None:
        self.cluster = router.cluster
        self._router = FaultInjector(router, faults or Faults({api.name for api in router.cluster.apis}))
        self.failure: asyncio.Future[DataDirError] = asyncio.get_running_loop().create_future()
        """Set when the data directory cannot be written and serving stops."""
        self._directory = directory
        self._unsafe: list[Answer] = []
        """Answers that wait until the data directory has stored their changes."""
        self.limits = limits or ServerLimits()
        self._most_bytes = self.limits.max_unsent_bytes
        self._clock = clock
        self._apis = served(self.cluster.apis)
        self._connections = Connections(self.limits)
        self._waiting: dict[Token, Connection] = {}
        self._listeners = Listeners(self._accept, self._connections.make_room_for_files)
        self._tls = tls
        self._opening: set[asyncio.Task[None]] = set()
        self._alarm = Alarm(clock, self.carry_on)
        self._next_check: asyncio.TimerHandle | None = None
        self._is_settling = False
        self._is_going_on = False

    async def start(self, host: str, port: int) -> list[tuple[str, int]]:
        """Listen for every broker, and return the bound addresses in the order of the brokers.

        The first listens on ``port``, the others on the following ports; 0 picks free ones. Raises OSError if that
        fails.
        """
        try:
            bound = await self._listeners.open(host, port, [node.id for node in self.cluster.brokers.nodes])
        except OSError:
            await self.stop()
            raise
        close_in_children(self._descriptors)
        self._check_connections()
        self._arm()
        return bound

    async def stop(self) -> None:
        """Close the listeners and every connection."""
        await self._listeners.close()
        self._alarm.clear()
        if self._next_check is not None:
            self._next_check.cancel()
        await self._connections.abort_all()
        self._alarm.clear()  # again: a request in the last turn has armed it

    def _accept(self, node_id: int, client: socket.socket) -> None:
        connection = Connection(self, node_id, self.cluster.settings.max_request_bytes)
        opening = asyncio.create_task(connection.open(client, self._tls))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)

    def carry_on(self) -> None:
        """Send answers that became due when the state was changed from outside."""
        self._deliver(self._router.expire(self._clock.now_ms()))
        self._settle()

    def drop_connections(self, node_id: int) -> None:
        """Close all connections to a broker that was stopped."""
        for connection in self._connections.all():
            if connection.node_id == node_id:
                connection.abort()

    # ---- callbacks of connections ----

    def arrived(self, connection: Connection) -> None:
        """Register a new connection."""
        self._connections.add(connection)
        node = self.cluster.brokers.node(connection.node_id)
        if self.failure.done() or (node is not None and node.is_stopped):
            connection.abort()

    def opened(self, connection: Connection) -> None:
        """Begin the login of a new connection."""
        try:
            connection.login = self._router.new_login(connection.peer.certificate)
        except LoginRefusedError as problem:
            connection.abort(str(problem))  # at once: requests that it has already sent must not be served

    def closed(self, connection: Connection) -> None:
        """Drop a closed connection."""
        if connection.waits_for is not None:
            self._waiting.pop(connection.waits_for, None)
            self._router.forget(connection.waits_for)
        self._deliver(self._router.disconnected(connection.id, self._clock.now_ms()))
        if self._directory is not None and self._directory.has_changes:
            self._settle_soon()
        self._connections.discard(connection)

    def holds(self, connection: Connection, size_bytes: int) -> None:
        """Note the bytes of a connection's requests without an answer."""
        self._connections.holds(connection, size_bytes)

    def wrote(self, connection: Connection) -> None:
        """Note that a connection has more to send than the peer takes at once."""
        self._connections.wrote(connection)

    def received(self, connection: Connection, frame: bytes) -> None:
        """Handle a request of a connection without another one in progress."""
        heartbeat, login = connection.heartbeat, connection.login
        is_repeated = heartbeat is not None and heartbeat.is_repeated_by(frame)
        if heartbeat is not None and is_repeated and self._is_all_well(heartbeat, connection):
            connection.answer(heartbeat.answer_to(frame))
            return
        if login is not None and login.stage is Stage.RAW_TOKENS:
            self._take_raw_token(connection, login, frame)
            return
        try:
            request = decode_request(frame, self._apis)
        except TooManyElementsError:
            call = self._call(connection, without_body(frame, self._apis))
            self._router.begin(call, self._read(connection, call, frame))
            self._settle_soon()
            return
        except UnsupportedVersionError as problem:
            if problem.api_key != _API_VERSIONS:
                raise
            connection.answer(encode_response(api_versions.unsupported(self.cluster), 0, problem.correlation_id))
            return
        if request.api.name == "Heartbeat" and not is_repeated:
            connection.heartbeat = RepeatedHeartbeat.of(frame, request)
        self._handle(self._call(connection, request))

    def _call(self, connection: Connection, request: Request) -> Call:
        """Return the call of a connection, which waits for its answer from now on."""
        token = connection.waits_for = next(self._router.router.tokens)
        self._waiting[token] = connection
        return Call(token, request, connection.peer.client_host, connection.node_id, connection.login, connection.id)

    def _handle(self, call: Call) -> None:
        self._deliver(self._router.receive(call, self._clock.now_ms()))
        self._settle_soon()

    def _read(self, connection: Connection, call: Call, frame: bytes) -> Turns[Outcome]:
        """Read a request of many elements, then handle it; ``call`` has its header."""
        topics = self.cluster.topics
        reading = request_in_turns(
            frame,
            self._apis,
            rows_inward(call.request.api.name, call.version),
            most=self.limits.max_request_elements,
            # Enough for a heartbeat with all partitions, whose only owner names topics twice: subscribed, and owned.
            most_inside=self.limits.max_whole_elements + topics.partition_count + 2 * len(topics),
        )
        try:
            request = yield from _counted(reading, connection)
        except TooManyElementsError as problem:
            refused = refusal(call, ErrorCode.INVALID_REQUEST, str(problem))
            return refused if getattr(refused, "error_code", 0) else HangUp(str(problem))
        except MalformedBytesError as problem:
            return HangUp(str(problem))
        self._handle(call._replace(request=request))
        return Later()

    def _is_all_well(self, heartbeat: RepeatedHeartbeat, connection: Connection) -> bool:
        """Return whether a repeated heartbeat was handled and can be answered at once."""
        if connection.login is not None or (self._directory is not None and self._directory.has_changes):
            return False
        return self._router.take_repeated(heartbeat, connection.node_id, self._clock.now_ms())

    def _take_raw_token(self, connection: Connection, login: Login, token: bytes) -> None:
        """Handle a login token without a request around it, as in SaslHandshake v0."""
        try:
            answer = login.evaluate(token, self._clock.now_ms())
        except LoginRefusedError as problem:
            connection.abort(str(problem))  # at once: requests that it has already sent must not be served
        else:
            connection.answer(struct.pack(">i", len(answer)) + answer)

    # ---- controls for tests ----

    def operate(self, operation: Callable[[Groups, int], Iterable[Reply]]) -> None:
        """Run an operation on the groups that no client requested; it gets the groups and the time."""
        self._deliver(self._router.operate(operation, self._clock.now_ms()))
        self._settle()

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot. All connections are closed without answers to pending requests."""
        self._router.restore(snapshot, self._clock.now_ms())
        self._waiting.clear()
        self._unsafe.clear()
        for connection in self._connections.all():
            connection.abort()
        self._alarm.clear()
        self._settle()

    def freeze(self) -> None:
        """Stop the clock, so that nothing expires."""
        self._clock.freeze()
        self._alarm.clear()

    def resume(self) -> None:
        """Let the clock run on."""
        self._clock.resume()
        self._alarm.clear()
        self._arm()

    def step(self, ms: int) -> None:
        """Advance the clock; everything due within the step happens at its own time."""
        end_ms = self._clock.now_ms() + ms
        while (deadline_ms := self._router.next_deadline_ms) is not None and deadline_ms <= end_ms:
            self._clock.advance_to(deadline_ms)
            self._deliver(self._router.expire(self._clock.now_ms()))
        self._clock.advance_to(end_ms)
        self._alarm.clear()
        self._settle()

    # ---- answers and time ----

    def _deliver(self, answers: Iterable[Answer]) -> None:
        """Send answers; with a data directory, some wait until their changes are safe (`_settle`)."""
        if self._directory is not None and self._directory.has_changes:
            self._unsafe += answers
        else:
            self._send(answers)

    def _send(self, answers: Iterable[Answer]) -> None:
        for answer in answers:
            connection = self._waiting.pop(answer.call.token, None)
            if connection is None:
                continue  # its client disconnected
            response = answer.response
            if isinstance(response, HangUp):
                connection.waits_for = None
                connection.close(response.reason)
            elif isinstance(response, NoAnswer):
                connection.free()
            elif isinstance(response, EncodedBody) and _MAX_WHOLE_BYTES < response.size_bytes <= self._most_bytes:
                correlation_id = answer.call.request.correlation_id
                connection.answer_in_pieces(frame_of(response.pieces, correlation_id, flexible=response.flexible))
            else:
                data = _encoded(answer, self._most_bytes)
                if data is None:
                    connection.waits_for = None
                    connection.abort("its answer cannot be sent")
                else:
                    connection.answer(data)
                    if isinstance(response, LastAnswer):
                        connection.close(response.reason)

    def _settle_soon(self) -> None:
        if not self._is_settling:
            self._is_settling = True
            asyncio.get_running_loop().call_soon(self._settle)

    def _settle(self) -> None:
        """At the end of a turn, log the groups' changes and set the timer."""
        self._is_settling = False
        self._make_safe()
        self._log_transitions()
        self._arm()
        if self._router.has_unfinished and not self._is_going_on:
            self._is_going_on = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        """Continue a long request for a while; connections have their turn in between."""
        self._is_going_on = False
        if self._router.has_unfinished:
            self._deliver(self._router.go_on(self._clock.now_ms()))
            self._settle_soon()

    def _make_safe(self) -> None:
        """Store the changes of this turn's requests in the data directory, then send the answers."""
        if self._directory is None or self.failure.done():
            return
        try:
            self._directory.commit()
        except DataDirError as problem:
            log.critical("the coordinator stops serving: %s", problem)
            self.failure.set_result(problem)
            self._unsafe.clear()
            for connection in self._connections.all():
                connection.abort()
            return
        unsafe, self._unsafe = self._unsafe, []
        self._send(unsafe)

    def _arm(self) -> None:
        if self._listeners.is_open:
            self._alarm.set(self._router.next_deadline_ms)

    def _check_connections(self) -> None:
        """Close idle and half-open connections, but not those that wait for an answer."""
        max_idle_ms = self.cluster.settings.connections_max_idle_ms
        self._connections.check(None if max_idle_ms < 0 else max_idle_ms / 1000)
        self._next_check = asyncio.get_running_loop().call_later(_CHECK_S, self._check_connections)

    def _descriptors(self) -> Iterator[int]:
        """Return the sockets that a child process must not keep open."""
        yield from self._listeners.descriptors()
        yield from (connection.descriptor for connection in self._connections.all())

    def _log_transitions(self) -> None:
        for moment in self.cluster.groups.history.take_unlogged():
            fields = {"group_id": printable(moment.group_id), "at_ms": moment.at_ms, **asdict(moment.transition)}
            group_log.info("%(group_id)s: %(before)s -> %(after)s: %(reason)s", fields, extra=fields)


def _counted(reading: Turns[Request], connection: Connection) -> Turns[Request]:
    """Read a request of many elements, and count the memory that they take as bytes of its connection."""
    number = 0
    while True:
        try:
            next(reading)
        except StopIteration as end:
            request: Request = end.value
            return request
        number += 1
        if number % _COUNTED_ELEMENTS == 0:
            connection.hold(_COUNTED_ELEMENTS * _ELEMENT_BYTES)
        yield


def _encoded(answer: Answer, max_bytes: int) -> bytes | None:
    """Return an encoded answer; one that cannot be encoded becomes an error, as in Kafka.

    None if the error cannot be encoded either.
    """
    request = answer.call.request
    response = answer.response
    if isinstance(response, LastAnswer):
        response = response.response
    assert isinstance(response, Struct | EncodedBody), "nothing else has an answer"
    try:
        if not isinstance(response, EncodedBody):
            return encode_response(response, request.version, request.correlation_id, max_bytes=max_bytes)
        if response.size_bytes <= max_bytes:
            return b"".join(frame_of(response.pieces, request.correlation_id, flexible=response.flexible))
        log.error("a response of %d bytes cannot be encoded: the limit is %d", response.size_bytes, max_bytes)
    except Exception:
        log.exception("a response to %s v%d cannot be encoded", request.api.name, request.version)
    refused = refusal(answer.call, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert isinstance(refused, Struct), "a request without an answer is not answered"
    try:
        return encode_response(refused, request.version, request.correlation_id)
    except Exception:
        log.exception("the error response in its place cannot be encoded either")
        return None
