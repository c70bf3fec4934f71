"""SaslAuthenticate (36, v0 to v2): one step of a login (KIP-152).

v1 the session's lifetime, after which the client must log in again (KIP-368); v2 flexible.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call, HangUp, LastAnswer
from loadwise.coordinator.calls.logins import Stage
from loadwise.coordinator.errors import LoginRefusedError, UnansweredLoginError
from loadwise.coordinator.handling.access import open_to_all
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.security.feature import login_of
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(call: Call[SaslAuthenticateRequest], cluster: Cluster) -> SaslAuthenticateResponse | HangUp | LastAnswer:
    """Handle one step; a failed login gets its error, then the connection closes."""
    login = login_of(call)
    if login is None or login.stage is Stage.DONE:
        message = "SaslAuthenticate request received after successful authentication"
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message, auth_bytes=b"")
    try:
        answer = login.evaluate(call.body.auth_bytes, cluster.now_ms)
    except UnansweredLoginError as problem:
        return HangUp(str(problem))
    except LoginRefusedError as problem:
        error = ErrorCode.SASL_AUTHENTICATION_FAILED
        refused = SaslAuthenticateResponse(error_code=error, error_message=str(problem), auth_bytes=b"")
        return LastAnswer(refused, str(problem))
    lifetime_ms = login.session_lifetime_ms(cluster.now_ms)
    return SaslAuthenticateResponse(
        error_code=ErrorCode.NONE,
        error_message="",
        auth_bytes=answer,
        session_lifetime_ms=lifetime_ms,
    )


guard = open_to_all
