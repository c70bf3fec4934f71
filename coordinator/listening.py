"""The sockets that brokers listen on."""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

_TURNS_TO_OPEN = 5
"""Turns of the loop until an accepted connection opens: three in asyncio, one in uvloop."""
_HANDSHAKE_TIMEOUT_S = 5.0
"""A peer that is silent in its TLS handshake is disconnected after this time."""


def cannot_listen(host: str, port: int, error: OSError) -> OSError:
    """Return the error with its address; loops differ in what they say."""
    if error.errno == errno.EADDRINUSE:
        reason = "address already in use; end the program that listens there, or choose another port (0: a free one)"
    else:
        reason = error.strerror or str(error)
    return type(error)(error.errno, f"cannot listen on {host}:{port}: {reason}")


class Listeners:
    """A listening socket for each broker."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._servers: list[asyncio.Server] = []

    @property
    def is_open(self) -> bool:
        """Return whether they listen."""
        return bool(self._servers)

    async def open(
        self, host: str, port: int, node_ids: Sequence[int], accept: Callable[[int], asyncio.Protocol]
    ) -> list[tuple[str, int]]:
        """Listen for every broker, and return the bound addresses.

        ``accept`` makes the protocol of a new connection to a broker. The first broker listens on ``port``, the others
        on the following ports; 0 picks free ones. Raises OSError if that fails; some may listen then.
        """
        loop = asyncio.get_running_loop()
        of_tls: dict[str, Any] = {} if self._tls is None else {"ssl_handshake_timeout": _HANDSHAKE_TIMEOUT_S}
        bound = []
        for index, node_id in enumerate(node_ids):
            at = port + index if port else 0
            try:
                listener = await loop.create_server(partial(accept, node_id), host, at, ssl=self._tls, **of_tls)
            except OSError as error:
                raise cannot_listen(host, at, error) from error
            self._servers.append(listener)
            if not listener.sockets:  # asyncio skips every socket that cannot be opened
                raise OSError(
                    errno.EMFILE,
                    f"cannot open a socket for broker {node_id}: each broker needs one, and so does each "
                    "connection. Use fewer brokers, or raise the limit of open files (ulimit -n)",
                )
            bound_host, bound_port = listener.sockets[0].getsockname()[:2]
            bound.append((bound_host, bound_port))
        return bound

    async def close(self) -> None:
        """Close them, once the connections that they have accepted are open."""
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

    async def wait_closed(self) -> None:
        """Wait until they are closed."""
        for listener in self._servers:
            await listener.wait_closed()
        self._servers.clear()

    def descriptors(self) -> Iterator[int]:
        """Return the file descriptors of the sockets."""
        for listener in self._servers:
            yield from (listening.fileno() for listening in listener.sockets)
