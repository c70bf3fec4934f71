"""Finds out why a consumer cannot start: aiokafka only logs refusals, and raises "Unable to bootstrap"."""

from __future__ import annotations

import inspect
from typing import Any

from aiokafka.conn import create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from loadwise.assignor.clients.refused_connections import NO_TLS, ends_handshake, no_login, tls_refusal

_OF_SASL = (AuthenticationFailedError, IllegalSaslStateError, SaslAuthenticationFailed, UnsupportedSaslMechanismError)


async def reason(client: Any) -> KafkaError:
    """Connect once more to the servers of a client that failed to start; return why that fails."""
    failures = []
    names = inspect.signature(create_conn).parameters
    settings = {name: getattr(client, f"_{name}") for name in names if hasattr(client, f"_{name}")}
    for host, port, _ in client.hosts:
        try:
            connection = await create_conn(host, port, **settings)
        except IllegalSaslStateError:
            return IllegalSaslStateError(no_login(f"{host}:{port}", settings["security_protocol"]))
        except _OF_SASL as error:
            return error
        except (OSError, KafkaError) as error:
            if (problem := tls_refusal(error)) is not None:
                return AuthenticationFailedError(f"no TLS with {host}:{port}: {problem}; check ssl_context")
            if settings["security_protocol"] in {"SSL", "SASL_SSL"} and ends_handshake(error):
                failures.append(f"{host}:{port} ({NO_TLS})")
                continue
            hint = "" if isinstance(error, OSError) else ": does it require TLS?"
            failures.append(f"{host}:{port} ({error.args[0] if hint else error}{hint})")
        else:
            connection.close()
            failures.append(
                f"{host}:{port} (it closes the connection after the first request: does it require a login by SASL, or"
                " TLS?)"
            )
    return KafkaConnectionError(f"no Kafka answers at {', '.join(failures)}")
