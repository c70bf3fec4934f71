"""Not an API: errors of delegation tokens (KIP-48).

Tokens are disabled, as in a Kafka without ``delegation.token.secret.key``. Mirrors the checks of
``KafkaApis.allowTokenRequests`` and ``DelegationTokenControlManager``.
"""

from __future__ import annotations

from loadwise.coordinator.calls import ANONYMOUS, Call, Message
from loadwise.protocol.error_codes import ErrorCode

_NEVER_MS = -1


def token_error(call: Call) -> ErrorCode:
    """Return the error; a client without a login gets another one first."""
    if call.principal == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def time_of_no_token_ms(error: ErrorCode) -> int:
    """Return the time fields of the error response.

    Brokers set -1 (``DelegationTokenManager.ErrorTimestamp``). The controller, which detects disabled tokens, leaves 0.
    """
    return 0 if error is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED else _NEVER_MS


def refuse_new_end(call: Call) -> Message:
    """Return the error for a request to change a token's expiry."""
    error = token_error(call)
    return call.response(error_code=error, expiry_timestamp_ms=time_of_no_token_ms(error), throttle_time_ms=0)


def requester(call: Call) -> tuple[str, str]:
    """Return the type and name of the client's principal."""
    kind, _, name = call.principal.partition(":")
    return kind, name
