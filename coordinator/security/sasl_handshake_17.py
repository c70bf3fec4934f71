"""SaslHandshake (17, v0 to v1): chooses the mechanism of a login.

After v0 tokens follow as plain bytes, after v1 in SaslAuthenticate. A client may log in again (KIP-368). It gets
ILLEGAL_SASL_STATE if it need not log in, or did within the last second.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call, HangUp, LastAnswer
from loadwise.coordinator.errors import LoginRefusedError, UnansweredLoginError
from loadwise.coordinator.handling.access import open_to_all
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.security.feature import login_of
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import SaslHandshakeRequest, SaslHandshakeResponse


def handle(call: Call[SaslHandshakeRequest], cluster: Cluster) -> SaslHandshakeResponse | HangUp | LastAnswer:
    """Start a login; an unsupported mechanism gets the list of mechanisms, then the connection closes."""
    login = login_of(call)
    if login is None or not login.may_begin(cluster.now_ms):
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    mechanisms = list(login.mechanisms)
    try:
        login.choose(call.body.mechanism, call.version, cluster.now_ms)
    except UnansweredLoginError as problem:
        return HangUp(str(problem))
    except LoginRefusedError as problem:
        refused = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=mechanisms)
        return LastAnswer(refused, str(problem))
    return SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=mechanisms)


guard = open_to_all
