"""The asyncio server around the cluster: sockets, clock and pending answers.

Each broker has a listening socket. A request comes from its connection as a frame (`received`), becomes a `Call`, and
goes to the cluster; `_deliver` encodes the answers and sends them. Malformed bytes close their connection with one line
in the log, and no other connection is affected. An answer to a closed connection is dropped.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from typing import Any

from loadwise.coordinator.apis import api_versions_18 as api_versions
from loadwise.coordinator.calls import Answer, Call, EncodedBody, HangUp, LastAnswer, NoAnswer
from loadwise.coordinator.clock import Clock
from loadwise.coordinator.connection import Connection
from loadwise.coordinator.errors import DataDirError, LoginRefusedError
from loadwise.coordinator.faults.injector import FaultInjector
from loadwise.coordinator.faults.rules import Faults
from loadwise.coordinator.forks import close_in_children
from loadwise.coordinator.groups.effects import Reply
from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.groups.service.history import printable
from loadwise.coordinator.keeper import DataDirectory, Snapshot
from loadwise.coordinator.large_requests import Joined, LargeRequests, without_body
from loadwise.coordinator.refusals import refusal
from loadwise.coordinator.repeated_heartbeats import RepeatedHeartbeat
from loadwise.coordinator.router import Router
from loadwise.coordinator.security.login import Login, Stage
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.errors import MalformedBytesError, TooManyElementsError, UnsupportedVersionError
from loadwise.protocol.messages import Request, decode_request, encode_response, frame_body, frame_head, served

log = logging.getLogger("loadwise.coordinator")
group_log = logging.getLogger("loadwise.coordinator.groups")

_API_VERSIONS = 18
_TURNS_TO_OPEN = 5
"""Turns of the loop until an accepted connection opens: three in asyncio, one in uvloop."""
_LONGEST_IDLE_CHECK_S = 30.0
_HANDSHAKE_TIMEOUT_S = 5.0
"""A peer that is silent in its TLS handshake is disconnected after this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of one server, in addition to Kafka's settings (`BrokerSettings`)."""

    max_connections: int = 10_000
    """Connections beyond this are closed at once."""
    max_buffered_bytes: int = 256 * 1024 * 1024
    """Maximum bytes of incomplete requests of all connections; the one that exceeds it is closed.

    Kafka's queued.max.request.bytes, which is unlimited by default.
    """
    max_unsent_bytes: int = 256 * 1024 * 1024
    """Maximum bytes of unread answers of all connections; beyond it, the one with the most is closed."""
    max_whole_elements: int = 10_000
    """Maximum elements in the arrays of a request that is not cut; larger ones get INVALID_REQUEST.

    One more is allowed for each partition of the cluster, and two for each topic.
    """


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
        self._tokens = router.tokens
        self.failure: asyncio.Future[DataDirError] = asyncio.get_running_loop().create_future()
        """Set when the data directory cannot be written and serving stops."""
        self._directory = directory
        self._unsafe: list[Answer] = []
        """Answers that wait until the data directory has stored their changes."""
        self._tls = tls
        self.limits = limits or ServerLimits()
        self._clock = clock
        self._apis = served(self.cluster.apis)
        self._connections: set[Connection] = set()
        self._connection_ids = count(1)
        self._slow: set[Connection] = set()
        """Connections with more to send than their peers took at once."""
        self._waiting: dict[Token, Connection] = {}
        self._large = LargeRequests(
            self._apis,
            handle=self._handle,
            hurry=self._hurry,
            forget=self._router.forget,
            new_token=router.tokens.__next__,
            few_elements=self.limits.max_whole_elements,
            most_elements=self._most_whole_elements,
            new_partitions=router.new_partitions,
            max_bytes=self.limits.max_unsent_bytes,
        )
        self._large_tasks: dict[Token, asyncio.Future[None]] = {}
        self._unread_bytes = 0
        self._servers: list[asyncio.Server] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._armed_ms: int | None = None
        self._idle_check: asyncio.TimerHandle | None = None
        self._is_settling = False
        self._all_gone = asyncio.Event()

    async def start(self, host: str, port: int) -> list[tuple[str, int]]:
        """Listen for every broker, and return the bound addresses in the order of the brokers.

        The first listens on ``port``, the others on the following ports; 0 picks free ones. Raises OSError if that
        fails.
        """
        self._loop = asyncio.get_running_loop()
        max_request_bytes = self.cluster.settings.max_request_bytes
        of_tls: dict[str, Any] = {} if self._tls is None else {"ssl_handshake_timeout": _HANDSHAKE_TIMEOUT_S}
        bound = []
        try:
            for index, node in enumerate(self.cluster.brokers.nodes):
                accept = partial(Connection, self, node.id, max_request_bytes)
                at = port + index if port else 0
                listener = await self._loop.create_server(accept, host, at, ssl=self._tls, **of_tls)
                self._servers.append(listener)
                if not listener.sockets:  # asyncio skips every socket that cannot be opened
                    raise OSError(
                        errno.EMFILE,
                        f"cannot open a socket for broker {node.id}: each broker needs one, and so does each "
                        "connection. Use fewer brokers, or raise the limit of open files (ulimit -n)",
                    )
                bound_host, bound_port = listener.sockets[0].getsockname()[:2]
                bound.append((bound_host, bound_port))
        except OSError:
            await self.stop()
            raise
        close_in_children(self._descriptors)
        self._check_idle()
        self._arm()
        return bound

    async def stop(self) -> None:
        """Close the listeners and every connection."""
        loop = asyncio.get_running_loop()
        for listener in self._servers:
            if isinstance(loop, asyncio.SelectorEventLoop):
                # Only stop accepting; closing the listener would leave its accepted connections open forever.
                for listening in listener.sockets:
                    loop.remove_reader(listening.fileno())
            else:
                listener.close()
        for _ in range(_TURNS_TO_OPEN):
            await asyncio.sleep(0)
        for listener in self._servers:
            listener.close()
        self._disarm()
        if self._idle_check is not None:
            self._idle_check.cancel()
        self._all_gone.clear()
        for connection in list(self._connections):
            connection.abort()
        if self._connections:
            await self._all_gone.wait()
        for listener in self._servers:
            await listener.wait_closed()
        self._servers.clear()
        self._disarm()  # again: a request in the last turn has armed it

    def carry_on(self) -> None:
        """Send answers that became due when the state was changed from outside."""
        self._deliver(self._router.expire(self._clock.now_ms()))
        self._settle()

    def drop_connections(self, node_id: int) -> None:
        """Close all connections to a broker that was stopped."""
        for connection in list(self._connections):
            if connection.node_id == node_id:
                connection.abort()

    # ---- callbacks of connections ----

    def opened(self, connection: Connection) -> None:
        """Register a new connection."""
        connection.id = next(self._connection_ids)
        self._connections.add(connection)
        node = self.cluster.brokers.node(connection.node_id)
        if self.failure.done() or (node is not None and node.is_stopped):
            connection.abort()
            return
        try:
            connection.login = self._router.new_login(connection.certificate_name)
        except LoginRefusedError as problem:
            connection.abort(str(problem))  # at once: requests that it has already sent must not be served
            return
        if len(self._connections) > self.limits.max_connections:
            connection.close(f"the limit of {self.limits.max_connections:,} connections is reached")

    def closed(self, connection: Connection) -> None:
        """Drop a closed connection."""
        self._connections.discard(connection)
        self._slow.discard(connection)
        if connection.waits_for is not None:
            self._waiting.pop(connection.waits_for, None)
            self._router.forget(connection.waits_for)
            if connection.waits_for in self._large_tasks:
                self._large_tasks[connection.waits_for].cancel()
        self._deliver(self._router.disconnected(connection.id, self._clock.now_ms()))
        if self._directory is not None and self._directory.has_changes:
            self._settle_soon()
        if not self._connections:
            self._all_gone.set()

    def count_unread(self, connection: Connection, more_bytes: int) -> None:
        """Add to the bytes of incomplete requests; a negative number subtracts."""
        self._unread_bytes += more_bytes
        if more_bytes > 0 and self._unread_bytes > self.limits.max_buffered_bytes:
            limit = f"the limit is {self.limits.max_buffered_bytes:,}"
            connection.close(f"incomplete requests take {self._unread_bytes:,} bytes together; {limit}")

    def wrote(self, connection: Connection) -> None:
        """Note that a connection has more to send than the peer takes at once."""
        self._slow.add(connection)
        unsent = {each: each.unsent_bytes for each in self._slow}
        self._slow = {each for each, size in unsent.items() if size}
        total = sum(unsent.values())
        if total > self.limits.max_unsent_bytes:
            slowest = max(unsent, key=unsent.__getitem__)
            limit = f"the limit is {self.limits.max_unsent_bytes:,}, and this peer has the most"
            slowest.abort(f"unread answers take {total:,} bytes together; {limit}")

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
            self._begin_large(connection, frame)
            return
        except UnsupportedVersionError as problem:
            if problem.api_key != _API_VERSIONS:
                raise
            connection.answer(encode_response(api_versions.unsupported(self.cluster), problem.correlation_id))
            return
        if not is_repeated:
            connection.heartbeat = RepeatedHeartbeat.of(frame, request) or heartbeat
        self._handle(self._call(connection, request))

    def _call(self, connection: Connection, request: Request) -> Call:
        """Return the call of a connection, which waits for its answer from now on."""
        token = connection.waits_for = next(self._tokens)
        self._waiting[token] = connection
        return Call(token, request, connection.client_host, connection.node_id, connection.login, connection.id)

    def _handle(self, call: Call) -> None:
        self._deliver(self._router.receive(call, self._clock.now_ms()))
        self._settle_soon()

    def _begin_large(self, connection: Connection, frame: bytes) -> None:
        """Answer a request slice by slice while its connection waits."""
        call = self._call(connection, without_body(frame, self._apis))
        task = self._large_tasks[call.token] = asyncio.ensure_future(self._answer_large(connection, call, frame))
        task.add_done_callback(lambda _: self._large_tasks.pop(call.token, None))

    async def _answer_large(self, connection: Connection, call: Call, frame: bytes) -> None:
        try:
            response = await self._large.response(call, frame)
            if not isinstance(response, Joined):
                self._send([Answer(call, response)])
            elif self._waiting.pop(call.token, None) is not None:
                correlation_id = call.request.correlation_id
                connection.answer_in_pieces([frame_head(*response, correlation_id), *response.pieces])
        except MalformedBytesError as problem:
            connection.abort(str(problem))
        except Exception:
            log.exception("a large %s cannot be answered", call.request.api.name)
            connection.abort("the coordinator failed to handle a request")

    def _most_whole_elements(self) -> int:
        """Return the element limit of uncut requests, enough for a heartbeat with all partitions.

        A heartbeat of their only owner names each topic twice: subscribed, and owned.
        """
        topics = self.cluster.topics
        return self.limits.max_whole_elements + topics.partition_count + 2 * len(topics)

    def _hurry(self, token: Token) -> None:
        self._deliver(self._router.hurry(token, self._clock.now_ms()))

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
        for connection in list(self._connections):
            connection.abort()
        self._disarm()
        self._settle()

    def freeze(self) -> None:
        """Stop the clock, so that nothing expires."""
        self._clock.freeze()
        self._disarm()

    def resume(self) -> None:
        """Let the clock run on."""
        self._clock.resume()
        self._disarm()
        self._arm()

    def step(self, ms: int) -> None:
        """Advance the clock; everything due within the step happens at its own time."""
        end_ms = self._clock.now_ms() + ms
        while (deadline_ms := self._router.next_deadline_ms) is not None and deadline_ms <= end_ms:
            self._clock.advance_to(deadline_ms)
            self._deliver(self._router.expire(self._clock.now_ms()))
        self._clock.advance_to(end_ms)
        self._disarm()
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
            if answer.call.is_slice and self._large.take(answer):
                continue
            connection = self._waiting.pop(answer.call.token, None)
            if connection is None:
                continue  # its client disconnected
            response = answer.response
            if isinstance(response, HangUp):
                connection.waits_for = None
                connection.close(response.reason)
            elif isinstance(response, NoAnswer):
                connection.free()
            else:
                data = _encoded(answer, self.limits.max_unsent_bytes)
                if data is None:
                    connection.waits_for = None
                    connection.abort("its answer cannot be sent")
                else:
                    connection.answer(data)
                    if isinstance(response, LastAnswer):
                        connection.close(response.reason)

    def _settle_soon(self) -> None:
        if not self._is_settling:
            assert self._loop is not None
            self._is_settling = True
            self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        """At the end of a turn, log the groups' changes and set the timer."""
        self._is_settling = False
        self._make_safe()
        self._log_transitions()
        self._arm()

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
            for connection in list(self._connections):
                connection.abort()
            return
        unsafe, self._unsafe = self._unsafe, []
        self._send(unsafe)

    def _arm(self) -> None:
        """Set the timer for the next deadline, or earlier; then it is set again."""
        assert self._loop is not None
        deadline_ms = self._router.next_deadline_ms
        now_ms = self._clock.now_ms()
        if (
            deadline_ms is None
            or (self._armed_ms is not None and self._armed_ms <= deadline_ms)
            or (self._clock.is_frozen and deadline_ms > now_ms)
            or not self._servers
        ):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_ms = deadline_ms
        # A loop's clock is finer than milliseconds, so wait slightly longer to be past the deadline.
        delay_ms = deadline_ms + 1 - now_ms
        self._timer = self._loop.call_later(max(delay_ms, 0) / 1000, self._on_timer)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._armed_ms = None

    def _on_timer(self) -> None:
        self._timer = self._armed_ms = None
        self.carry_on()

    def _check_idle(self) -> None:
        """Close idle and half-open connections, but not those that wait for an answer."""
        assert self._loop is not None
        max_idle_s = self.cluster.settings.connections_max_idle_ms / 1000
        if max_idle_s < 0:
            return
        latest_s = self._loop.time() - max_idle_s
        for connection in list(self._connections):
            if connection.waits_for is None and connection.active_at_s < latest_s:
                connection.abort(f"idle for {max_idle_s:,.0f} s (connections.max.idle.ms)")
        self._idle_check = self._loop.call_later(min(max_idle_s / 4, _LONGEST_IDLE_CHECK_S), self._check_idle)

    def _descriptors(self) -> Iterator[int]:
        """Return the sockets that a child process must not keep open."""
        for listener in self._servers:
            yield from (listening.fileno() for listening in listener.sockets)
        yield from (connection.descriptor for connection in self._connections)

    def _log_transitions(self) -> None:
        for moment in self.cluster.groups.history.take_unlogged():
            fields = {"group_id": printable(moment.group_id), "at_ms": moment.at_ms, **asdict(moment.transition)}
            group_log.info("%(group_id)s: %(before)s -> %(after)s: %(reason)s", fields, extra=fields)


def _encoded(answer: Answer, max_bytes: int) -> bytes | None:
    """Return an encoded answer; one that cannot be encoded becomes an error, as in Kafka.

    None if the error cannot be encoded either.
    """
    request = answer.call.request
    response = answer.response
    if isinstance(response, LastAnswer):
        response = response.response
    if isinstance(response, EncodedBody):
        return frame_body(response.data, request.correlation_id, flexible=response.flexible)
    try:
        return encode_response(response, request.correlation_id, max_bytes=max_bytes)
    except Exception:
        log.exception("an answer to %s v%d cannot be encoded", request.api.name, request.version)
    try:
        return encode_response(refusal(answer.call, ErrorCode.UNKNOWN_SERVER_ERROR), request.correlation_id)
    except Exception:
        log.exception("the error in its place cannot be encoded either")
        return None
