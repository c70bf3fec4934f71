"""All connections of a server, within its limits; ``sharing.py`` says who leaves when one is reached."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count

from loadwise.coordinator.serving.connection import Connection
from loadwise.coordinator.serving.sharing import SharedBytes, make_room

try:
    from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
except ImportError:  # on Windows, where no such limit is low
    getrlimit = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of one server, in addition to Kafka's settings (`BrokerSettings`)."""

    max_connections: int = 10_000
    """Beyond this, a new connection closes the least recently active one of the user or host with the most.

    Peers that have not completed a login or a first request have half of them at most.
    """
    max_buffered_bytes: int = 256 * 1024 * 1024
    """Maximum bytes of requests without an answer of all connections; beyond it, some are closed (`SharedBytes`).

    Peers that have not logged in yet have an eighth at most. Kafka's queued.max.request.bytes, which is unlimited by
    default.
    """
    max_unsent_bytes: int = 256 * 1024 * 1024
    """Maximum bytes of unread answers of all connections; beyond it, some are closed (`SharedBytes`)."""
    max_request_elements: int = 1_000_000
    """Maximum elements in the arrays of a request; larger ones get INVALID_REQUEST."""
    max_whole_elements: int = 10_000
    """Maximum elements that are handled together: of one row, or of a request without rows.

    One more is allowed for each partition of the cluster, and two for each topic.
    """
    max_silence_s: float = 30.0
    """An incomplete request of which no byte arrives for this long closes its connection."""
    max_request_s: float = 120.0
    """A request that is not complete after this long closes its connection."""


_BEFORE_LOGIN = 8
"""Peers that have not logged in yet have one part in eight of the bytes of requests."""
_SPARE_DESCRIPTORS = 64
"""That many file descriptors are left for files, and for connections that come in the same turn of the loop."""


class Connections:
    """The open connections."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._open: dict[Connection, None] = {}
        """Oldest first, since loops' clocks may give connections the same time."""
        self._leaving: set[Connection] = set()
        """Aborted connections that the loop has not closed yet."""
        self._ids = count(1)
        self._room = 0
        """How many connections may come before the next search for those that must leave."""
        self._requests: SharedBytes[Connection] = SharedBytes(limits.max_buffered_bytes)
        self._before_login: SharedBytes[Connection] = SharedBytes(limits.max_buffered_bytes // _BEFORE_LOGIN)
        self._unsent: SharedBytes[Connection] = SharedBytes(limits.max_unsent_bytes)
        """Of connections with more to send than their peers took at once."""
        self._all_gone = asyncio.Event()

    def all(self) -> list[Connection]:
        """Return the open connections."""
        return list(self._open)

    def add(self, connection: Connection) -> None:
        """Add a new connection, give it its id, and close another one if there are too many."""
        connection.id = next(self._ids)
        self._open[connection] = None
        self._room -= 1
        if _is_one_of_the_last(connection.descriptor):
            self.make_room_for_files()
        elif self._room < 0:
            most = self._limits.max_connections
            self._make_room(most, f"the limit of {most:,} connections is reached")

    def make_room_for_files(self) -> None:
        """Close a connection because the process is short of file descriptors."""
        if len(self._open) > 1:
            most = min(self._limits.max_connections, len(self._open) - 1)
            self._make_room(most, "the process is short of file descriptors (ulimit -n)")

    def discard(self, connection: Connection) -> None:
        """Drop a closed connection."""
        self._open.pop(connection, None)
        self._leaving.discard(connection)
        self._unsent.drop(connection)
        if not self._open and not self._leaving:
            self._all_gone.set()

    def holds(self, connection: Connection, size_bytes: int) -> None:
        """Note the bytes of a connection's requests without an answer; close those that pay if there are too many."""
        now_s = asyncio.get_running_loop().time()
        since_s = connection.since_s
        self._requests.hold(connection, size_bytes, now_s, since_s)
        self._before_login.hold(connection, size_bytes if connection.is_logging_in else 0, now_s, since_s)
        self._close_payers(self._before_login, now_s, "requests before the login")
        self._close_payers(self._requests, now_s, "requests without an answer")

    def wrote(self, connection: Connection) -> None:
        """Note that a connection has more to send than the peer takes at once."""
        now_s = asyncio.get_running_loop().time()
        self._unsent.hold(connection, connection.unsent_bytes, now_s, connection.since_s)
        if self._unsent.total_bytes > self._unsent.most_bytes:
            self._measure_unsent(now_s)

    def check(self, max_idle_s: float | None) -> None:
        """Close connections that are silent for too long or whose request is; to be called every second."""
        now_s = asyncio.get_running_loop().time()
        self._measure_unsent(now_s)
        limits = self._limits
        for connection in self.all():
            silent_s = now_s - connection.received_at_s
            since_s = connection.incomplete_since_s
            if since_s is not None and now_s - since_s > limits.max_request_s:
                self._abort(connection, f"its request is incomplete after {limits.max_request_s:,.0f} s")
            elif since_s is not None and min(silent_s, now_s - since_s) > limits.max_silence_s:
                reason = f"its request is incomplete, and nothing came for {limits.max_silence_s:,.0f} s"
                self._abort(connection, reason)
            elif max_idle_s is not None and connection.waits_for is None and silent_s > max_idle_s:
                self._abort(connection, f"idle for {max_idle_s:,.0f} s (connections.max.idle.ms)")

    async def abort_all(self) -> None:
        """Close all connections, and wait until they are closed."""
        self._all_gone.clear()
        for connection in self.all():
            connection.abort()
        if self._open or self._leaving:
            await self._all_gone.wait()

    def _make_room(self, most: int, limit: str) -> None:
        leaving, self._room = make_room(self._open, most)
        for each in leaving:
            self._abort(each, f"{limit}, and this one is the least recently active of {each.owner}")

    def _measure_unsent(self, now_s: float) -> None:
        for connection in list(self._unsent.holders):
            self._unsent.hold(connection, connection.unsent_bytes, now_s, connection.since_s)
        self._close_payers(self._unsent, now_s, "unread answers")

    def _close_payers(self, shared: SharedBytes[Connection], now_s: float, what: str) -> None:
        total_bytes = shared.total_bytes
        for connection, size_bytes in shared.take_payers(now_s):
            limit = f"the limit is {shared.most_bytes:,}, and this peer's are {size_bytes:,}"
            self._abort(connection, f"{what} take {total_bytes:,} bytes together; {limit}")

    def _abort(self, connection: Connection, reason: str) -> None:
        if connection in self._open:
            del self._open[connection]
            self._leaving.add(connection)
            connection.abort(reason)


def _is_one_of_the_last(descriptor: int) -> bool:
    """Return whether a new file descriptor is one of the last, which are left for files."""
    if getrlimit is None:
        return False
    most, _ = getrlimit(RLIMIT_NOFILE)  # the lowest free number is taken first
    return most != RLIM_INFINITY and descriptor >= most - min(_SPARE_DESCRIPTORS, most // 16)
