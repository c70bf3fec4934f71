"""Ends the start of a consumer whose login or TLS is refused, with the reason.

kafka-python has a place for such a refusal (`_auth_failures`), but none gets there. It drops what a broker sends just
before it closes a connection, tries again, and fails after ``bootstrap_timeout_ms`` (30 s) with "Unable to bootstrap".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from loadwise.assignor.clients.tls_refusals import tls_refusal

REFUSALS = (IllegalSaslStateError, SaslAuthenticationFailedError, UnsupportedSaslMechanismError)
"""How a login by SASL is refused."""


class TlsRefusedError(KafkaConnectionError):
    """The client or the broker refuses the other's certificate, or one of them does not speak TLS."""

    retriable = False


def client_that_tells(**config: Any) -> KafkaNetClient:
    """Make the client of a consumer (``kafka_client``)."""
    net = NetworkSelector(**config)
    return KafkaNetClient(net=net, manager=_Manager(net, **config))


class _Manager(KafkaConnectionManager):
    """Raises a refusal until the first connection was good; later ones are tried again, as by kafka-python."""

    async def _build_transport(self, *args: Any, **options: Any) -> Any:
        transport = await super()._build_transport(*args, **options)
        transport._sock_recv = partial(_data_before_end, transport._sock_recv)
        return transport

    async def _connect(self, node: Any, conn: Any, *args: Any, **options: Any) -> None:
        refusals: list[Exception] = []
        conn.close = partial(_close, conn.close, refusals)
        await super()._connect(node, conn, *args, **options)
        if (problem := tls_refusal(conn.init_future.exception)) is not None:
            where = f"{node.host}:{node.port}"
            refusals.append(TlsRefusedError(f"no TLS with {where}: {problem}; check the settings of ssl"))
        if refusals and not self.bootstrapped:
            self._auth_failures[node.node_id] = refusals[0]


def _data_before_end(receive: Callable[[], tuple[bytes, Any]]) -> tuple[bytes, Any]:
    data, error = receive()
    return data, None if data else error  # the next call finds the end again


def _close(close: Callable[[Any], None], refusals: list[Exception], error: Exception | None = None) -> None:
    if isinstance(error, REFUSALS):
        refusals.append(error)
    close(error)
