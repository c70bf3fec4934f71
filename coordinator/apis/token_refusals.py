"""No API of its own: why nobody gets a delegation token (KIP-48).

They are switched off, as in a Kafka that was started without ``delegation.token.secret.key``. Mirrors the checks of
``KafkaApis.allowTokenRequests`` and ``DelegationTokenControlManager``.
"""

from __future__ import annotations

from loadwise.coordinator.calls import ANONYMOUS, Call, Message
from loadwise.protocol.error_codes import ErrorCode

_NEVER_MS = -1


def token_error(call: Call) -> ErrorCode:
    """What a client is told: one that has not logged in is told that first."""
    if call.principal == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def time_of_no_token_ms(error: ErrorCode) -> int:
    """The times of a token that is not there.

    Brokers tell -1 (``DelegationTokenManager.ErrorTimestamp``). The controller, which finds that tokens are switched
    off, leaves the field at 0.
    """
    return 0 if error is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED else _NEVER_MS


def refuse_new_end(call: Call) -> Message:
    """The answer to who wants a token to end at another time."""
    error = token_error(call)
    return call.response(error_code=error, expiry_timestamp_ms=time_of_no_token_ms(error), throttle_time_ms=0)


def requester(call: Call) -> tuple[str, str]:
    """Type and name of the principal that asks."""
    kind, _, name = call.principal.partition(":")
    return kind, name
