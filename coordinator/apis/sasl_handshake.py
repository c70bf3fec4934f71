"""SaslHandshake (17): a client names the mechanism that it logs in with.

v0 its tokens follow as bare bytes; v1 they follow in SaslAuthenticate. Who has logged in may do so again (KIP-368); who
need not, or did so within a second, gets ILLEGAL_SASL_STATE.
"""

from __future__ import annotations

from kafka.protocol.sasl import SaslHandshakeRequest, SaslHandshakeResponse

from loadwise.coordinator.apis.access import open_to_all
from loadwise.coordinator.calls import Call, HangUp, LastAnswer, Response, Service
from loadwise.coordinator.errors import LoginRefusedError, UnansweredLoginError
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api


def handle(call: Call, cluster: Cluster) -> Response:
    """Begin a login; one that cannot be is told which mechanisms there are, and loses its connection."""
    login = call.login
    if login is None or not login.may_begin(cluster.now_ms):
        return call.response(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    mechanisms = list(login.mechanisms)
    try:
        login.choose(call.body.mechanism, call.version, cluster.now_ms)
    except UnansweredLoginError as problem:
        return HangUp(str(problem))
    except LoginRefusedError as problem:
        refused = call.response(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=mechanisms)
        return LastAnswer(refused, str(problem))
    return call.response(error_code=ErrorCode.NONE, mechanisms=mechanisms)


SERVICE = Service(Api.of(SaslHandshakeRequest, SaslHandshakeResponse), handle, open_to_all)
