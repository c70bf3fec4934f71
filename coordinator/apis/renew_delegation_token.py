"""RenewDelegationToken (39): a token is to end later. v2 flexible."""

from __future__ import annotations

from loadwise.coordinator.apis.access import open_to_all
from loadwise.coordinator.apis.token_refusals import time_of_no_token_ms, token_error
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from loadwise.protocol.messages import Api


def handle(call: Call, _: Cluster) -> Message:
    """Refuse it."""
    error = token_error(call)
    return call.response(error_code=error, expiry_timestamp_ms=time_of_no_token_ms(error), throttle_time_ms=0)


SERVICE = Service(Api.of(RenewDelegationTokenRequest, RenewDelegationTokenResponse), handle, open_to_all)
