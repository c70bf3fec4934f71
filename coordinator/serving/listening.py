"""The sockets that brokers listen on."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

log = logging.getLogger("loadwise.coordinator")

_BACKLOG = 100
_ACCEPT_IN_A_TURN = 20
"""After this many connections, the loop serves others first."""
_TURNS_TO_OPEN = 3
"""Turns of the loop until an accepted connection begins to open."""
_RETRY_S = 0.1
"""How long a listener waits after it could not accept a connection."""
_TOO_MANY_FILES = frozenset({errno.EMFILE, errno.ENFILE})
_NO_SUCH_ADDRESS = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""Of a machine without IPv6, where ``localhost`` has an address of IPv6 all the same."""


def cannot_listen(host: str, port: int, error: OSError) -> OSError:
    """Return the error with its address; loops differ in what they say."""
    if error.errno == errno.EADDRINUSE:
        reason = "address already in use; end the program that listens there, or choose another port (0: a free one)"
    else:
        reason = error.strerror or str(error)
    return type(error)(error.errno, f"cannot listen on {host}:{port}: {reason}")


class Listeners:
    """A listening socket for each broker, or two where a host has an address of IPv4 and one of IPv6.

    ``accept`` gets the broker's node id and each new connection's socket. ``on_shortage`` is called when the process
    has no file descriptor for a new connection; it should close another one.
    """

    def __init__(self, accept: Callable[[int, socket.socket], None], on_shortage: Callable[[], None]) -> None:
        self._accept = accept
        self._on_shortage = on_shortage
        self._sockets: list[socket.socket] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closing = False

    @property
    def is_open(self) -> bool:
        """Return whether they listen."""
        return bool(self._sockets)

    async def open(self, host: str, port: int, node_ids: Sequence[int]) -> list[tuple[str, int]]:
        """Listen for every broker, and return the bound addresses.

        The first broker listens on ``port``, the others on the following ports; 0 picks free ones. Raises OSError if
        that fails; some may listen then.
        """
        bound = []
        for index, node_id in enumerate(node_ids):
            at = port + index if port else 0
            try:
                listening = await _listening(host, at)
            except OSError as error:
                if error.errno in _TOO_MANY_FILES:
                    raise OSError(
                        errno.EMFILE,
                        f"cannot open a socket for broker {node_id}: each broker needs one, and so does each "
                        "connection. Use fewer brokers, or raise the limit of open files (ulimit -n)",
                    ) from error
                raise cannot_listen(host, at, error) from error
            self._sockets += listening
            self._tasks += [asyncio.create_task(self._accept_all(each, node_id)) for each in listening]
            bound_host, bound_port = listening[0].getsockname()[:2]
            bound.append((bound_host, bound_port))
        return bound

    async def close(self) -> None:
        """Close them. Connections that they have accepted have begun to open then."""
        loop = asyncio.get_running_loop()
        self._is_closing = True
        for listening in self._sockets:
            with suppress(NotImplementedError):  # of Windows' loop
                loop.remove_reader(listening)
        for _ in range(_TURNS_TO_OPEN):
            await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for listening in self._sockets:
            listening.close()
        self._tasks.clear()
        self._sockets.clear()

    def descriptors(self) -> Iterator[int]:
        """Return the file descriptors of the sockets."""
        yield from (listening.fileno() for listening in self._sockets)

    async def _accept_all(self, listening: socket.socket, node_id: int) -> None:
        loop = asyncio.get_running_loop()
        accepted = 0
        while not self._is_closing:
            try:
                client, _ = await loop.sock_accept(listening)
            except ConnectionAbortedError:
                continue  # the peer is gone already
            except OSError as error:
                log.error("cannot accept a connection: %s", error)
                if error.errno in _TOO_MANY_FILES:
                    self._on_shortage()
                await asyncio.sleep(_RETRY_S)
                continue
            client.setblocking(False)
            self._accept(node_id, client)
            accepted += 1
            if accepted % _ACCEPT_IN_A_TURN == 0:
                await asyncio.sleep(0)


async def _listening(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on every address of a host."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    result: list[socket.socket] = []
    missing: OSError | None = None
    for family, *_, address in dict.fromkeys(found):
        try:
            listening = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
        except OSError as error:
            if error.errno not in _NO_SUCH_ADDRESS:
                for each in result:
                    each.close()
                raise
            missing = error
        else:
            listening.setblocking(False)
            result.append(listening)
    if missing is not None and not result:
        raise missing
    return result
