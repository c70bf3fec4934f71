"""Raises why a consumer cannot connect: a refused login, a refused TLS, or no broker.

kafka-python has a place for a refusal (`_auth_failures`), but none gets there. It drops what a broker sends just before
it closes a connection, tries again, and fails after ``bootstrap_timeout_ms`` (30 s) with "Unable to bootstrap".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kafka.errors import IllegalSaslStateError, KafkaTimeoutError, RequestTimedOutError
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from loadwise.assignor.clients.kafka_python.refusals import REFUSALS, TlsRefusedError
from loadwise.assignor.clients.refused_connections import NO_TLS, ends_handshake, no_login, tls_refusal

BOOTSTRAP_TIMEOUT_MS = 9_000
"""How long a consumer looks for a broker when it is made, unless ``bootstrap_timeout_ms`` is given."""


def client_that_tells(**config: Any) -> KafkaNetClient:
    """Make the client of a consumer (``kafka_client``)."""
    net = NetworkSelector(**config)
    return KafkaNetClient(net=net, manager=_Manager(net, **config))


class _Manager(KafkaConnectionManager):
    """Raises a refusal until the first connection was good; later ones are tried again, as by kafka-python."""

    def __init__(self, *args: Any, **config: Any) -> None:
        super().__init__(*args, **config)
        self._reasons: dict[str, str] = {}  # of the newest failure that says most, by host and port

    def bootstrap(self, *args: Any, **options: Any) -> None:
        try:
            super().bootstrap(*args, **options)
        except KafkaTimeoutError as error:
            places = [f"{where} ({reason})" for where, reason in self._reasons.items()]
            raise KafkaTimeoutError(
                f"no Kafka answers at {', '.join(places) or self.config['bootstrap_servers']}"
            ) from error

    async def _build_transport(self, *args: Any, **options: Any) -> Any:
        transport = await super()._build_transport(*args, **options)
        transport._sock_recv = partial(_data_before_end, transport._sock_recv)
        return transport

    async def _connect(self, node: Any, conn: Any, *args: Any, **options: Any) -> None:
        refusals: list[Exception] = []
        where = f"{node.host}:{node.port}"
        conn.close = partial(self._close_connection, where, conn.close, refusals)
        conn.close_future.add_errback(partial(self._failed, where, conn))
        await super()._connect(node, conn, *args, **options)
        if (problem := tls_refusal(conn.init_future.exception)) is not None:
            refusals.append(TlsRefusedError(f"no TLS with {where}: {problem}; check the settings of ssl"))
        if refusals and not self.bootstrapped:
            self._auth_failures[node.node_id] = refusals[0]

    def _close_connection(
        self, where: str, close: Callable[[Any], None], refusals: list[Exception], error: Exception | None = None
    ) -> None:
        if isinstance(error, IllegalSaslStateError):
            refusals.append(IllegalSaslStateError(no_login(where, self.config["security_protocol"])))
        elif isinstance(error, REFUSALS):
            refusals.append(error)
        close(error)

    def _failed(self, where: str, conn: Any, error: Exception) -> None:
        if self.bootstrapped:
            return
        if _ran_out_of_time(error) and where in self._reasons:
            return  # the last attempt has what is left of the time, perhaps 1 ms
        reason = str(error.args[0] if error.args else error)
        if conn.init_future.succeeded():  # brokers do so with requests before the login
            reason = "it closes the connection after the first request: does it require a login by SASL?"
        elif self.ssl_enabled and ends_handshake(error):
            reason = NO_TLS
        elif not self.ssl_enabled and ("disconnected" in reason or "frame length" in reason):  # a TLS alert is no frame
            reason = f"{reason}: does it require TLS?"
        self._reasons[where] = reason


def _ran_out_of_time(error: Exception) -> bool:
    """Return whether an attempt to connect ended with its time, and not by what the broker did."""
    # kafka-python raises a connection error from the timeout of the connection.
    times_out = (RequestTimedOutError, KafkaTimeoutError)
    return isinstance(error, times_out) or isinstance(error.__context__, times_out)


def _data_before_end(receive: Callable[[], tuple[bytes, Any]]) -> tuple[bytes, Any]:
    data, error = receive()
    return data, None if data else error  # the next call finds the end again
