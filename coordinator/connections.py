"""All connections of a server, within its limits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count

from loadwise.coordinator.connection import Connection


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


class Connections:
    """The open connections."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._open: set[Connection] = set()
        self._ids = count(1)
        self._slow: set[Connection] = set()
        """Connections with more to send than their peers took at once."""
        self._unread_bytes = 0
        self._all_gone = asyncio.Event()

    def all(self) -> list[Connection]:
        """Return the open connections."""
        return list(self._open)

    def add(self, connection: Connection) -> None:
        """Add a new connection, and give it its id."""
        connection.id = next(self._ids)
        self._open.add(connection)

    def discard(self, connection: Connection) -> None:
        """Drop a closed connection."""
        self._open.discard(connection)
        self._slow.discard(connection)
        if not self._open:
            self._all_gone.set()

    def check_number(self, connection: Connection) -> None:
        """Close a new connection if there are too many."""
        if len(self._open) > self._limits.max_connections:
            connection.close(f"the limit of {self._limits.max_connections:,} connections is reached")

    def count_unread(self, connection: Connection, more_bytes: int) -> None:
        """Add to the bytes of incomplete requests; a negative number subtracts."""
        self._unread_bytes += more_bytes
        if more_bytes > 0 and self._unread_bytes > self._limits.max_buffered_bytes:
            limit = f"the limit is {self._limits.max_buffered_bytes:,}"
            connection.close(f"incomplete requests take {self._unread_bytes:,} bytes together; {limit}")

    def wrote(self, connection: Connection) -> None:
        """Note that a connection has more to send than the peer takes at once."""
        self._slow.add(connection)
        unsent = {each: each.unsent_bytes for each in self._slow}
        self._slow = {each for each, size in unsent.items() if size}
        total = sum(unsent.values())
        if total > self._limits.max_unsent_bytes:
            slowest = max(unsent, key=unsent.__getitem__)
            limit = f"the limit is {self._limits.max_unsent_bytes:,}, and this peer has the most"
            slowest.abort(f"unread answers take {total:,} bytes together; {limit}")

    def close_idle(self, max_idle_s: float) -> None:
        """Close idle and half-open connections, but not those that wait for an answer."""
        latest_s = asyncio.get_running_loop().time() - max_idle_s
        for connection in self.all():
            if connection.waits_for is None and connection.active_at_s < latest_s:
                connection.abort(f"idle for {max_idle_s:,.0f} s (connections.max.idle.ms)")

    async def abort_all(self) -> None:
        """Close all connections, and wait until they are closed."""
        self._all_gone.clear()
        for connection in self.all():
            connection.abort()
        if self._open:
            await self._all_gone.wait()
